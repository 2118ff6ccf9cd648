#include "worker/inference/prediction.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include <glog/logging.h>

#include "common/base/did_you_mean.h"
#include "common/settings/choices.h"
#include "common/settings/option_value.h"
#include "data/pictures/png_file.h"
#include "data/readers/registry.h"
#include "data/readers/table_columns.h"
#include "data/transforms/crops.h"
#include "models/network.h"
#include "worker/inference/image_minibatches.h"
#include "worker/inference/input_images.h"
#include "worker/inference/picture_folder.h"
#include "worker/inference/stored_model.h"

namespace kumo {
namespace {

constexpr int kBatch = 64;

// The index among the network's outputs.
Result<int> FindOutput(const Graph& graph, const std::string& name) {
  if (name.empty()) return 0;
  std::vector<std::string> known;
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    if (graph.outputs[i].name == name) return static_cast<int>(i);
    known.push_back(graph.outputs[i].name);
  }
  return InvalidArgument("network " + graph.name + " has no output \"" + name + "\"" +
                         DidYouMean(name, known));
}

// Predictor: the network on its device, and a minibatch of samples that is run when it is full.
class Predictor {
 public:
  // type: element type of the samples: bytes for images, otherwise float32.
  static Result<std::unique_ptr<Predictor>> Make(const StoredModel& model, NumberType type,
                                                 const PredictRequest& request) {
    std::unique_ptr<Predictor> made(new Predictor(request.top));
    KUMO_ASSIGN_OR_RETURN(const model::Network network, NetworkOf(model));
    KUMO_ASSIGN_OR_RETURN(const Graph graph, PlanNetwork(network));
    const bool images = type == NumberType::kUint8;
    if (graph.inputs.size() != 1 || graph.values[0].vocabulary > 0 || images) {
      KUMO_RETURN_IF_ERROR(
          CheckTakesImages(graph, "; to continue a text with a language model use --prompt"));
    }
    if (request.output.empty() && graph.detector() != nullptr) {
      return InvalidArgument("network " + network.name() +
                             " finds objects in images; use kumo detect instead of kumo predict");
    }
    const Shape& input = graph.values[0].shape;
    KUMO_ASSIGN_OR_RETURN(made->output_, FindOutput(graph, request.output));
    made->of_classes_ = IsOfClasses(graph, made->output_);
    if (!request.masks.empty()) KUMO_RETURN_IF_ERROR(made->PrepareMasks(graph));
    made->target_ = {{input.channels(), input.height(), input.width()},
                     /*scale=*/true,
                     /*stretch=*/model.experiment.data.resize == ResizeMode::kStretch,
                     model.experiment.data.shorter_side};
    if (images && made->target_.shorter_side > 0) {
      KUMO_RETURN_IF_ERROR(CheckShorterSide(made->target_.shorter_side, made->target_.extents));
    }
    KUMO_ASSIGN_OR_RETURN(ModelData data, DataOf(model));
    KUMO_ASSIGN_OR_RETURN(made->model_,
                          RunningModel::Make(model, network, kBatch, type, data.pixels));
    made->class_names_ = std::move(data.class_names);
    made->sample_bytes_ = input.size() * BytesOf(type);
    return made;
  }

  // Of the minibatches that it takes.
  ImageMinibatches::Form form() const { return {target_, kBatch}; }

  // Fills in the predictions of at most kBatch samples, which lie one behind the other in `inputs`.
  Status Fill(std::span<Prediction* const> predictions, std::span<const std::byte> inputs) {
    if (predictions.empty()) return OkStatus();
    const int batch = static_cast<int>(predictions.size());
    const int64_t size = net().output_shape(output_).size();
    numbers_.resize(batch * size);
    KUMO_RETURN_IF_ERROR(
        model_->Predict(batch, inputs.first(batch * sample_bytes_), output_, numbers_));
    for (int i = 0; i < batch; ++i) {
      const auto of_sample = std::span(numbers_).subspan(i * size, size);
      if (masks_) {
        predictions[i]->mask = masks_->PathFor(predictions[i]->file);
        KUMO_RETURN_IF_ERROR(WriteMaskPng(mask_shape_.height(), mask_shape_.width(),
                                          ClassesOf(of_sample), predictions[i]->mask));
      } else if (of_classes_) {
        predictions[i]->classes = LikeliestOf(of_sample);
      } else {
        predictions[i]->numbers.assign(of_sample.begin(), of_sample.end());
      }
    }
    return OkStatus();
  }

