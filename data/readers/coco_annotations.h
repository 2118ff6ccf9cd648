// Annotations of a set of images in COCO's JSON for object detection ("instances_*.json"):
//
//   {"images": [{"id": 9, "file_name": "000000000009.jpg", "height": 480, "width": 640}, ...],
//    "annotations": [{"image_id": 9, "category_id": 51, "bbox": [1.1, 187.7, 611.6, 285.8],
//                     "iscrowd": 0}, ...],
//    "categories": [{"id": 51, "name": "bowl"}, ...]}
//
// Values and a function; thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace kumo {

struct CocoImage {
  int64_t id = 0;
  std::string file_name;
  // 0: unknown
  int64_t height = 0;
  int64_t width = 0;
  bool operator==(const CocoImage&) const = default;
};

struct CocoObject {
  int64_t image_id = 0;
  int64_t category_id = 0;
  std::array<float, 4> box{};  // left, top, right, bottom: positions in pixels
  bool crowd = false;          // a group of objects
  bool operator==(const CocoObject&) const = default;
};

struct CocoCategory {
  int64_t id = 0;
  std::string name;
  bool operator==(const CocoCategory&) const = default;
};

// In the order of the file.
struct CocoAnnotations {
  std::vector<CocoImage> images;
  std::vector<CocoObject> objects;
  std::vector<CocoCategory> categories;
};

// Fills the piece; returns the number of bytes, which is smaller only at the end.
using ReadPiece = std::function<Result<size_t>(std::span<uint8_t> piece)>;

// Reads the text once and keeps the values above, not the text: segmentations and other fields are
// passed over. Errors are without the file's name, and end the reading: InvalidArgument if the text
// is no JSON, is cut off, nests more than 64 levels or has a string of more than 16 MiB, if an
// entry lacks a value or has one of another kind or out of range, if two images or two categories
// have one id, or if an image has more than kMostObjects objects (detection_set.h);
// FailedPrecondition if the values need more than `room` bytes of memory; the errors of `read`.
Result<CocoAnnotations> ParseCocoAnnotations(const ReadPiece& read, int64_t room = INT64_MAX);

}  // namespace kumo
