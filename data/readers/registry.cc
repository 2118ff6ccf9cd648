#include "data/readers/registry.h"

#include <algorithm>
#include <iterator>

#include <glog/logging.h>

#include "data/readers/all.h"

namespace kumo {
namespace {

constexpr Reader kReaders[] = {
    {DataReader::kIdx, OpenIdx, MeasureIdx},
    {DataReader::kImageFolder, OpenImageFolder, MeasureImageFolder},
    {DataReader::kImageMap, OpenImageMap, MeasureImageMap},
    {DataReader::kCifar, OpenCifar, MeasureCifar},
    {DataReader::kCtf, OpenCtf, MeasureCtf},
    {DataReader::kText, OpenText, MeasureText},
    {DataReader::kVoc, OpenVoc, MeasureVoc},
    {DataReader::kCoco, OpenCoco, MeasureCoco},
    {DataReader::kTable, OpenTable, MeasureTable},
    {DataReader::kMasks, OpenMasks, MeasureMasks},
};

}  // namespace

std::span<const Reader> Readers() { return kReaders; }

const Reader& ReaderOf(DataReader id) {
  const auto found = std::ranges::find(kReaders, id, &Reader::id);
  CHECK(found != std::end(kReaders)) << "reader " << WordOf(id) << " is not in the list";
  return *found;
}

}  // namespace kumo
