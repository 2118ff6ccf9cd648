#include "worker/prediction.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <numeric>
#include <system_error>
#include <utility>

#include "data/readers/image_files.h"
#include "data/readers/image_maker.h"
#include "models/network.h"
#include "worker/running_model.h"

namespace kumo {
namespace {

constexpr int kBatch = 64;

// Images of one place, and theirs among the results.
struct Source {
  ImageContainer container;
  std::vector<std::string> files;
};

Result<Source> SourceOf(const std::string& input) {
  // A file of its own is what is no archive by its name.
  std::error_code error;
  if (IsImageName(input) && std::filesystem::is_regular_file(input, error)) {
    return Source{{}, {input}};
  }
  Result<ImageContainer> container = FindContainer(input);
  if (container.status().code() == StatusCode::kNotFound) {
    return NotFound(input + ": there is no such image, folder or archive");
  }
  Source source;
  KUMO_ASSIGN_OR_RETURN(source.container, std::move(container));
  KUMO_ASSIGN_OR_RETURN(source.files, ListImages(source.container));
  if (source.files.empty()) {
    return InvalidArgument(input + ": holds no images (.jpg, .jpeg, .png)");
  }
  return source;
}

// The network on its device, and a minibatch of images that grows until it is shown to it.
class Predictor {
 public:
  static Result<std::unique_ptr<Predictor>> Make(const StoredModel& model, int top) {
    std::unique_ptr<Predictor> made(new Predictor(top));
    KUMO_ASSIGN_OR_RETURN(const model::Network network, NetworkOf(model));
    KUMO_ASSIGN_OR_RETURN(ModelData data, DataOf(model));
    KUMO_ASSIGN_OR_RETURN(const Graph graph, PlanNetwork(network));
    if (graph.inputs.size() != 1 || graph.values[0].vocabulary > 0) {
      return InvalidArgument("network " + network.name() +
                             " takes no images; a language model is asked with --prompt");
    }
    const Shape& input = graph.values[0].shape;
    if (input.rank() > 3 || (input.channels() != 1 && input.channels() != 3)) {
      return InvalidArgument("network " + network.name() + " takes " + input.ToString() +
                             "; images have 1 channel, of grey, or 3, of colour");
    }
    if (graph.values[graph.loss.scores].shape.plane() != 1) {
      return InvalidArgument("network " + network.name() +
                             " gives scores at each position; an image has one class");
    }
    made->target_ = {{input.channels(), input.height(), input.width()}, /*scale=*/true};
    KUMO_ASSIGN_OR_RETURN(made->model_, RunningModel::Make(model, network, kBatch, data.pixels));
    made->class_names_ = std::move(data.class_names);
    made->pixels_.resize(kBatch * input.size());
    return made;
  }

  // What the network says of it comes with a later call, or with Flush.
  Status Add(std::span<const uint8_t> file, Prediction* prediction) {
    const int64_t size = model_->net().input().size();
    const int place = static_cast<int>(waiting_.size());
    KUMO_RETURN_IF_ERROR(
        image_.Make(file, target_, std::span(pixels_).subspan(place * size, size)));
    waiting_.push_back(prediction);
    return place + 1 == kBatch ? Flush() : OkStatus();
  }

  Status Flush() {
    if (waiting_.empty()) return OkStatus();
    const int batch = static_cast<int>(waiting_.size());
    const int64_t size = model_->net().input().size();
    const int64_t classes = model_->net().classes();
    scores_.resize(batch * classes);
    KUMO_RETURN_IF_ERROR(
        model_->Predict(batch, std::as_bytes(std::span(pixels_).first(batch * size)), scores_));
    for (int i = 0; i < batch; ++i) {
      waiting_[i]->classes = LikeliestOf(std::span(scores_).subspan(i * classes, classes));
    }
    waiting_.clear();
    return OkStatus();
  }

 private:
  explicit Predictor(int top) : top_(top) {}

  // The softmax of the scores, less the largest so that no power is infinite.
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
  std::unique_ptr<RunningModel> model_;
  ImageTarget target_;
  std::vector<std::string> class_names_;
  ImageMaker image_;
  std::vector<Prediction*> waiting_;  // for the minibatch
  std::vector<uint8_t> pixels_;
  std::vector<float> scores_;
};

}  // namespace

Result<Predictions> Predict(const ModelName& name, const PredictRequest& request) {
  std::vector<Source> sources;
  size_t images = 0;
  for (const std::string& input : request.inputs) {
    KUMO_ASSIGN_OR_RETURN(Source source, SourceOf(input));
    images += source.files.size();
    sources.push_back(std::move(source));
  }
  KUMO_ASSIGN_OR_RETURN(const StoredModel model, OpenStoredModel(name));
  KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<Predictor> predictor,
                        Predictor::Make(model, request.top));
  Predictions predictions;
  predictions.checkpoint = model.checkpoint;
  predictions.images.resize(images);  // before anybody points into it
  size_t first = 0;
  for (const Source& source : sources) {
    const auto see = [&](int64_t index, const Result<std::span<const uint8_t>>& content) -> Status {
      Prediction& prediction = predictions.images[first + index];
      const std::string& file = source.files[index];
      prediction.file = source.container.path.empty() ? file : source.container.Name(file);
      if (!content.ok()) return content.status().WithContext(prediction.file);
      return predictor->Add(*content, &prediction).WithContext(prediction.file);
    };
    KUMO_RETURN_IF_ERROR(ReadImages(source.container, source.files, see));
    first += source.files.size();
  }
  KUMO_RETURN_IF_ERROR(predictor->Flush());
  return predictions;
}

}  // namespace kumo
