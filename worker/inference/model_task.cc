#include "worker/inference/model_task.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <sstream>
#include <string_view>

#include "common/base/file.h"
#include "common/base/json.h"
#include "common/base/terminal.h"
#include "worker/inference/prediction.h"

namespace kumo {
namespace {

constexpr uint64_t kMostPromptsMib = 16;

// Each prompt with its continuation, followed by a line end.
class PlainTexts final : public GeneratedTexts {
 public:
  void Begin(const std::string& prompt) override { Add(prompt); }
  void Add(std::string_view text) override {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);  // a reader of a pipe sees each token
  }
  void End() override { Add("\n"); }
};

// {"prompt":"ROMEO:","continuation":"..."}, an object a line.
class JsonTexts final : public GeneratedTexts {
 public:
  void Begin(const std::string& prompt) override {
    prompt_ = prompt;
    continuation_.clear();
  }
  void Add(std::string_view text) override { continuation_ += text; }
  void End() override {
    const JsonFields fields =
        JsonFields().Add("prompt", prompt_).Add("continuation", continuation_);
    std::printf("%s\n", fields.object().c_str());
    std::fflush(stdout);
  }

 private:
  std::string prompt_, continuation_;
};

// The lines of a file that are not empty, without their ends.
Result<std::vector<std::string>> ReadPrompts(const std::string& path) {
  const Result<std::string> text = ReadTextFile(path, kMostPromptsMib);
  if (!text.ok()) return text.status().WithContext(path);
  std::vector<std::string> prompts;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) prompts.push_back(line);
  }
  if (prompts.empty()) return InvalidArgument(path + " has no line with a prompt");
  return prompts;
}

}  // namespace

