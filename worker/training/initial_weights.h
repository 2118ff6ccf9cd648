// Weights for a new job from elsewhere, by tensors' names: from the checkpoint of another one, or
// from a file of tensors that another program may have written (network.initial_weights,
// network.initial_names).
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/status.h"
#include "common/job/parameter_layout.h"
#include "common/settings/experiment.h"
#include "proto/checkpoint.pb.h"

namespace kumo {

// Writes each tensor of network.initial_weights that has the name (or, by tensor_names.h, is
// called otherwise there) and the shape of one of `layout` over that one's, and leaves the others
// as they are. From a checkpoint (source_folder.h), whose evaluated weights these are, bit for bit;
// from a file, which ends in .safetensors or .npz, rounded to float32. weights: layout.size()
// floats, some of which may have been written where there is an error. What was taken, why others
// were not, and what of there was not used.
//
// FailedPrecondition where no tensor fits, and where a checkpoint of release 0.1, which does not
// say what its tensors are, is of another network; otherwise what VerifyCheckpoint,
// ReadTensorFile and TensorNames::Read say.
Result<checkpoint::Origin> TransferWeights(const Experiment::Network& network,
                                           const ParameterLayout& layout, std::span<float> weights);

// The weights that a checkpoint holds, as one flat vector.
// The weights that are evaluated (layout.size() floats) of the checkpoint in the folder `path`
// (".../checkpoints/round-..."), which is verified. FailedPrecondition when they are of another
// network; otherwise what VerifyCheckpoint says.
Result<Buffer<float>> LoadStoredWeights(const std::string& path, const ParameterLayout& layout);

// What the tensors of a network are called where its first weights come from
// (network.initial_names): a text file with a line `its name = ours` for each that has another
// name there; '#' begins a comment.
//
// Immutable once read; thread-safe.
class TensorNames {
 public:
  // All are called the same.
  explicit TensorNames(const ParameterLayout& layout);
  // As the file says. NotFound where it cannot be read; InvalidArgument "names.txt:3: ..." for what
  // is no such line, for a name of ours that the network does not have, and for one that comes
  // twice.
  static Result<TensorNames> Read(const std::string& path, const ParameterLayout& layout);

  // The tensor that is called so there; -1 where none is.
  int Find(const std::string& name) const;
  // What tensor i is called there.
  const std::string& NameOf(int i) const { return names_[i]; }

 private:
  std::vector<std::string> names_;  // there, by tensor
  std::map<std::string, int, std::less<>> tensors_;
};


}  // namespace kumo
