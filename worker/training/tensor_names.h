// What the tensors of a network are called where its first weights come from
// (network.initial_names): a text file with a line `its name = ours` for each that has another
// name there; '#' begins a comment.
//
// Immutable once read; thread-safe.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/parameter_layout.h"

namespace kumo {

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
