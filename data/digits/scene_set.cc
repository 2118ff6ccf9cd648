#include "data/digits/scene_set.h"

#include <algorithm>
#include <cstdio>
#include <span>
#include <string_view>
#include <thread>

#include <glog/logging.h>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/thread.h"
#include "data/pictures/png_file.h"

namespace kumo {
namespace {

constexpr int kCellSide = 32;
constexpr uint64_t kSceneStreams = 2;  // behind the streams of single digits
constexpr float kShareOfDigits = 0.6f;
constexpr uint8_t kLeastInk = 96;  // of a digit's pixels
constexpr int64_t kMostScenes = 100'000;

uint8_t Level(float level) { return static_cast<uint8_t>(std::clamp(level, 0.0f, 255.0f) + 0.5f); }

void PaintBackground(int side, Rng* rng, std::span<uint8_t> pixels) {
  constexpr float kNoise = 12;
  std::array<float, 3> level{}, down{}, across{};
  for (int c = 0; c < 3; ++c) {
    level[c] = rng->NextUniform(30, 110);
    down[c] = rng->NextUniform(-30, 30) / static_cast<float>(side);
    across[c] = rng->NextUniform(-30, 30) / static_cast<float>(side);
  }
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      for (int c = 0; c < 3; ++c) {
        const float slope = down[c] * static_cast<float>(y) + across[c] * static_cast<float>(x);
        pixels[(y * side + x) * 3 + c] = Level(level[c] + slope + kNoise * rng->NextNormal());
      }
    }
  }
}

// ink: of a digit. (top, left): its place.
void PaintDigit(std::span<const uint8_t> ink, int digit, int top, int left, int side, Rng* rng,
                DrawnScene* scene) {
  std::array<float, 3> colour{};
  for (float& level : colour) level = rng->NextUniform(130, 255);
  for (int y = 0; y < kDigitSide; ++y) {
    for (int x = 0; x < kDigitSide; ++x) {
      const uint8_t level = ink[y * kDigitSide + x];
      const int at = (top + y) * side + left + x;
      const float share = static_cast<float>(level) / 255;
      for (int c = 0; c < 3; ++c) {
        uint8_t& pixel = scene->pixels[at * 3 + c];
        pixel = Level((1 - share) * static_cast<float>(pixel) + share * colour[c]);
      }
      if (level >= kLeastInk) scene->mask[at] = static_cast<uint8_t>(digit + 1);
    }
  }
  scene->has[digit] = true;
}

std::string_view NameOf(DigitSplit split) {
  return split == DigitSplit::kTrain ? "train" : "validation";
}

// "train/images/00007.png", below the folder of the set.
std::string FileOf(DigitSplit split, const char* kind, int64_t index) {
  char name[32];
  std::snprintf(name, sizeof name, "/%05lld.png", static_cast<long long>(index));
  return std::string(NameOf(split)) + "/" + kind + name;
}

Status WriteBytes(FileSystem& files, const std::string& path, const std::vector<std::byte>& bytes) {
  KUMO_ASSIGN_OR_RETURN(const auto file, files.Create(path));
  KUMO_RETURN_IF_ERROR(file->Append(bytes));
  return file->Close();
}

// The scenes of one set.
class SceneWriter {
 public:
  SceneWriter(const SceneSetOptions& options, std::string folder, DigitSplit split, int64_t count)
      : options_(options), folder_(std::move(folder)), split_(split), rows_(count) {}

  Status Run() {
    for (const char* kind : {"images", "masks"}) {
      KUMO_RETURN_IF_ERROR(
          files_.CreateDirectories(JoinPath(JoinPath(folder_, NameOf(split_)), kind)));
      // Files of a larger set that is overwritten.
      for (int64_t i = std::ssize(rows_); i < kMostScenes; ++i) {
        const std::string path = JoinPath(folder_, FileOf(split_, kind, i));
        if (!files_.Exists(path)) break;
        KUMO_RETURN_IF_ERROR(files_.RemoveFile(path));
      }
    }
    const int64_t threads = std::min<int64_t>(options_.threads, std::ssize(rows_));
    std::vector<Status> failures(threads);
    std::vector<std::thread> helpers;
    for (int64_t t = 1; t < threads; ++t) {
      helpers.push_back(StartThread([&, t] { failures[t] = Write(t, threads); }));
    }
    failures[0] = Write(0, threads);
    for (std::thread& helper : helpers) helper.join();
    for (const Status& failure : failures) KUMO_RETURN_IF_ERROR(failure);
    std::string table = "image,mask";
    for (int d = 0; d < kDigitClasses; ++d) table += ",digit_" + std::to_string(d);
    table += "\n";
    for (const std::string& row : rows_) table += row;
    return WriteFileAtomically(files_, JoinPath(folder_, std::string(NameOf(split_)) + ".csv"),
                               table);
  }

