// Initial weights of a new job from another source (network.initial_weights): the checkpoint of
// another job, or a tensor file that another program may have written. Tensors are matched by name
// and shape.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/status.h"
#include "common/job/parameter_layout.h"
#include "common/job/shard_map.h"
#include "common/settings/experiment.h"
#include "proto/checkpoint.pb.h"
#include "worker/session/actions.h"

namespace kumo {

// Copies each tensor of network.initial_weights whose name (after network.initial_names) and shape
// match a tensor of `layout` into `weights`, layout.size() floats; other tensors keep their values.
// A checkpoint (source_folder.h) provides its evaluated weights bit for bit; a file (.safetensors
// or .npz) is rounded to float32. After an error, some weights may be overwritten. Returns the
// taken tensors, the reasons why others were not taken, the unused tensors of the source, and notes
// on other pixels than those for which its weights were trained, as a checkpoint or the file of
// names says.
//
// FailedPrecondition if fewer than half of the network's tensors fit (with network.initial_partial:
// none), or if a checkpoint of release 0.1, which has no tensor names, is of another network;
// otherwise the errors of VerifyCheckpoint, ReadTensorFile and
// TensorNames::Read.
Result<checkpoint::Origin> TransferWeights(const Experiment& experiment,
                                           const ParameterLayout& layout, std::span<float> weights);

// The file that network.initial_names names: a path, or a word such as `torchvision`, for the file
// NETWORK.torchvision.names beside NETWORK.pbtxt.
std::string NamesFileOf(const Experiment::Network& network);
// The words for which there are such files, sorted.
std::vector<std::string> WordsForNames(const Experiment::Network& network);

// The initial weights of a job by chunk: `weights` (layout.size() floats), with tensors of
// network.initial_weights if that is set. The errors of TransferWeights.
Result<InitialWeights> MakeInitialWeights(const Experiment& experiment,
                                          const ParameterLayout& layout, const ShardMap& map,
                                          Buffer<float> weights);

// Returns the evaluated weights (layout.size() floats) of the checkpoint in the folder `path`
// (".../checkpoints/round-..."), which is verified. FailedPrecondition if they are of another
// network; otherwise the errors of VerifyCheckpoint.
Result<Buffer<float>> LoadStoredWeights(const std::string& path, const ParameterLayout& layout);

// Tensor names: for each tensor of the network its name in the source (network.initial_names). The
// text file has a line `source name = network name` for each tensor with another name there, and
// may say with which settings of pixels the source was trained: `pixels data.mean = 123,117,104`;
// '#' begins a comment. Immutable; thread-safe.
class TensorNames {
 public:
  // All names are equal.
  explicit TensorNames(const ParameterLayout& layout);
  // Reads the file. NotFound if it cannot be read; InvalidArgument "names.txt:3: ..." for a
  // malformed line, an unknown network name, a repeated name, or a setting that is none of pixels.
  static Result<TensorNames> Read(const std::string& path, const ParameterLayout& layout);

  // The index of the tensor with this name in the source, or, for a normalisation, with PyTorch's
  // word for it ("bn1.weight" for "bn1.scale"); -1 if there is none.
  int Find(const std::string& name) const;
  // The name of tensor i in the source.
  const std::string& NameOf(int i) const { return names_[i]; }
  // The settings of the source's pixels and their values, as the file has them.
  const std::vector<std::pair<std::string, std::string>>& pixels() const { return pixels_; }

 private:
  std::vector<std::string> names_;  // in the source, by tensor
  std::map<std::string, int, std::less<>> tensors_;
  std::vector<std::pair<std::string, std::string>> pixels_;
};

}  // namespace kumo
