#include "worker/training/stored_weights.h"

#include <algorithm>
#include <filesystem>

#include "common/checkpoint/checkpoint.h"

namespace kumo {

Result<Buffer<float>> LoadStoredWeights(const std::string& path, const ParameterLayout& layout) {
  PosixFileSystem files;
  std::filesystem::path folder = std::filesystem::path(path).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();  // "dir/"
  const std::string parent = folder.has_parent_path() ? folder.parent_path().string() : ".";
  KUMO_ASSIGN_OR_RETURN(const checkpoint::Manifest manifest,
                        VerifyCheckpoint(files, parent, folder.filename().string()));
  if (manifest.fingerprint() != layout.fingerprint()) {
    return FailedPrecondition("checkpoint " + path +
                              " holds the weights of another network than network.file");
  }
  KUMO_ASSIGN_OR_RETURN(const ShardSnapshot snapshot,
                        ReadSnapshot(files, parent, manifest, {0, layout.size()}));
  // Every weight is there, or the manifest is of something else: nothing is allocated for its word.
  int64_t wanted = 0;
  for (const TensorSpec& tensor : layout.tensors()) wanted += tensor.size();
  int64_t numbers = 0;
  for (const StateArray& array : snapshot.arrays) {
    if (array.kind == StateKind::kStart) numbers += static_cast<int64_t>(array.numbers.size());
  }
  if (numbers < wanted) {
    return DataLoss("checkpoint " + path + " holds " + std::to_string(numbers) + " weights of " +
                    std::to_string(wanted));
  }
  Buffer<float> weights(layout.size());
  // Where no weights are kept apart, the ones that blocks start from are evaluated, too.
  for (const StateKind kind : {StateKind::kStart, StateKind::kWeights}) {
    for (const StateArray& array : snapshot.arrays) {
      if (array.kind != kind) continue;
      std::copy(array.numbers.begin(), array.numbers.end(), weights.data() + array.begin);
    }
  }
  return weights;
}

}  // namespace kumo
