// Listed paths: paths of images in a list, and the folder or archive that they lead to.
//
// Paths are relative to the list's folder; paths into an archive have the form photos.zip@/1.jpg or
// photos.zip/1.jpg, all in the same archive. The first path decides whether they lead into an
// archive. Owned and used by one thread.
#pragma once

#include <string>

#include "common/base/status.h"
#include "data/readers/image_files.h"

namespace kumo {

class ListedPaths {
 public:
  // folder: the list's.
  explicit ListedPaths(std::string folder) : folder_(std::move(folder)) {}
  // For a list in an archive: paths are relative to a folder ("": none) in it.
  ListedPaths(std::string folder, ImageContainer archive)
      : folder_(std::move(folder)), container_(std::move(archive)), known_(true), inside_(true) {}

  // The container's name for the next path. InvalidArgument, which begins with the path, if it
  // leads elsewhere than the first one.
  Result<std::string> Take(std::string path);

  const ImageContainer& container() const { return container_; }

 private:
  std::string folder_;
  ImageContainer container_;  // any folders, or an archive
  bool known_ = false;        // if the container is
  bool inside_ = false;       // if the list lies in the container
};

}  // namespace kumo
