#include "worker/inference/prediction.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <numeric>
#include <system_error>
#include <utility>

#include <glog/logging.h>

#include "common/base/did_you_mean.h"
#include "common/base/text.h"
#include "common/settings/choices.h"
#include "common/settings/option_value.h"
#include "data/readers/image_decoder.h"
#include "data/readers/image_files.h"
#include "data/readers/image_set.h"
#include "data/readers/registry.h"
#include "data/transforms/crops.h"
#include "models/network.h"
#include "worker/inference/stored_model.h"

namespace kumo {
namespace {

constexpr int kBatch = 64;

// The images of one input, and their positions among the results.
struct Source {
  ImageContainer container;
  std::vector<std::string> files;
  std::vector<ImageListing::Unusable> unusable = {};
};

Result<Source> SourceOf(const std::string& input) {
  // A path that is no archive by its name is a file.
  std::error_code error;
  if (IsImageName(input) && std::filesystem::is_regular_file(input, error)) {
    return Source{{}, {input}};
  }
  Result<ImageContainer> container = FindContainer(input);
  if (container.status().code() == StatusCode::kNotFound) {
    return NotFound(input + ": no such image, folder or archive");
  }
  Source source;
  KUMO_ASSIGN_OR_RETURN(source.container, std::move(container));
  Result<ImageListing> listing = ListImages(source.container);
  if (listing.status().code() == StatusCode::kDataLoss) {
    return InvalidArgument(listing.status().message() +
                           "; it is neither an image (.jpg, .jpeg, .png) nor a folder; to "
                           "continue a text with a language model use --prompt");
  }
  KUMO_RETURN_IF_ERROR(listing.status());
  if (!listing->left_out.empty()) LOG(WARNING) << input << ": " << listing->left_out.Text();
  source.files = std::move(listing->images);
  source.unusable = std::move(listing->unusable);
  if (source.files.empty() && source.unusable.empty()) {
    return InvalidArgument(input + ": contains no images (.jpg, .jpeg, .png)");
  }
  return source;
}

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
    if (graph.inputs.size() != 1 || graph.values[0].vocabulary > 0) {
      return InvalidArgument(
          "network " + network.name() +
          " takes no images; to continue a text with a language model use --prompt");
    }
    const Shape& input = graph.values[0].shape;
    if (images && (input.rank() > 3 || (input.channels() != 1 && input.channels() != 3))) {
      return InvalidArgument("network " + network.name() + " takes " + input.ToString() +
                             ", but images have 1 channel (grey) or 3 (colour)");
    }
    KUMO_ASSIGN_OR_RETURN(made->output_, FindOutput(graph, request.output));
    made->of_classes_ = IsOfClasses(graph, made->output_);
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
    made->inputs_.resize(kBatch * made->sample_bytes_);
    return made;
  }

  // Decodes the next sample. An error changes nothing.
  Status Decode(std::span<const uint8_t> file) {
    const std::span<std::byte> room = Room();
    return image_.Make(file, target_, {reinterpret_cast<uint8_t*>(room.data()), room.size()})
        .status();
  }
  // Copies the next sample. Requires as many elements as the network's input has.
  void Copy(std::span<const std::byte> numbers) { std::ranges::copy(numbers, Room().begin()); }
  // Adds the next sample to the minibatch. The prediction is filled in by a later call or by Flush.
  Status Add(Prediction* prediction) {
    waiting_.push_back(prediction);
    return std::ssize(waiting_) == kBatch ? Flush() : OkStatus();
  }

  Status Flush() {
    if (waiting_.empty()) return OkStatus();
    const int batch = static_cast<int>(waiting_.size());
    const int64_t size = net().output_shape(output_).size();
    numbers_.resize(batch * size);
    KUMO_RETURN_IF_ERROR(
        model_->Predict(batch, std::span(inputs_).first(batch * sample_bytes_), output_, numbers_));
    for (int i = 0; i < batch; ++i) {
      const auto of_sample = std::span(numbers_).subspan(i * size, size);
      if (of_classes_) {
        waiting_[i]->classes = LikeliestOf(of_sample);
      } else {
        waiting_[i]->numbers.assign(of_sample.begin(), of_sample.end());
      }
    }
    waiting_.clear();
    return OkStatus();
  }

  const Net& net() const { return model_->net(); }

 private:
  explicit Predictor(int top) : top_(top) {}

