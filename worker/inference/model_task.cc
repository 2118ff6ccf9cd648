#include "worker/inference/model_task.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "common/base/terminal.h"
#include "worker/inference/model_export.h"
#include "worker/inference/prediction.h"

namespace kumo {

void ModelTask::AddTo(CommandLine* line) {
  line->AddOption("export", "FILE", {.not_empty = true},
                  "Export the weights of --checkpoint, or the network with them, to FILE, and exit",
                  &out_, "nothing");
  line->AddRepeated(
      "predict", "FILE",
      "Classify an image, the images of a folder or an archive, or the samples of a file "
      "in CNTK's text format with --checkpoint, and exit; repeatable",
      &images_);
  line->AddOption("checkpoint", "DIR", Allowed(),
                  "With --export, --predict and --generate: the checkpoint; FILE may name it too",
                  &checkpoint_, "FILE");
  line->AddOption("format", "FORMAT", Allowed(),
                  "With --export: onnx, safetensors, npz; with --predict: table, json, csv",
                  &format_, "from the file name's ending; table");
  line->AddFlag("fold-batch-norm",
                "With --export: fold batch normalisation into the layer before it",
                &fold_batch_norm_);
  line->AddFlag("pixels", "With --export to ONNX: the model takes pixels, 0 to 255", &pixels_);
  line->AddOption("generate", "TEXT", {.not_empty = true, .lines = true},
                  "Continue a text with the language model of --checkpoint, and exit",
                  &generation_.prompt, "nothing");
  line->AddOption("tokens", "N", {.min = 1, .max = 1'000'000},
                  "With --generate: number of tokens to add", &generation_.tokens);
  line->AddOption("temperature", "T", {.min = 0, .max = 100},
                  "With --generate: sampling temperature; 0 takes the likeliest token",
                  &generation_.temperature);
  line->AddOption("most-likely", "K", {.min = 0, .max = 1'000'000},
                  "With --generate: sample from the K likeliest tokens (top-k); 0: from all",
                  &generation_.most_likely);
  line->AddOption("seed", "N", {.min = 0, .max = 2'000'000'000}, "With --generate: sampling seed",
                  &generation_.seed);
  line->AddOption("top", "N", {.min = 1, .max = 1'000'000},
                  "With --predict: classes to print for each sample", &top_);
  line->AddOption("output", "NAME", Allowed(), "With --predict: output of the network", &output_,
                  "its first one");
}

Status ModelTask::Check() const {
  if (!asked()) return OkStatus();
  const int asked =
      (out_.empty() ? 0 : 1) + (images_.empty() ? 0 : 1) + (generation_.prompt.empty() ? 0 : 1);
  if (asked > 1) {
    return InvalidArgument("--export, --predict and --generate exclude each other");
  }
  if (!out_.empty()) {
    const std::string known[] = {"", "onnx", "safetensors", "npz"};
    if (std::ranges::count(known, format_) == 0) {
      return InvalidArgument("--format " + format_ + ": must be onnx, safetensors or npz");
    }
    return FormatOf({out_, format_, fold_batch_norm_, pixels_}).status();
  }
  const std::string known[] = {"", "table", "json", "csv"};
  if (std::ranges::count(known, format_) > 0) return OkStatus();
  return InvalidArgument("--format " + format_ + ": must be table, json or csv");
}

Status ModelTask::Run(const std::string& file, const std::vector<std::string>& sets,
                      const Variables& variables) const {
  const ModelName name = {file, sets, checkpoint_, variables};
  if (!out_.empty()) {
    KUMO_ASSIGN_OR_RETURN(const std::string said,
                          ExportModel(name, {out_, format_, fold_batch_norm_, pixels_}));
    constexpr int kHanging = 2;
    std::fputs(Folded(said + "\n", TerminalColumns(STDOUT_FILENO), kHanging).c_str(), stdout);
    return OkStatus();
  }
  if (!generation_.prompt.empty()) {
    const auto say = [](std::string_view text) {
      std::fwrite(text.data(), 1, text.size(), stdout);
      std::fflush(stdout);  // a reader of a pipe sees each token
    };
    const Status status = Generate(name, generation_, say);
    if (status.ok()) std::fputs("\n", stdout);
    return status;
  }
  KUMO_ASSIGN_OR_RETURN(const Predictions predictions, Predict(name, {images_, top_, output_}));
  std::fputs(TextOf(predictions, format_).c_str(), stdout);
  return OkStatus();
}

}  // namespace kumo