 private:
  // Every `step`th scene from `first` on.
  Status Write(int64_t first, int64_t step) {
    for (int64_t i = first; i < std::ssize(rows_); i += step) {
      DrawnScene scene = DrawScene(options_.seed, split_, i, options_.side);
      const std::string image = FileOf(split_, "images", i), mask = FileOf(split_, "masks", i);
      KUMO_ASSIGN_OR_RETURN(const auto picture,
                            EncodePng({options_.side, options_.side, scene.pixels}));
      KUMO_RETURN_IF_ERROR(WriteBytes(files_, JoinPath(folder_, image), picture));
      KUMO_ASSIGN_OR_RETURN(const auto numbers,
                            EncodeMaskPng(options_.side, options_.side, scene.mask));
      KUMO_RETURN_IF_ERROR(WriteBytes(files_, JoinPath(folder_, mask), numbers));
      std::string& row = rows_[i];
      row = image + "," + mask;
      for (const bool has : scene.has) row += has ? ",1" : ",0";
      row += "\n";
    }
    return OkStatus();
  }

  const SceneSetOptions& options_;
  const std::string folder_;
  const DigitSplit split_;
  std::vector<std::string> rows_;  // of the table; each written by one thread
  PosixFileSystem files_;
};

}  // namespace

DrawnScene DrawScene(uint64_t seed, DigitSplit split, int64_t index, int side) {
  CHECK(side >= kLeastSceneSide && side <= kMostSceneSide) << side;
  const int across = side / kCellSide;
  const int cell = side / across;
  const int cells = across * across;
  DrawnScene scene;
  scene.pixels.resize(static_cast<size_t>(side) * side * 3);
  scene.mask.resize(static_cast<size_t>(side) * side);
  std::vector<uint8_t> ink(static_cast<size_t>(cells) * kDigitPixels);
  std::vector<uint8_t> digits(cells);
  DrawDigits(seed, split, index * cells, /*threads=*/1, ink, digits);
  Rng rng(seed, RngPurpose::kSynthetic, kSceneStreams + static_cast<uint64_t>(split),
          static_cast<uint64_t>(index));
  PaintBackground(side, &rng, scene.pixels);
  const auto always = static_cast<int>(rng.NextBelow(cells));
  for (int i = 0; i < cells; ++i) {
    if (rng.NextUniform() > kShareOfDigits && i != always) continue;
    const auto room = static_cast<uint64_t>(cell - kDigitSide + 1);
    const int top = i / across * cell + static_cast<int>(rng.NextBelow(room));
    const int left = i % across * cell + static_cast<int>(rng.NextBelow(room));
    PaintDigit(std::span(ink).subspan(static_cast<size_t>(i) * kDigitPixels, kDigitPixels),
               digits[i], top, left, side, &rng, &scene);
  }
  return scene;
}

Result<SceneSetOutcome> WriteSceneSet(const SceneSetOptions& options) {
  PosixFileSystem files;
  const std::string folder = JoinPath(options.directory, "scenes");
  const std::string marker = JoinPath(folder, "drawn.txt");
  const std::string drawn = "kumo-data scenes 1: train " + std::to_string(options.train) +
                            ", validation " + std::to_string(options.validation) + ", size " +
                            std::to_string(options.side) + ", seed " +
                            std::to_string(options.seed) + "\n";
  constexpr uint64_t kLongestNote = 1024;
  const Result<std::string> before = ReadWholeFile(files, marker, kLongestNote);
  if (before.ok() && *before == drawn && !options.force) return SceneSetOutcome::kAlreadyThere;
  if (files.Exists(folder) && !options.force) {
    return FailedPrecondition(
        folder +
        ": is there already, but was not drawn, or not to its end, with these "
        "options; name another folder, or overwrite it with --force");
  }
  if (before.ok()) KUMO_RETURN_IF_ERROR(files.RemoveFile(marker));
  KUMO_RETURN_IF_ERROR(SceneWriter(options, folder, DigitSplit::kTrain, options.train).Run());
  KUMO_RETURN_IF_ERROR(
      SceneWriter(options, folder, DigitSplit::kValidation, options.validation).Run());
  KUMO_RETURN_IF_ERROR(WriteFileAtomically(files, marker, drawn));
  return SceneSetOutcome::kDrawn;
}

}  // namespace kumo
