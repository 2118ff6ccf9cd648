// Object pictures: copies of images in which the detected objects are drawn, as PNG files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "common/base/status.h"
#include "common/detection/detections.h"
#include "data/pictures/drawing.h"
#include "data/readers/image_decoder.h"
#include "worker/inference/input_images.h"
#include "worker/inference/picture_folder.h"

namespace kumo {

// Owned and used by one thread.
class ObjectPictures {
 public:
  // Pictures go into this folder. The errors of PictureFolder.
  static Result<ObjectPictures> Open(const std::string& folder, const InputImages& images);

  // Writes the picture of an image and returns its path (PictureFolder). `content`: of the image's
  // file. The errors of ImageDecoder and WritePng.
  Result<std::string> Write(const std::string& file, std::span<const uint8_t> content,
                            std::span<const Detection> objects,
                            std::span<const std::string> class_names);

 private:
  explicit ObjectPictures(PictureFolder folder) : folder_(std::move(folder)) {}

  PictureFolder folder_;
  ImageDecoder decoder_;
};

}  // namespace kumo