  const Net& net() const { return model_->net(); }
  void WriteMasksTo(PictureFolder folder) { masks_ = std::move(folder); }

 private:
  explicit Predictor(int top) : top_(top) {}

  Status PrepareMasks(const Graph& graph) {
    constexpr int64_t kMostClasses = 256;  // of a palette
    const int value = graph.outputs[output_].value;
    mask_shape_ = graph.values[value].shape;
    if (graph.IsScores(value) && mask_shape_.rank() == 3 && mask_shape_.plane() > 1 &&
        mask_shape_.channels() <= kMostClasses) {
      return OkStatus();
    }
    return InvalidArgument("--masks: output " + graph.outputs[output_].name + " of network " +
                           graph.name +
                           " does not tell one of up to 256 classes for each pixel; choose another "
                           "output with --output, or omit --masks");
  }

  // Of each position, the first class with the largest score.
  std::vector<uint8_t> ClassesOf(std::span<const float> scores) const {
    const int64_t plane = mask_shape_.plane();
    std::vector<uint8_t> classes(static_cast<size_t>(plane));
    for (int64_t i = 0; i < plane; ++i) {
      for (int64_t c = 1; c < mask_shape_.channels(); ++c) {
        if (scores[c * plane + i] > scores[classes[i] * plane + i]) {
          classes[i] = static_cast<uint8_t>(c);
        }
      }
    }
    return classes;
  }

