#include "worker/inference/object_pictures.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "common/base/file.h"
#include "data/pictures/png_file.h"
#include "data/samples/pixel_kernels.h"

namespace kumo {
namespace {

// Shorter side of an image whose lines and letters have their plain size.
constexpr int64_t kPlainSide = 250;

std::string LabelOf(const Detection& object, std::span<const std::string> class_names) {
  const bool named = object.class_index < std::ssize(class_names);
  const std::string name =
      named ? class_names[object.class_index] : std::to_string(object.class_index);
  return name + " " + std::to_string(std::lround(100 * object.score)) + "%";
}

}  // namespace

void DrawObjects(const Canvas& canvas, std::span<const Detection> objects,
                 std::span<const std::string> class_names) {
  const int64_t enlarged =
      std::max<int64_t>(1, (std::min(canvas.height, canvas.width) + kPlainSide / 2) / kPlainSide);
  for (auto object = objects.rbegin(); object != objects.rend(); ++object) {
    const Colour colour = ColourOfClass(object->class_index);
    DrawBox(canvas, object->box, colour, 2 * enlarged);
    const auto corner = [&](float place, int64_t last) {
      const auto limit = static_cast<float>(std::max<int64_t>(0, last));
      return static_cast<int64_t>(std::lround(std::clamp(place, 0.0f, limit)));
    };
    DrawLabel(canvas, corner(object->box.top, canvas.height - kLabelHeight * enlarged),
              corner(object->box.left, canvas.width - 1), LabelOf(*object, class_names), colour,
              enlarged);
  }
}

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
