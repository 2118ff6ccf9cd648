// Object pictures: copies of images in which the detected objects are drawn, as PNG files.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>

#include "common/base/status.h"
#include "common/detection/detections.h"
#include "data/pictures/drawing.h"
#include "data/readers/image_decoder.h"
#include "worker/inference/input_images.h"

namespace kumo {

// Owned and used by one thread.
class ObjectPictures {
 public:
  // Pictures go into this folder, which is made if it is missing. InvalidArgument if it contains an
  // input image, which a picture could replace; the errors of making it.
  static Result<ObjectPictures> Open(const std::string& folder, const InputImages& images);

  // Writes photo.png for "holiday.zip/photo.jpg", or photo-2.png and so on if this run has written
  // that one, and returns its path. `content`: of the image's file. The errors of ImageDecoder and
  // WritePng.
  Result<std::string> Write(const std::string& file, std::span<const uint8_t> content,
                            std::span<const Detection> objects,
                            std::span<const std::string> class_names);

 private:
  explicit ObjectPictures(std::string folder) : folder_(std::move(folder)) {}

  std::string folder_;
  std::set<std::string> written_;  // names
  ImageDecoder decoder_;
};

}  // namespace kumo
