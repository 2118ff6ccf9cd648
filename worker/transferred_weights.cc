#include "worker/transferred_weights.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "common/base/buffer.h"
#include "common/job/checkpoint/checkpoint.h"
#include "common/job/checkpoint/source_folder.h"
#include "common/job/checkpoint/tensor_list.h"
#include "worker/stored_weights.h"

namespace kumo {
namespace {

// Why a tensor of the checkpoint is not what one of the network begins with; "" where it is.
std::string Misfit(const TensorSpec& there, const TensorSpec& here) {
  if (there.shape != here.shape) return there.ShapeText() + " there, " + here.ShapeText() + " here";
  const bool statistics = there.segment == Segment::kStatistics;
  if (statistics != (here.segment == Segment::kStatistics)) {
    return statistics ? "a statistic there, trained here" : "trained there, a statistic here";
  }
  return "";
}

std::string NamesOf(const ParameterLayout& layout) {
  constexpr size_t kShown = 4;
  std::string names;
  for (size_t i = 0; i < std::min(kShown, layout.tensors().size()); ++i) {
    const TensorSpec& tensor = layout.tensors()[i];
    names += (names.empty() ? "" : ", ") + tensor.name + " " + tensor.ShapeText();
  }
  return layout.tensors().size() > kShown ? names + ", ..." : names;
}

// A checkpoint of release 0.1 holds this network, or nobody knows what.
Result<ParameterLayout> SourceLayout(const checkpoint::Manifest& manifest,
                                     const ParameterLayout& layout) {
  if (HasTensors(manifest)) return LayoutOf(manifest);
  if (manifest.fingerprint() == layout.fingerprint()) return layout;
  return FailedPrecondition(
      "it was written by release 0.1, which did not say what its tensors are, and is of another "
      "network");
}

}  // namespace

Result<checkpoint::Origin> TransferWeights(const std::string& path, const ParameterLayout& layout,
                                           std::span<float> weights) {
  PosixFileSystem files;
  KUMO_ASSIGN_OR_RETURN(const CheckpointFolder folder, FindCheckpointAt(files, path));
  KUMO_ASSIGN_OR_RETURN(const checkpoint::Manifest manifest,
                        VerifyCheckpoint(files, folder.parent, folder.name));
  const Result<ParameterLayout> source = SourceLayout(manifest, layout);
  if (!source.ok()) return source.status().WithContext("checkpoint " + folder.path());
  KUMO_ASSIGN_OR_RETURN(const Buffer<float> stored, LoadStoredWeights(folder.path(), *source));

  std::map<std::string_view, int> by_name;
  for (size_t i = 0; i < source->tensors().size(); ++i) {
    by_name[source->tensors()[i].name] = static_cast<int>(i);
  }
  checkpoint::Origin origin;
  origin.set_checkpoint(folder.path());
  for (size_t i = 0; i < layout.tensors().size(); ++i) {
    const TensorSpec& tensor = layout.tensors()[i];
    const auto found = by_name.find(tensor.name);
    const std::string why = found == by_name.end()
                                ? "the checkpoint has no such tensor"
                                : Misfit(source->tensors()[found->second], tensor);
    if (!why.empty()) {
      origin.add_left(tensor.name + ": " + why);
      continue;
    }
    const Range from = source->tensor(found->second);
    std::copy_n(stored.data() + from.begin, from.size(),
                weights.begin() + layout.tensor(static_cast<int>(i)).begin);
    origin.add_taken(tensor.name);
  }
  origin.set_tensors(static_cast<int>(layout.tensors().size()));
  origin.set_tensors_taken(origin.taken_size());
  if (origin.taken().empty()) {
    return FailedPrecondition("no tensor of checkpoint " + folder.path() +
                              " has the name and the shape of one of the network: it has " +
                              NamesOf(*source) + "; the network has " + NamesOf(layout));
  }
  return origin;
}

}  // namespace kumo
