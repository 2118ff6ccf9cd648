#include "worker/inference/model_import.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string_view>

#include "common/base/file.h"
#include "common/base/printable.h"
#include "common/base/text.h"
#include "common/tensor_files/tensor_file.h"
#include "models/network.h"
#include "models/onnx/from_onnx.h"

namespace kumo {
namespace {

constexpr uint64_t kLargestModel = (uint64_t{1} << 31) - 1;  // of protobuf

struct LossWord {
  std::string_view word;
  ImportLoss loss;
};
constexpr LossWord kLossWords[] = {{"softmax_cross_entropy", ImportLoss::kSoftmaxCrossEntropy},
                                   {"mean_squared_error", ImportLoss::kMeanSquaredError},
                                   {"huber", ImportLoss::kHuber}};

Result<std::optional<ImportLoss>> LossCalled(const std::string& word) {
  if (word.empty()) return std::optional<ImportLoss>();
  const auto* const found = std::ranges::find(kLossWords, word, &LossWord::word);
  if (found != std::end(kLossWords)) return std::optional<ImportLoss>(found->loss);
  return InvalidArgument("--loss " + Printable(word) +
                         ": must be softmax_cross_entropy, mean_squared_error or huber");
}

// Reads parts of files in the model's folder; never more than a file has.
ReadBeside ReaderBeside(FileSystem* files, const std::string& model) {
  return [files, folder = DirectoryOf(model)](const std::string& name, int64_t offset,
                                              int64_t length) -> Result<std::string> {
    const std::string path = JoinPath(folder, name);
    KUMO_ASSIGN_OR_RETURN(const auto file, files->OpenForReading(path));
    const auto size = static_cast<int64_t>(std::min<uint64_t>(file->size(), INT64_MAX));
    if (offset > size || length > size - offset) {
      return DataLoss(path + " is too short: it is truncated or of another model");
    }
    std::string bytes(static_cast<size_t>(length), '\0');
    KUMO_RETURN_IF_ERROR(
        file->Read(static_cast<uint64_t>(offset), std::as_writable_bytes(std::span(bytes))));
    return bytes;
  };
}

std::string ShapeOfInput(const model::Input& input) {
  if (input.extents().empty()) {
    return std::to_string(input.channels()) + "x" + std::to_string(input.height()) + "x" +
           std::to_string(input.width());
  }
  std::string text;
  for (const int extent : input.extents())
    text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text;
}

Result<ImportedModel> ReadModel(const ImportRequest& request, std::vector<std::string>* gaps) {
  PosixFileSystem files;
  ImportOptions options;
  KUMO_ASSIGN_OR_RETURN(options.input, ParseInputShape(request.input_shape));
  KUMO_ASSIGN_OR_RETURN(options.loss, LossCalled(request.loss));
  options.name = std::filesystem::path(request.model).stem().string();
  onnx::ModelProto model;
  {
    KUMO_ASSIGN_OR_RETURN(const std::string bytes,
                          ReadWholeFile(files, request.model, kLargestModel));
    KUMO_ASSIGN_OR_RETURN(model, ParseOnnx(bytes));
  }
  return FromOnnx(model, options, ReaderBeside(&files, request.model), gaps);
}

}  // namespace

Result<std::vector<int64_t>> ParseInputShape(const std::string& text) {
  std::vector<int64_t> extents;
  std::string_view rest = text;
  const Status wrong = InvalidArgument("--input-shape " + Printable(text) +
                                       ": must be a sample's extents, such as 3x224x224");
  while (!rest.empty()) {
    const auto extent = TakeNumber<int64_t>(&rest);
    if (!extent || *extent < 1 || *extent > 1 << 20 || extents.size() == 8) return wrong;
    extents.push_back(*extent);
    if (rest.empty()) break;
    if (rest[0] != 'x' || rest.size() == 1) return wrong;
    rest.remove_prefix(1);
  }
  return extents;
}

Result<std::string> ImportModel(const ImportRequest& request, std::vector<std::string>* gaps) {
  const auto format = TensorFormatOf(request.weights);
  if (!format) {
    return InvalidArgument("--weights " + request.weights +
                           ": the file name must end in .safetensors or .npz");
  }
  Result<ImportedModel> imported = ReadModel(request, gaps);
  if (!imported.ok()) {
    const bool named = imported.status().message().find(request.model) != std::string::npos;
    return named ? imported.status() : imported.status().WithContext(request.model);
  }
  std::vector<NamedTensor> tensors;
  int64_t elements = 0;
  for (const ImportedTensor& tensor : imported->tensors) {
    tensors.push_back({tensor.spec.name, tensor.spec.shape, tensor.elements});
    elements += std::ssize(tensor.elements);
  }
  std::vector<std::string> comments = {
      "Imported by `kumo import` from " +
      Printable(std::filesystem::path(request.model).filename().string()) + "."};
  for (const std::string& note : imported->notes) comments.push_back("Note: " + note + ".");
  PosixFileSystem files;
  KUMO_RETURN_IF_ERROR(WriteTensorFile(files, request.weights, *format, tensors));
  KUMO_RETURN_IF_ERROR(
      WriteFileAtomically(files, request.network, NetworkFileText(imported->network, comments)));
  std::string inputs;
  for (const model::Input& input : imported->network.input()) {
    inputs += (inputs.empty() ? "" : ", ") + ShapeOfInput(input);
  }
  const model::Network& network = imported->network;
  std::string said = request.network + ": " + Counted(network.layers_size(), "layer") + ", input " +
                     inputs + "\n" + request.weights + ": " +
                     Counted(std::ssize(tensors), "tensor") + ", " + Counted(elements, "number") +
                     "\n";
  for (const std::string& note : imported->notes) said += "note: " + note + "\n";
  return said + "train on: network.file = " + request.network +
         ", network.initial_weights = " + request.weights + "\n";
}

}  // namespace kumo
