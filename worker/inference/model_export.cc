#include "worker/inference/model_export.h"

#include <optional>

#include "common/base/json.h"
#include "common/base/version.h"
#include "common/settings/option_value.h"
#include "common/tensor_files/tensor_file.h"
#include "models/graph/rewrites/rewrites.h"
#include "models/network.h"
#include "models/onnx/to_onnx.h"
#include "worker/inference/stored_model.h"

namespace kumo {
namespace {

// Contents of the file: tensors, and for ONNX the network around them.
struct Exported {
  std::vector<TensorSpec> specs;
  std::vector<std::vector<float>> tensors;  // by spec
  std::optional<Graph> graph;               // its parameters are the tensors
  int folded = 0;
};

Result<Exported> Gather(const StoredModel& model, const ExportRequest& request, bool graph) {
  Exported exported;
  exported.specs = model.layout.tensors();
  for (size_t i = 0; i < exported.specs.size(); ++i) {
    const Range range = model.layout.tensor(static_cast<int>(i));
    const auto numbers = model.weights.span().subspan(range.begin, range.size());
    exported.tensors.emplace_back(numbers.begin(), numbers.end());
  }
  if (!graph) return exported;
  KUMO_ASSIGN_OR_RETURN(const model::Network network, NetworkOf(model));
  KUMO_ASSIGN_OR_RETURN(exported.graph, PlanNetwork(network));
  if (request.fold_batch_norm) {
    exported.folded = FoldBatchNormalisation(&*exported.graph, &exported.tensors);
    exported.specs = exported.graph->tensors();
  }
  return exported;
}

// Description of the network's input: a formula of the pixels (PixelFormulasFor), or the kind of
// numbers.
std::string InputFormula(const Experiment::Data& settings) {
  switch (TraitsOf(settings.reader).samples) {
    case SampleKind::kTokens:
      return "tokens, by their numbers";
    case SampleKind::kNumbers:
      return "numbers, as they are";
    case SampleKind::kImages:
      break;
  }
  std::string formula = WriteValue(settings.scale);
  formula += settings.subtract_mean ? " * (pixel - mean image of the training set)" : " * pixel";
  std::string channels;
  if (!settings.mean.empty()) {
    formula += " - mean";
    channels += "; mean of each channel: " + WriteValue(settings.mean);
  }
  if (!settings.std_dev.empty()) {
    formula = "(" + formula + ") / standard deviation";
    channels += "; standard deviation of each channel: " + WriteValue(settings.std_dev);
  }
  return formula + channels;
}

// Metadata of the ONNX file.
std::map<std::string, std::string> MetadataOf(const StoredModel& model, const ModelData& data,
                                              bool pixels) {
  std::map<std::string, std::string> metadata;
  metadata["kumo.checkpoint"] = model.manifest.name();
  metadata["kumo.job"] = model.manifest.job_name();
  metadata["kumo.input"] = pixels ? "pixels, 0 to 255" : InputFormula(model.experiment.data);
  if (!data.class_names.empty()) {
    JsonArray names;
    for (const std::string& name : data.class_names) names.Add(name);
    metadata["kumo.classes"] = names.array();
  }
  return metadata;
}

Status WriteOnnx(const StoredModel& model, const Exported& exported, const ExportRequest& request) {
  OnnxOptions options;
  options.version = std::string(kVersion);
  ModelData data;
  const DataReader reader = model.experiment.data.reader;
  if (request.pixels && TraitsOf(reader).samples != SampleKind::kImages) {
    return InvalidArgument("--pixels requires images, but data.reader = " + WriteValue(reader));
  }
  if (request.pixels) {
    KUMO_ASSIGN_OR_RETURN(data, DataOf(model));
    options.pixels = data.pixels;
  } else {
    KUMO_RETURN_IF_ERROR(CheckSameInputs(model.manifest, model.experiment, model.sets));
    const auto& names = model.manifest.class_names();
    data.class_names = {names.begin(), names.end()};
  }
  if (request.nms) {
    if (exported.graph->detector() == nullptr) {
      return InvalidArgument("--nms: network " + exported.graph->name +
                             " finds no objects: its last loss is " + exported.graph->loss().kind +
                             ", not multibox; omit it");
    }
    options.detections.emplace();
  }
  options.metadata = MetadataOf(model, data, request.pixels);
  KUMO_ASSIGN_OR_RETURN(const onnx::ModelProto onnx,
                        ToOnnx(*exported.graph, exported.tensors, options));
  KUMO_ASSIGN_OR_RETURN(const std::string bytes, OnnxBytes(onnx));
  PosixFileSystem files;
  return WriteFileAtomically(files, request.out, bytes);
}

Status WriteTensors(const Exported& exported, TensorFormat format, const std::string& out) {
  std::vector<NamedTensor> tensors;
  for (size_t i = 0; i < exported.specs.size(); ++i) {
    tensors.push_back({exported.specs[i].name, exported.specs[i].shape, exported.tensors[i]});
  }
  PosixFileSystem files;
  return WriteTensorFile(files, out, format, tensors);
}

Status WriteExported(const StoredModel& model, const Exported& exported, ExportFormat format,
                     const ExportRequest& request) {
  switch (format) {
    case ExportFormat::kOnnx:
      return WriteOnnx(model, exported, request);
    case ExportFormat::kSafetensors:
      return WriteTensors(exported, TensorFormat::kSafetensors, request.out);
    case ExportFormat::kNpz:
      return WriteTensors(exported, TensorFormat::kNpz, request.out);
  }
  return Internal("no format");
}

}  // namespace

Result<ExportFormat> FormatOf(const ExportRequest& request) {
  std::optional<ExportFormat> format = request.format;
  for (const Choice<ExportFormat>& known : kExportFormats) {
    if (!format && request.out.ends_with("." + std::string(known.word))) format = known.value;
  }
  if (!format) {
    return InvalidArgument("--out " + request.out +
                           ": the file name must end in .onnx, .safetensors or .npz; otherwise "
                           "choose a format with --format");
  }
  if (*format == ExportFormat::kOnnx || (!request.pixels && !request.nms)) return *format;
  return InvalidArgument((request.pixels ? "--pixels" : "--nms") +
                         (" requires --format onnx: " + WriteValue(*format)) +
                         " holds only weights");
}

Result<std::string> ExportModel(const ModelName& name, const ExportRequest& request) {
  KUMO_ASSIGN_OR_RETURN(const ExportFormat format, FormatOf(request));
  KUMO_ASSIGN_OR_RETURN(const StoredModel model, OpenStoredModel(name));
  KUMO_ASSIGN_OR_RETURN(
      const Exported exported,
      Gather(model, request, format == ExportFormat::kOnnx || request.fold_batch_norm));
  KUMO_RETURN_IF_ERROR(WriteExported(model, exported, format, request));
  int64_t numbers = 0;
  for (const TensorSpec& spec : exported.specs) numbers += spec.size();
  std::string said = request.out + ": " + WriteValue(format) + ", " +
                     std::to_string(exported.specs.size()) + " tensors, " +
                     std::to_string(numbers) + " numbers";
  if (request.fold_batch_norm) {
    said += ", " + std::to_string(exported.folded) + " batch normalisations folded";
  }
  return said + ", from " + model.checkpoint;
}

}  // namespace kumo
