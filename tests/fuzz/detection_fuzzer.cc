// Annotations of objects: the first byte says whether in Pascal VOC's XML or in COCO's JSON.
#include <algorithm>
#include <cmath>

#include "data/readers/coco_annotations.h"
#include "data/readers/voc_annotation.h"
#include "tests/fuzz/fuzzer.h"

namespace {

void ParseXml(std::span<const uint8_t> xml) {
  const auto annotation = kumo::ParseVocAnnotation(xml);
  if (!annotation.ok()) return;
  kumo::fuzz::Require(annotation->width >= 0 && annotation->height >= 0, "a negative size");
  for (const kumo::VocObject& object : annotation->objects) {
    kumo::fuzz::Require(!object.name.empty(), "an object without a name");
    for (const float number : {object.xmin, object.ymin, object.xmax, object.ymax}) {
      kumo::fuzz::Require(std::isfinite(number), "no number");
    }
  }
}

void ParseJson(std::span<const uint8_t> json, size_t piece) {
  size_t at = 0;
  const auto annotations =
      kumo::ParseCocoAnnotations([&](std::span<uint8_t> out) -> kumo::Result<size_t> {
        // Less than wanted is the end.
        const size_t size = std::min({out.size(), json.size() - at, piece});
        std::ranges::copy(json.subspan(at, size), out.begin());
        at += size;
        return size;
      });
  if (!annotations.ok()) return;
  for (const kumo::CocoImage& image : annotations->images) {
    kumo::fuzz::Require(!image.file_name.empty(), "an image without a name");
    kumo::fuzz::Require(image.height >= 0 && (image.height > 0) == (image.width > 0),
                        "half a size");
  }
  for (const kumo::CocoObject& object : annotations->objects) {
    for (const float number : object.box) {
      kumo::fuzz::Require(std::isfinite(number), "no number");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const std::span bytes(data + 1, size - 1);
  if (data[0] % 2 == 0) {
    ParseXml(bytes);
  } else {
    ParseJson(bytes, size_t{1} + data[0]);
  }
  return 0;
}
