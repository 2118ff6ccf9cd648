#include "worker/inference/object_pictures.h"

#include <utility>
#include <vector>

#include "data/pictures/png_file.h"
#include "data/samples/pixel_kernels.h"

namespace kumo {

Result<ObjectPictures> ObjectPictures::Open(const std::string& folder, const InputImages& images) {
  KUMO_ASSIGN_OR_RETURN(PictureFolder made, PictureFolder::Open("--pictures", folder, images));
  return ObjectPictures(std::move(made));
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
  std::string path = folder_.PathFor(file);
  KUMO_RETURN_IF_ERROR(WritePng(canvas, path));
  return path;
}

}  // namespace kumo