void ModelTask::AddTo(CommandLine* line) {
  line->AddOption("export", "FILE", {.not_empty = true},
                  "Export the weights of --checkpoint, or the network with them, to FILE, and exit",
                  &out_, "nothing");
  line->AddRepeated(
      "predict", "FILE",
      "Classify an image, the images of a folder or an archive, or the samples of a file "
      "in CNTK's text format with --checkpoint, and exit; repeatable",
      &images_);
  line->AddOption(
      "checkpoint", "DIR", Allowed(),
      "With --export, --predict, --detect and --generate: the checkpoint; FILE may name it "
      "too",
      &checkpoint_, "FILE");
  line->AddOption("format", "FORMAT", AllowedChoices<ExportFormat>(), "With --export: file format",
                  &export_format_, "from the file name's ending");
  line->AddOption("answers", "FORMAT", AllowedChoices<AnswerFormat>(),
                  "Output format; with --predict: table, json, csv; with --generate: "
                  "text, json (an object a line)",
                  &answer_format_, "table; text");
  line->AddFlag("fold-batch-norm",
                "With --export: fold batch normalisation into the layer before it",
                &fold_batch_norm_);
  line->AddFlag("pixels", "With --export to ONNX: the model takes pixels, 0 to 255", &pixels_);
  line->AddRepeated(
      "detect", "FILE",
      "Find the objects in an image, or in the images of a folder or an archive, with "
      "the detector of --checkpoint, print them as JSON, and exit; repeatable",
      &detection_.inputs);
  line->AddOption("score", "S", {.min = 0, .max = 1}, "With --detect: least score of an object",
                  &detection_.rule.least_score);
  line->AddOption("overlap", "U", {.min = 0, .max = 1},
                  "With --detect: largest intersection over union of two objects of a class",
                  &detection_.rule.overlap);
  line->AddOption("most", "N", {.min = 1, .max = 1'000'000},
                  "With --detect: largest number of objects in an image, the best ones",
                  &detection_.rule.most);
  line->AddOption("batch", "N", {.min = 1, .max = 4096},
                  "With --detect: images that are computed together", &detection_.batch);
  line->AddOption("detections", "FILE", {.not_empty = true}, "With --detect: file of the JSON",
                  &detection_.out, "stdout");
  line->AddOption("pictures", "DIR", {.not_empty = true},
                  "With --detect: folder for copies of the images in which the objects are drawn",
                  &detection_.pictures, "none");
  line->AddFlag("nms", "With --export to ONNX: the model of a detector chooses the detections",
                &nms_);
  line->AddOption("generate", "TEXT", {.not_empty = true, .lines = true},
                  "Continue a text with the language model of --checkpoint, and exit", &prompt_,
                  "nothing");
  line->AddOption("generate-lines", "FILE", {.not_empty = true},
                  "Continue each line of a file, and exit", &prompts_file_, "nothing");
  line->AddOption("tokens", "N", {.min = 1, .max = 1'000'000},
                  "With --generate: number of tokens to add", &generation_.tokens);
  line->AddOption("temperature", "T", {.min = 0, .max = 100},
                  "With --generate: sampling temperature; 0 takes the likeliest token",
                  &generation_.sampling.temperature);
  line->AddOption("most-likely", "K", {.min = 0, .max = 1'000'000},
                  "With --generate: sample from the K likeliest tokens (top-k); 0: from all",
                  &generation_.sampling.most_likely);
  line->AddOption("top-p", "P", {.min = 0, .max = 1, .min_excluded = true},
                  "With --generate: sample from the likeliest tokens whose probabilities add up to "
                  "P; 1: from all",
                  &generation_.sampling.top_p);
  line->AddOption("stop", "TEXT", {.not_empty = true, .lines = true},
                  "With --generate: end before this text", &generation_.stop, "none");
  line->AddOption("seed", "N", {.min = 0, .max = 2'000'000'000}, "With --generate: sampling seed",
                  &generation_.seed);
  line->AddOption("import", "NETWORK", {.not_empty = true},
                  "Import FILE, an ONNX model: write its network file to NETWORK, and exit",
                  &import_.network, "nothing");
  line->AddOption("weights", "FILE", {.not_empty = true},
                  "With --import: file of the weights, .safetensors or .npz", &import_.weights);
  line->AddOption("input-shape", "CxHxW", {.not_empty = true}, "With --import: extents of a sample",
                  &import_.input_shape, "the model's");
  line->AddOption("loss", "LOSS", {.not_empty = true}, "With --import: loss of the network",
                  &import_.loss, "as fits the model");
  line->AddOption("top", "N", {.min = 1, .max = 1'000'000},
                  "With --predict: classes to print for each sample", &top_);
  line->AddOption("output", "NAME", Allowed(), "With --predict: output of the network", &output_,
                  "its first one");
  line->AddOption("masks", "DIR", {.not_empty = true},
                  "With --predict: folder for the classes of each image's pixels, as PNG masks",
                  &masks_, "none");
}

Status ModelTask::Check() const {
  if (!asked()) return OkStatus();
  const bool imports = !import_.network.empty();
  const int asked = (out_.empty() ? 0 : 1) + (images_.empty() ? 0 : 1) + (detects() ? 1 : 0) +
                    (generates() ? 1 : 0) + (imports ? 1 : 0);
  if (asked > 1) {
    return InvalidArgument(
        "--export, --import, --predict, --detect and --generate exclude each other");
  }
  if (imports) {
    if (import_.weights.empty()) return InvalidArgument("--import requires --weights FILE");
    return ParseInputShape(import_.input_shape).status();
  }
  if (!out_.empty()) return FormatOf(export_request()).status();
  if (!prompt_.empty() && !prompts_file_.empty()) {
    return InvalidArgument("--generate and --generate-lines exclude each other");
  }
  if (!answer_format_) return OkStatus();
  if (detects()) return InvalidArgument("--answers: --detect writes JSON; omit it");
  const bool fits = *answer_format_ == AnswerFormat::kJson ||
                    (*answer_format_ == AnswerFormat::kText) == generates();
  if (fits) return OkStatus();
  return InvalidArgument("--answers " + WriteValue(*answer_format_) + ": must be " +
                         (generates() ? "text or json" : "table, json or csv"));
}

Status ModelTask::Continue(const ModelName& name) const {
  GenerationRequest request = generation_;
  request.prompts = {prompt_};
  if (!prompts_file_.empty()) {
    KUMO_ASSIGN_OR_RETURN(request.prompts, ReadPrompts(prompts_file_));
  }
  if (answer_format_ == AnswerFormat::kJson) {
    JsonTexts texts;
    return Generate(name, request, &texts);
  }
  PlainTexts texts;
  return Generate(name, request, &texts);
}

Status ModelTask::Import(const std::string& file) const {
  ImportRequest request = import_;
  request.model = file;
  std::vector<std::string> gaps;
  const Result<std::string> said = ImportModel(request, &gaps);
  constexpr int kHanging = 2;
  if (said.ok()) {
    std::fputs(Folded(*said, TerminalColumns(STDOUT_FILENO), kHanging).c_str(), stdout);
    return OkStatus();
  }
  // One is in the last line, which ends the process.
  constexpr size_t kMostShown = 50;
  for (size_t i = 0; gaps.size() > 1 && i < std::min(gaps.size(), kMostShown); ++i) {
    std::fprintf(stderr, "%s: %s\n", file.c_str(), gaps[i].c_str());
  }
  return said.status();
}

Status ModelTask::Run(const std::string& file, const std::vector<std::string>& sets,
                      const Variables& variables) const {
  if (!import_.network.empty()) return Import(file);
  const ModelName name = {file, sets, checkpoint_, variables};
  if (!out_.empty()) {
    KUMO_ASSIGN_OR_RETURN(const std::string said, ExportModel(name, export_request()));
    constexpr int kHanging = 2;
    std::fputs(Folded(said + "\n", TerminalColumns(STDOUT_FILENO), kHanging).c_str(), stdout);
    return OkStatus();
  }
  if (generates()) return Continue(name);
  if (detects()) return DetectObjects(name, detection_);
  KUMO_ASSIGN_OR_RETURN(const Predictions predictions,
                        Predict(name, {images_, top_, output_, masks_}));
  std::fputs(TextOf(predictions, answer_format_.value_or(AnswerFormat::kTable)).c_str(), stdout);
  return DamageIn(predictions);
}

}  // namespace kumo
