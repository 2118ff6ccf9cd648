#include "common/checkpoint/source_checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>

#include "common/base/shell_word.h"
#include "common/checkpoint/checkpoint.h"

namespace kumo {
namespace {

constexpr std::string_view kOfPyTorch[] = {".pt", ".pth", ".bin", ".ckpt"};
constexpr std::string_view kOfOthers[] = {".onnx",  ".h5",  ".hdf5",      ".keras",  ".pb",
                                          ".npy",   ".pkl", ".gguf",      ".params", ".tflite",
                                          ".model", ".dnn", ".caffemodel"};

bool IsIn(std::span<const std::string_view> endings, const std::string& ending) {
  return std::ranges::find(endings, ending) != endings.end();
}

// For a file of another program; "" for other paths.
std::string HowToConvert(const std::string& path) {
  const std::filesystem::path file(path);
  const std::string ending = file.extension().string();
  if (IsIn(kOfPyTorch, ending)) {
    return "; " + ending +
           " is PyTorch's format, which Kumo does not read; convert a state_dict: " +
           "python3 -c \"import sys, torch; from safetensors.torch import save_file; " +
           "save_file(torch.load(sys.argv[1], map_location='cpu', weights_only=True), " +
           "sys.argv[2])\" " + ShellWord(path) + " " +
           ShellWord(file.stem().string() + ".safetensors") + " (docs/export.md)";
  }
  if (IsIn(kOfOthers, ending)) {
    return "; " + ending +
           " is a format that Kumo does not read: save the tensors by their names "
           "as .safetensors or, with numpy.savez, as .npz (docs/export.md)";
  }
  return "";
}

}  // namespace

CheckpointFolder FolderOfCheckpoint(const std::string& path) {
  std::error_code error;
  std::filesystem::path folder = NormalPath(path);
  if (!folder.has_filename()) folder = folder.parent_path();  // "dir/"
  const bool named = folder.filename() != "." && folder.filename() != "..";
  if (!named || std::filesystem::is_symlink(folder, error)) {
    const std::filesystem::path target = std::filesystem::canonical(folder, error);
    if (!error) folder = target;
  }
  const std::string parent = folder.has_parent_path() ? folder.parent_path().string() : ".";
  return {parent, folder.filename().string()};
}

Result<CheckpointFolder> FindCheckpointAt(FileSystem& files, const std::string& path) {
  // "." has no file name.
  std::filesystem::path folder = NormalPath(path);
  if (folder == ".") folder = std::filesystem::current_path();
  if (!folder.has_filename()) folder = folder.parent_path();  // "dir/"
  if (files.Exists(JoinPath(folder.string(), "MANIFEST"))) {
    return FolderOfCheckpoint(folder.string());
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
                  "with checkpoints" + HowToConvert(path));
}

bool HasUnreadEnding(const std::string& path) {
  const std::string ending = std::filesystem::path(path).extension().string();
  return IsIn(kOfPyTorch, ending) || IsIn(kOfOthers, ending);
}

}  // namespace kumo