  // The place of the next sample.
  std::span<std::byte> Room() {
    return std::span(inputs_).subspan(std::ssize(waiting_) * sample_bytes_, sample_bytes_);
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
  std::unique_ptr<RunningModel> model_;
  ImageTarget target_;
  std::vector<std::string> class_names_;
  ImageMaker image_;
  std::vector<Prediction*> waiting_;  // by position in the minibatch
  int64_t sample_bytes_ = 0;
  std::vector<std::byte> inputs_;
  std::vector<float> numbers_;  // of the output
};

// True if an error of reading one image says nothing about the next one.
bool IsOfOneImage(const Status& error) {
  return IsDamage(error) || error.code() == StatusCode::kFailedPrecondition;  // no permission
}

Status PredictImages(const StoredModel& model, const PredictRequest& request,
                     Predictions* predictions) {
  std::vector<Source> sources;
  size_t images = 0;
  for (const std::string& input : request.inputs) {
    KUMO_ASSIGN_OR_RETURN(Source source, SourceOf(input));
    images += source.files.size();
    sources.push_back(std::move(source));
  }
  KUMO_ASSIGN_OR_RETURN(const auto predictor, Predictor::Make(model, NumberType::kUint8, request));
  predictions->skips_damaged = model.experiment.data.damaged == DamagedImages::kSkip;
  const auto add_damaged = [predictions](const std::string& file, const std::string& why) {
    predictions->damaged.push_back(file + ": " + why);
    LOG(WARNING) << predictions->damaged.back();
  };
  predictions->samples.resize(images);  // before pointers to elements are taken
  size_t first = 0;
  for (const Source& source : sources) {
    for (const auto& [name, why] : source.unusable) add_damaged(source.container.Name(name), why);
    const auto see = [&](int64_t index, const Result<std::span<const uint8_t>>& content) -> Status {
      const std::string& name = source.files[index];
      const std::string file = source.container.path.empty() ? name : source.container.Name(name);
      const Status decoded = content.ok() ? predictor->Decode(*content) : content.status();
      if (!decoded.ok() && !IsOfOneImage(decoded)) return decoded.WithContext(file);
      if (!decoded.ok()) {
        add_damaged(file, decoded.message());
        return OkStatus();
      }
      Prediction& prediction = predictions->samples[first + index];
      prediction.file = file;
      return predictor->Add(&prediction);
    };
    KUMO_RETURN_IF_ERROR(ReadImages(source.container, source.files, see));
    first += source.files.size();
  }
  KUMO_RETURN_IF_ERROR(predictor->Flush());
  std::erase_if(predictions->samples, [](const Prediction& one) { return one.file.empty(); });
  return OkStatus();
}

// Files of the job's reader, one sample per line.
Status PredictLines(const StoredModel& model, const PredictRequest& request,
                    Predictions* predictions) {
  const Experiment::Data& data = model.experiment.data;
  ReaderRequest read;
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
  for (const auto& set : sets) {
    Sample sample(set->fields());
    for (int64_t i = 0; i < set->size(); ++i) {
      sample.Reset(set->fields());
      KUMO_RETURN_IF_ERROR(set->Read(i, &sample));
      next->file = set->name() + ":" + std::to_string(i + 1);
      predictor->Copy(sample.field(0));
      KUMO_RETURN_IF_ERROR(predictor->Add(next++));
    }
  }
  return predictor->Flush();
}

}  // namespace

Result<Predictions> Predict(const ModelName& name, const PredictRequest& request) {
  KUMO_ASSIGN_OR_RETURN(const StoredModel model, OpenStoredModel(name));
  Predictions predictions;
  predictions.checkpoint = model.checkpoint;
  const bool lines = TraitsOf(model.experiment.data.reader).samples == SampleKind::kNumbers;
  KUMO_RETURN_IF_ERROR(lines ? PredictLines(model, request, &predictions)
                             : PredictImages(model, request, &predictions));
  return predictions;
}

Status DamageIn(const Predictions& predictions) {
  const size_t damaged = predictions.damaged.size(), whole = predictions.samples.size();
  if (damaged == 0 || (predictions.skips_damaged && whole > 0)) return OkStatus();
  return DataLoss(
      std::to_string(damaged) + " of " +
      Counted(static_cast<int64_t>(damaged + whole), "image", "images") +
      " cannot be read; repair or remove these files" +
      (predictions.skips_damaged ? "" : ", or skip damaged images with --set data.damaged=skip"));
}

}  // namespace kumo
