#include "common/checkpoint/manifest.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include "common/base/crc32c.h"
#include "common/base/file.h"
#include "common/base/text.h"
#include "common/checkpoint/checkpoint.h"
#include "common/job/metric_list.h"
#include "common/job/protocol.h"
#include "common/job/tensor_factors.h"

namespace kumo {
namespace {

constexpr char kCrcPrefix[] = "# crc32c ";

std::string CrcLine(std::string_view text) {
  return kCrcPrefix + HexDigits(Crc32c(AsBytes(text))) + "\n";
}

// Keeps the first error for our message; the default collector would print it.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (!text_.empty()) return;
    text_ = "line " + std::to_string(line + 1) + ", column " + std::to_string(column + 1) + ": " +
            message;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

bool PlainName(const std::string& name) {
  return !name.empty() && name[0] != '.' && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

// Returns the fault of a parsed manifest for the folder `name`; "" if it is valid.
std::string WrongWith(const checkpoint::Manifest& manifest, const std::string& name) {
  if (manifest.version() < 0 || CheckpointName(manifest.version()) != name ||
      manifest.name() != name) {
    return "it belongs to '" + manifest.name() + "', version " +
           std::to_string(manifest.version()) + "; a checkpoint's folder must not be renamed";
  }
  if (manifest.generation() > kLastGeneration) {
    return "generation " + std::to_string(manifest.generation()) + " is impossible";
  }
  if (manifest.files().empty()) return "it lists no files";
  if (const auto metrics = ParseMetrics(manifest.metrics()); !metrics.ok()) {
    return metrics.status().message();
  }
  for (const checkpoint::File& file : manifest.files()) {
    if (!PlainName(file.name())) return "'" + file.name() + "' is no file name";
  }
  return "";
}

checkpoint::SampleSums LossAndAccuracy(int64_t samples, double loss_sum, double correct) {
  checkpoint::SampleSums sums;
  sums.set_samples(samples);
  sums.add_sums(loss_sum);
  sums.add_sums(correct);
  return sums;
}

// Manifests without metric names have two metrics, in fields of their own.
void NameMetrics(checkpoint::Manifest* manifest) {
  if (!manifest->metrics().empty()) return;
  const auto add = [&](const char* name, checkpoint::Metric::Formula formula) {
    checkpoint::Metric* const metric = manifest->add_metrics();
    metric->set_name(name);
    metric->set_sum(manifest->metrics_size() - 1);
    metric->set_formula(formula);
    metric->set_more_is_better(formula == checkpoint::Metric::SHARE);
  };
  add("loss", checkpoint::Metric::MEAN);
  add("accuracy", checkpoint::Metric::SHARE);
  if (manifest->has_evaluation()) {
    checkpoint::Evaluation& said = *manifest->mutable_evaluation();
    if (said.samples() > 0) {
      *said.mutable_sums() =
          LossAndAccuracy(said.samples(), said.loss_sum(), static_cast<double>(said.correct()));
    }
    said.clear_samples();
    said.clear_loss_sum();
    said.clear_correct();
  }
  if (!manifest->has_progress()) return;
  const checkpoint::Progress said = manifest->progress();
  checkpoint::Progress& progress = *manifest->mutable_progress();
  progress.Clear();
  progress.set_elapsed_seconds(said.elapsed_seconds());
  progress.set_samples(said.samples());
  *progress.mutable_epoch() = LossAndAccuracy(said.epoch_samples(), said.epoch_loss_sum(),
                                              static_cast<double>(said.epoch_correct()));
  *progress.mutable_ended_epoch() =
      LossAndAccuracy(said.ended_epoch_samples(), said.ended_epoch_loss_sum(),
                      static_cast<double>(said.ended_epoch_correct()));
  *progress.mutable_point() = LossAndAccuracy(said.point_samples(), said.point_loss_sum(),
                                              static_cast<double>(said.point_correct()));
  if (!said.has_last_loss()) return;
  // The means count as sums of one sample.
  *progress.mutable_last() = LossAndAccuracy(1, said.last_loss(), said.last_accuracy());
}

}  // namespace

Status WriteManifest(FileSystem& files, const std::string& folder,
                     const checkpoint::Manifest& manifest) {
  const std::string name = CheckpointName(manifest.version());
  checkpoint::Manifest named = manifest;
  named.set_name(name);
  const std::string wrong = WrongWith(named, name);
  if (!wrong.empty()) return Internal("invalid manifest of " + name + ": " + wrong);
  std::string text;
  google::protobuf::TextFormat::Printer printer;
  printer.SetUseShortRepeatedPrimitives(true);  // a mean image on one line
  if (!printer.PrintToString(named, &text)) {
    return Internal("protobuf cannot print the manifest of " + name);
  }
  text += CrcLine(text);
  const std::string path = JoinPath(JoinPath(folder, name), "MANIFEST");
  return WriteFileAtomically(files, path, text).WithContext("saving checkpoint " + name);
}

Result<checkpoint::Manifest> ReadManifest(FileSystem& files, const std::string& folder,
                                          const std::string& name) {
  const std::string path = JoinPath(JoinPath(folder, name), "MANIFEST");
  KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, files.OpenForReading(path));
  if (file->size() > kManifestLimitBytes) {
    return DataLoss(path + " is no manifest: it has " + std::to_string(file->size()) + " bytes");
  }
  std::string text(file->size(), '\0');
  KUMO_RETURN_IF_ERROR(file->Read(0, std::as_writable_bytes(std::span<char>(text))));
  return ParseManifest(text, path, name);
}

Result<checkpoint::Manifest> ParseManifest(const std::string& text, const std::string& path,
                                           const std::string& name) {
  const size_t crc_line = text.rfind(kCrcPrefix);
  if (crc_line == std::string::npos ||
      text.substr(crc_line) != CrcLine(std::string_view(text).substr(0, crc_line))) {
    return DataLoss(path + " is damaged: its checksum line is wrong or missing");
  }
  checkpoint::Manifest manifest;
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (!parser.ParseFromString(text, &manifest)) {
    return DataLoss(path + " is no manifest that this program can read (" + error.text() +
                    "); read it with the release that wrote it");
  }
  const std::string wrong = WrongWith(manifest, name);
  if (!wrong.empty()) return DataLoss(path + " is not the manifest of this checkpoint: " + wrong);
  NameMetrics(&manifest);
  return manifest;
}

namespace {

Status Damaged(const checkpoint::Manifest& manifest, const std::string& what) {
  return DataLoss("checkpoint " + manifest.name() + ": its list of tensors " + what);
}

}  // namespace

void SetTensors(const ParameterLayout& layout, checkpoint::Manifest* manifest) {
  manifest->clear_tensors();
  for (size_t i = 0; i < layout.tensors().size(); ++i) {
    const TensorSpec& spec = layout.tensors()[i];
    checkpoint::Tensor* tensor = manifest->add_tensors();
    tensor->set_name(spec.name);
    tensor->mutable_shape()->Add(spec.shape.begin(), spec.shape.end());
    tensor->set_segment(std::string(SegmentName(spec.segment)));
    tensor->set_begin(layout.tensor(static_cast<int>(i)).begin);
    WriteFactors(spec.factors, tensor);
  }
}

bool HasTensors(const checkpoint::Manifest& manifest) { return manifest.tensors_size() > 0; }

Result<ParameterLayout> LayoutOf(const checkpoint::Manifest& manifest) {
  std::vector<TensorSpec> specs;
  for (const checkpoint::Tensor& tensor : manifest.tensors()) {
    TensorSpec& spec = specs.emplace_back();
    spec.name = tensor.name();
    spec.shape = {tensor.shape().begin(), tensor.shape().end()};
    int segment = 0;
    while (segment < kSegments && SegmentName(static_cast<Segment>(segment)) != tensor.segment()) {
      ++segment;
    }
    if (segment == kSegments) return Damaged(manifest, "has a segment '" + tensor.segment() + "'");
    spec.segment = static_cast<Segment>(segment);
    spec.factors = ReadFactors(tensor);
  }
  Result<ParameterLayout> layout = ParameterLayout::Make(std::move(specs));
  if (!layout.ok()) return Damaged(manifest, "is invalid: " + layout.status().message());
  for (int i = 0; i < manifest.tensors_size(); ++i) {
    if (layout->tensor(i).begin != manifest.tensors(i).begin()) {
      return Damaged(manifest, "has " + manifest.tensors(i).name() + " at another position");
    }
  }
  if (layout->fingerprint() != manifest.fingerprint()) {
    return Damaged(manifest, "belongs to another network than its weights");
  }
  return layout;
}

}  // namespace kumo
