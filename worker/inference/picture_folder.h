// Picture folder: where pictures of input images go, under the images' names.
//
// Owned and used by one thread.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "common/base/status.h"
#include "worker/inference/input_images.h"

namespace kumo {

class PictureFolder {
 public:
  // Makes the folder if it is missing. InvalidArgument, beginning with the option that names it, if
  // it contains an input image, which a picture could replace; the errors of making it.
  static Result<PictureFolder> Open(const std::string& option, const std::string& folder,
                                    const InputImages& images);

  // DIR/photo.png for "holiday.zip/photo.jpg", or DIR/photo-2.png and so on if that name was given
  // out before.
  std::string PathFor(const std::string& file);

 private:
  explicit PictureFolder(std::string folder) : folder_(std::move(folder)) {}

  std::string folder_;
  std::set<std::string> given_;  // names
};

}  // namespace kumo
