#include "worker/training/found_picture.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/job/protocol.h"
#include "data/pictures/drawing.h"
#include "data/pictures/png_file.h"
#include "data/samples/pixel_kernels.h"
#include "data/samples/resample.h"
#include "data/transforms/transform.h"

namespace kumo {
namespace {

constexpr int kMostShown = 4;
constexpr int64_t kShownSide = 256;  // larger pictures are reduced to this
constexpr int64_t kBetween = 4;      // pixels between two

struct Picture {
  int64_t height = 0;
  int64_t width = 0;
  std::vector<uint8_t> pixels;  // height x width x 3

  Canvas canvas() { return {height, width, pixels}; }
};

Box Scaled(const Box& box, float across, float down) {
  return {box.left * across, box.top * down, box.right * across, box.bottom * down};
}

// One sample of these extents, reduced.
Picture Draw(std::span<const uint8_t> planes, std::span<const int64_t> extents,
             const Detector::Compared& sample, std::span<const std::string> class_names) {
  const int64_t side = std::max({extents[1], extents[2], kShownSide});
  Picture picture;
  picture.height = std::max<int64_t>(1, extents[1] * kShownSide / side);
  picture.width = std::max<int64_t>(1, extents[2] * kShownSide / side);
  const int64_t size = picture.height * picture.width;
  std::vector<uint8_t> small(extents[0] * size);
  Resampler().Resample(planes, extents[0], extents[1], extents[2], {0, 0, extents[1], extents[2]},
                       picture.height, picture.width, small);
  picture.pixels.resize(size * kColours);
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t c = 0; c < kColours; ++c) {
      picture.pixels[i * kColours + c] = small[std::min(c, extents[0] - 1) * size + i];
    }
  }
  const float across = static_cast<float>(picture.width) / static_cast<float>(extents[2]);
  const float down = static_cast<float>(picture.height) / static_cast<float>(extents[1]);
  for (const GroundTruth& object : sample.objects) {
    DrawBox(picture.canvas(), Scaled(object.box, across, down),
            ColourOfClass(std::max(0, object.class_index)), 1);
  }
  std::vector<Detection> shown;
  for (const Detection& one : sample.found) {
    if (one.score < kShownScore) continue;
    shown.push_back(one);
    shown.back().box = Scaled(one.box, across, down);
  }
  DrawObjects(picture.canvas(), shown, class_names);
  return picture;
}

// `count` pictures of one size in two columns, on white.
Picture Together(std::span<const Picture> pictures) {
  const int64_t columns = std::min<int64_t>(2, std::ssize(pictures));
  const int64_t rows = (std::ssize(pictures) + columns - 1) / columns;
  const auto& [height, width, unused] = pictures[0];
  Picture all;
  all.height = rows * (height + kBetween) - kBetween;
  all.width = columns * (width + kBetween) - kBetween;
  all.pixels.assign(all.height * all.width * kColours, 255);
  for (int64_t i = 0; i < std::ssize(pictures); ++i) {
    const int64_t top = i / columns * (height + kBetween);
    const int64_t left = i % columns * (width + kBetween);
    for (int64_t y = 0; y < height; ++y) {
      std::copy_n(pictures[i].pixels.begin() + y * width * kColours, width * kColours,
                  all.pixels.begin() + ((top + y) * all.width + left) * kColours);
    }
  }
  return all;
}

}  // namespace

std::string DrawFound(const Fields& fields, const SampleBatch& batch,
                      std::span<const Detector::Compared> samples,
                      std::span<const std::string> class_names) {
  const int f = FindPicture(fields);
  if (f < 0 || fields[f].kind != FieldKind::kPicture || samples.empty()) return "";
  const std::vector<int64_t>& extents = fields[f].extents;
  const int64_t size = extents[0] * extents[1] * extents[2];
  std::vector<Picture> pictures;
  for (int64_t n = 0; n < std::min<int64_t>(kMostShown, std::ssize(samples)); ++n) {
    const std::span<const std::byte> bytes = batch.fields[f].subspan(n * size, size);
    pictures.push_back(Draw({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, extents,
                            samples[n], class_names));
  }
  // Fewer, if they take too much room.
  for (; !pictures.empty(); pictures.pop_back()) {
    const auto png = EncodePng(Together(pictures).canvas());
    if (!png.ok()) return "";
    if (std::ssize(*png) > kMostPictureBytes) continue;
    return {reinterpret_cast<const char*>(png->data()), png->size()};
  }
  return "";
}

}  // namespace kumo
