#include "worker/inference/picture_folder.h"

#include <filesystem>
#include <system_error>

#include "common/base/file.h"

namespace kumo {

Result<PictureFolder> PictureFolder::Open(const std::string& option, const std::string& folder,
                                          const InputImages& images) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return FailedPrecondition(folder + ": " + error.message());
  for (const std::string& input : images.folders()) {
    if (!std::filesystem::equivalent(folder, input, error)) continue;
    return InvalidArgument(option + " " + folder +
                           ": the folder contains input images, which pictures could replace; "
                           "choose another one");
  }
  return PictureFolder(folder);
}

std::string PictureFolder::PathFor(const std::string& file) {
  const std::string stem = std::filesystem::path(file).stem();
  std::string name = stem + ".png";
  for (int n = 2; !given_.insert(name).second; ++n) name = stem + "-" + std::to_string(n) + ".png";
  return JoinPath(folder_, name);
}

}  // namespace kumo