  // The softmax of the scores; the largest is subtracted so that no power overflows.
  std::vector<Likely> LikeliestOf(std::span<const float> scores) const {
    const double largest = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (const float score : scores) sum += std::exp(score - largest);
    std::vector<int64_t> order(scores.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
    order.resize(std::min<size_t>(order.size(), top_));
    std::vector<Likely> classes;
    for (const int64_t number : order) {
      const bool named = number < std::ssize(class_names_);
      classes.push_back(
          {number, named ? class_names_[number] : "", std::exp(scores[number] - largest) / sum});
    }
    return classes;
  }

  const int top_;
  int output_ = 0;  // index among the network's outputs
  bool of_classes_ = false;
  std::optional<PictureFolder> masks_;
  Shape mask_shape_;  // classes, height, width
  std::unique_ptr<RunningModel> model_;
  ImageTarget target_;
  std::vector<std::string> class_names_;
  int64_t sample_bytes_ = 0;
  std::vector<float> numbers_;  // of the output
};

Status PredictImages(const StoredModel& model, const PredictRequest& request,
                     Predictions* predictions) {
  KUMO_ASSIGN_OR_RETURN(
      const InputImages images,
      InputImages::Find(request.inputs, "; to continue a text with a language model use --prompt"));
  KUMO_ASSIGN_OR_RETURN(const auto predictor, Predictor::Make(model, NumberType::kUint8, request));
  if (!request.masks.empty()) {
    KUMO_ASSIGN_OR_RETURN(PictureFolder folder,
                          PictureFolder::Open("--masks", request.masks, images));
    predictor->WriteMasksTo(std::move(folder));
  }
  predictions->skips_damaged = model.experiment.data.damaged == DamagedImages::kSkip;
  const auto add_damaged = [predictions](std::string line) {
    LOG(WARNING) << line;
    predictions->damaged.push_back(std::move(line));
  };
  for (const std::string& line : images.unusable()) add_damaged(line);
  predictions->samples.resize(images.size());  // before pointers to elements are taken
  ImageMinibatches minibatches(images, predictor->form());
  while (true) {
    KUMO_ASSIGN_OR_RETURN(const auto minibatch, minibatches.Next());
    if (!minibatch) break;
    for (const std::string& line : minibatch->damaged) add_damaged(line);
    std::vector<Prediction*> filled;
    for (const ImageMinibatch::Image& image : minibatch->images) {
      filled.push_back(&predictions->samples[image.number]);
      filled.back()->file = image.file;
    }
    KUMO_RETURN_IF_ERROR(predictor->Fill(filled, minibatch->pixels));
  }
  std::erase_if(predictions->samples, [](const Prediction& one) { return one.file.empty(); });
  return OkStatus();
}

// Of a table whose numbers are the network's input, the part of data.columns that makes it; else
// "".
Result<std::string> ColumnsOfInput(const StoredModel& model) {
  const Experiment::Data& data = model.experiment.data;
  if (!TraitsOf(data.reader).columns) return std::string();
  KUMO_ASSIGN_OR_RETURN(const model::Network network, NetworkOf(model));
  KUMO_ASSIGN_OR_RETURN(const Graph graph, PlanNetwork(network));
  return graph.inputs.size() == 1 ? PartOfNumbers(data.columns, graph.inputs.front()) : "";
}

// Files of the job's reader, one sample per line. columns: of a table.
Status PredictLines(const StoredModel& model, const std::string& columns,
                    const PredictRequest& request, Predictions* predictions) {
  const Experiment::Data& data = model.experiment.data;
  if (!request.masks.empty()) {
    return InvalidArgument("--masks: data.reader = " + WriteValue(data.reader) +
                           " has no images here; omit --masks");
  }
  ReaderRequest read;
  read.columns = columns;
  read.image_stream = data.ctf_features;
  read.label_stream = "";
  if (!data.image_size.empty()) {
    KUMO_ASSIGN_OR_RETURN(read.image_size, ParseImageExtents(data.image_size));
  }
  KUMO_ASSIGN_OR_RETURN(const auto predictor,
                        Predictor::Make(model, NumberType::kFloat32, request));
  const Shape& wanted = predictor->net().input();
  const Reader& reader = ReaderOf(data.reader);
  std::vector<std::unique_ptr<Dataset>> sets;
  size_t samples = 0;
  for (const std::string& input : request.inputs) {
    read.images = input;
    KUMO_ASSIGN_OR_RETURN(auto set, reader.open(read));
    const std::vector<int64_t>& extents = set->fields()[0].extents;
    if (!wanted.Takes(Shape(extents))) {
      return InvalidArgument(input + ": samples have shape " + ExtentsText(extents) +
                             ", but the network takes " + wanted.ToString());
    }
    samples += set->size();
    sets.push_back(std::move(set));
  }
  predictions->samples.resize(samples);  // before pointers to elements are taken
  Prediction* next = predictions->samples.data();
  std::vector<Prediction*> filled;
  std::vector<std::byte> inputs;
  for (const auto& set : sets) {
    Sample sample(set->fields());
    for (int64_t i = 0; i < set->size(); ++i) {
      sample.Reset(set->fields());
      KUMO_RETURN_IF_ERROR(set->Read(i, &sample));
      next->file = set->name() + ":" + std::to_string(i + 1);
      const std::span<const std::byte> numbers = sample.field(0);
      inputs.insert(inputs.end(), numbers.begin(), numbers.end());
      filled.push_back(next++);
      if (std::ssize(filled) < kBatch) continue;
      KUMO_RETURN_IF_ERROR(predictor->Fill(filled, inputs));
      filled.clear();
      inputs.clear();
    }
  }
  return predictor->Fill(filled, inputs);
}

}  // namespace

Result<Predictions> Predict(const ModelName& name, const PredictRequest& request) {
  KUMO_ASSIGN_OR_RETURN(const StoredModel model, OpenStoredModel(name));
  Predictions predictions;
  predictions.checkpoint = model.checkpoint;
  KUMO_ASSIGN_OR_RETURN(const std::string columns, ColumnsOfInput(model));
  const bool lines = TraitsOf(model.experiment.data.reader).samples == SampleKind::kNumbers;
  KUMO_RETURN_IF_ERROR(lines || !columns.empty()
                           ? PredictLines(model, columns, request, &predictions)
                           : PredictImages(model, request, &predictions));
  return predictions;
}

Status DamageIn(const Predictions& predictions) {
  return DamageOf(predictions.damaged.size(), predictions.samples.size(),
                  predictions.skips_damaged);
}

}  // namespace kumo
