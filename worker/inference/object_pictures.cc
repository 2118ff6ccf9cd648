#include "worker/inference/object_pictures.h"

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "common/base/file.h"
#include "data/pictures/png_file.h"
#include "data/samples/pixel_kernels.h"

namespace kumo {
Result<ObjectPictures> ObjectPictures::Open(const std::string& folder, const InputImages& images) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return FailedPrecondition(folder + ": " + error.message());
  for (const std::string& input : images.folders()) {
    if (!std::filesystem::equivalent(folder, input, error)) continue;
    return InvalidArgument("--pictures " + folder +
                           ": the folder contains input images, which pictures could replace; "
                           "choose another one");
  }
  return ObjectPictures(folder);
}

Result<std::string> ObjectPictures::Write(const std::string& file, std::span<const uint8_t> content,
                                          std::span<const Detection> objects,
                                          std::span<const std::string> class_names) {
  KUMO_ASSIGN_OR_RETURN(const ImageHeader header, ImageDecoder::ReadHeader(content));
  KUMO_ASSIGN_OR_RETURN(const std::span<const uint8_t> planes, decoder_.Decode(content, kColours));
  const int64_t size = header.height * header.width;
  std::vector<uint8_t> pixels(planes.size());
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t c = 0; c < kColours; ++c) pixels[i * kColours + c] = planes[c * size + i];
  }
  const Canvas canvas = {header.height, header.width, pixels};
  DrawObjects(canvas, objects, class_names);
  const std::string stem = std::filesystem::path(file).stem();
  std::string name = stem + ".png";
  for (int n = 2; !written_.insert(name).second; ++n)
    name = stem + "-" + std::to_string(n) + ".png";
  std::string path = JoinPath(folder_, name);
  KUMO_RETURN_IF_ERROR(WritePng(canvas, path));
  return path;
}

}  // namespace kumo
