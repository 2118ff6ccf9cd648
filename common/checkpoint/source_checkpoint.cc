#include "common/checkpoint/source_checkpoint.h"

#include <algorithm>
#include <filesystem>

#include "common/base/printable.h"
#include "common/checkpoint/checkpoint.h"

namespace kumo {

Result<CheckpointFolder> FindCheckpointAt(FileSystem& files, const std::string& path) {
  // "." has no file name.
  std::filesystem::path folder = std::filesystem::path(path).lexically_normal();
  if (folder == ".") folder = std::filesystem::current_path();
  if (!folder.has_filename()) folder = folder.parent_path();  // "dir/"
  if (files.Exists(JoinPath(folder.string(), "MANIFEST"))) {
    const std::string parent = folder.has_parent_path() ? folder.parent_path().string() : ".";
    return CheckpointFolder{parent, folder.filename().string()};
  }
  const std::string below = JoinPath(folder.string(), "checkpoints");
  for (const std::string& parent : {below, folder.string()}) {
    if (!files.Exists(parent)) continue;
    const Result<VerifiedCheckpoint> newest = NewestVerified(files, parent);
    if (newest.ok()) return CheckpointFolder{parent, newest->name};
    const auto names = ListCheckpoints(files, parent);
    if (parent == below || (names.ok() && !names->empty())) return newest.status();
  }
  return NotFound(path +
                  " is neither a checkpoint's folder (round-...) nor a job's output folder " +
                  "with checkpoints");
}

namespace {

constexpr int kMostTexts = 200;
constexpr size_t kLongest = 300;

template <typename Texts>
void Shorten(const Texts& texts, Texts* out) {
  const int shown = texts.size() > kMostTexts ? kMostTexts - 1 : texts.size();
  for (int i = 0; i < shown; ++i) *out->Add() = Printable(texts[i], kLongest);
  if (shown < texts.size()) *out->Add() = "and " + std::to_string(texts.size() - shown) + " more";
}

}  // namespace

checkpoint::Origin Excerpt(const checkpoint::Origin& origin) {
  checkpoint::Origin excerpt;
  excerpt.set_tensors(origin.tensors());
  excerpt.set_tensors_taken(origin.tensors_taken());
  excerpt.set_checkpoint(Printable(origin.checkpoint(), kLongest));
  Shorten(origin.taken(), excerpt.mutable_taken());
  Shorten(origin.left(), excerpt.mutable_left());
  Shorten(origin.unused(), excerpt.mutable_unused());
  return excerpt;
}

std::vector<std::string> LinesOf(const checkpoint::Origin& origin) {
  std::vector<std::string> lines = {"starts with " + std::to_string(origin.tensors_taken()) +
                                    " of " + std::to_string(origin.tensors()) + " tensors from " +
                                    origin.checkpoint()};
  for (const std::string& left : origin.left()) lines.push_back("initialised as usual: " + left);
  for (const std::string& unused : origin.unused()) lines.push_back("not used: " + unused);
  return lines;
}

}  // namespace kumo
