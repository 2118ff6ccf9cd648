// Model task: use of a trained network by kumo-worker instead of training (options --export,
// --predict, --detect and --generate), or conversion of an ONNX model (--import).
//
// Owned by main, filled by a CommandLine, used once; one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/settings/command_line.h"
#include "common/settings/config_file.h"
#include "common/settings/output_format.h"
#include "worker/inference/generation.h"
#include "worker/inference/model_export.h"
#include "worker/inference/model_import.h"
#include "worker/inference/object_detection.h"

namespace kumo {

class ModelTask {
 public:
  void AddTo(CommandLine* line);
  // True if one of the five options was given.
  bool asked() const {
    return !out_.empty() || !images_.empty() || detects() || generates() ||
           !import_.network.empty();
  }
  // InvalidArgument if options contradict each other.
  Status Check() const;
  // Runs the task and prints its result. file: ModelName::file, or the ONNX model.
  Status Run(const std::string& file, const std::vector<std::string>& sets,
             const Variables& variables) const;

 private:
  bool detects() const { return !detection_.inputs.empty(); }
  bool generates() const { return !prompt_.empty() || !prompts_file_.empty(); }
  ExportRequest export_request() const {
    return {out_, export_format_, fold_batch_norm_, pixels_, nms_};
  }
  Status Continue(const ModelName& name) const;
  Status Import(const std::string& file) const;

  std::string checkpoint_;
  std::string out_;
  std::vector<std::string> images_;
  DetectRequest detection_;
  std::string prompt_, prompts_file_;
  GenerationRequest generation_;  // without prompts
  std::optional<ExportFormat> export_format_;
  std::optional<AnswerFormat> answer_format_;
  int top_ = 5;
  std::string output_;
  std::string masks_;
  bool fold_batch_norm_ = false;
  bool pixels_ = false;
  bool nms_ = false;
  ImportRequest import_;
};

}  // namespace kumo
