// Scenes: pictures of several drawn digits on a noisy background, with the class of each pixel, to
// try masks and several labels of a sample without a download.
//
// A scene is cut into cells of at least 32 x 32 pixels; most hold a digit (synthetic_digits.h) of
// 28 x 28 pixels at a random place, in a bright colour. DrawnScene `index` of a set depends on
// (seed, split, index, side) alone.
//
// Pure functions, and a writer of files; thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "data/digits/synthetic_digits.h"

namespace kumo {

inline constexpr int kDigitClasses = 10;
inline constexpr int kLeastSceneSide = 32;
inline constexpr int kMostSceneSide = 512;

struct DrawnScene {
  std::vector<uint8_t> pixels;  // side x side x 3: red, green, blue
  std::vector<uint8_t> mask;    // side x side: 0 background, d + 1 for digit d
  std::array<bool, kDigitClasses> has{};
};

// Requires a side from kLeastSceneSide to kMostSceneSide.
DrawnScene DrawScene(uint64_t seed, DigitSplit split, int64_t index, int side);

struct SceneSetOptions {
  std::string directory;  // the files go to directory/scenes/
  int64_t train = 2000;   // scenes
  int64_t validation = 400;
  int side = 64;  // of a picture, in pixels
  uint64_t seed = 1;
  int threads = 1;
  bool force = false;  // overwrite another set
};

enum class SceneSetOutcome { kDrawn, kAlreadyThere };

// Writes, for train and validation, train/images/00000.png, ..., train/masks/00000.png, ... (with a
// palette) and train.csv with the columns image, mask, and digit_0 to digit_9 (0 or 1), unless all
// were drawn with these options. FailedPrecondition if another set is there (unless force);
// otherwise the errors of the file system.
Result<SceneSetOutcome> WriteSceneSet(const SceneSetOptions& options);

}  // namespace kumo
