#include "data/readers/registry.h"

#include <array>

#include "data/readers/cifar.h"
#include "data/readers/ctf.h"
#include "data/readers/idx.h"
#include "data/readers/image_folder.h"
#include "data/readers/image_map.h"
#include "data/readers/text.h"

namespace kumo {
namespace {

constexpr std::array kReaders = {
    Reader{"idx", "IDX images and labels as MNIST has them, plain or gzip'd", true, false, false,
           OpenIdx, MeasureIdx},
    Reader{"image_folder", "JPEG and PNG in one folder per class, maybe inside an archive", false,
           true, false, OpenImageFolder, MeasureImageFolder},
    Reader{"image_map", "a text file of images' paths and classes, as CNTK has them", false, false,
           false, OpenImageMap, MeasureImageMap},
    Reader{"cifar", "the binary files of CIFAR-10 and CIFAR-100", false, false, false, OpenCifar,
           MeasureCifar},
    Reader{"ctf", "CNTK's text format, plain or gzip'd", false, false, false, OpenCtf, MeasureCtf},
    Reader{"text", "a text, in windows of its characters or bytes", false, false, true, OpenText,
           MeasureText},
};

}  // namespace

std::span<const Reader> Readers() { return kReaders; }

Result<const Reader*> FindReader(std::string_view name) {
  std::string known;
  for (const Reader& reader : kReaders) {
    if (reader.name == name) return &reader;
    known += (known.empty() ? "" : ", ") + std::string(reader.name);
  }
  return FailedPrecondition("data.reader = " + std::string(name) +
                            ": there is no such reader; choose one of: " + known);
}

}  // namespace kumo
