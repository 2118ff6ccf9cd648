// What kumo-worker does with a trained network instead of training one: its options --export,
// --predict and --generate, and what they ask for.
//
// Filled by a CommandLine; used once.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/settings/command_line.h"
#include "common/settings/variables.h"
#include "worker/inference/generation.h"

namespace kumo {

class ModelUse {
 public:
  void AddTo(CommandLine* line);
  // Whether one of them was asked for.
  bool asked() const { return !out_.empty() || !images_.empty() || !generation_.prompt.empty(); }
  // InvalidArgument where options do not go with each other.
  Status Check() const;
  // Prints what comes out. file: as ModelName's.
  Status Run(const std::string& file, const std::vector<std::string>& sets,
             const Variables& variables) const;

 private:
  std::string checkpoint_;
  std::string out_;
  std::vector<std::string> images_;
  GenerationRequest generation_;
  std::string format_;
  int top_ = 5;
  std::string output_;
  bool fold_batch_norm_ = false;
  bool pixels_ = false;
};

}  // namespace kumo
