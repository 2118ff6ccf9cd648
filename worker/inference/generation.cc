#include "worker/inference/generation.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/printable.h"
#include "common/base/rng.h"
#include "models/graph/causality.h"
#include "models/network.h"
#include "worker/inference/stored_model.h"

namespace kumo {
namespace {

constexpr int kBytes = 256;

// Vocabulary: the texts of tokens, and the tokens of a text.
class Vocabulary {
 public:
  // names: by number; empty: tokens are bytes.
  explicit Vocabulary(std::vector<std::string> names) : names_(std::move(names)) {
    if (names_.empty()) {
      for (int byte = 0; byte < kBytes; ++byte) names_.emplace_back(1, static_cast<char>(byte));
    }
    for (size_t i = 0; i < names_.size(); ++i) {
      numbers_.emplace(names_[i], static_cast<int32_t>(i));
      longest_ = std::max(longest_, names_[i].size());
    }
  }

  int64_t size() const { return std::ssize(names_); }
  const std::string& TextOf(int64_t token) const { return names_[token]; }

  // InvalidArgument if a part of the text is no token.
  Result<std::vector<int32_t>> TokensOf(std::string_view text) const {
    std::vector<int32_t> tokens;
    for (size_t at = 0; at < text.size();) {
      size_t length = std::min(longest_, text.size() - at);
      auto found = numbers_.end();
      for (; length > 0 && found == numbers_.end(); --length) {
        found = numbers_.find(std::string(text.substr(at, length)));
      }
      if (found == numbers_.end()) {
        return InvalidArgument("prompt \"" + Printable(text, 40) + "\": the text at byte " +
                               std::to_string(at) + " (\"" + std::string(text.substr(at, 8)) +
                               "\") is not in the vocabulary of the network");
      }
      tokens.push_back(found->second);
      at += length + 1;
    }
    if (tokens.empty()) return InvalidArgument("the prompt is empty");
    return tokens;
  }

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, int32_t> numbers_;
  size_t longest_ = 1;  // bytes of a token
};

// Checks that the network gives scores for the next token at each position, and does not see later
// positions.
Status CheckGoesOn(const Graph& graph) {
  const bool tokens = graph.inputs.size() == 1 && graph.values[0].vocabulary > 0 &&
                      graph.values[0].shape.rank() == 1;
  const Shape scores = graph.values[graph.outputs[0].value].shape;
  if (!tokens || scores.plane() != graph.values[0].shape.size() ||
      scores.channels() != graph.values[0].vocabulary) {
    return InvalidArgument("network " + graph.name +
                           " is no language model: it must give scores of all tokens at each "
                           "position of a sequence of tokens");
  }
  return CheckCausal(graph);
}

// Language model that scores the next token.
class LanguageModel {
 public:
  static Result<std::unique_ptr<LanguageModel>> Make(const StoredModel& model) {
    std::unique_ptr<LanguageModel> made(new LanguageModel());
    KUMO_ASSIGN_OR_RETURN(const model::Network network, NetworkOf(model));
    KUMO_ASSIGN_OR_RETURN(const Graph graph, PlanNetwork(network));
    KUMO_RETURN_IF_ERROR(CheckGoesOn(graph));
    made->positions_ = graph.values[0].shape.size();
    made->words_ = graph.values[0].vocabulary;
    KUMO_ASSIGN_OR_RETURN(made->model_,
                          RunningModel::Make(model, network, 1, NumberType::kInt32, {}));
    made->window_.resize(made->positions_);
    made->scores_.resize(made->words_ * made->positions_);
    return made;
  }

  int64_t words() const { return words_; }

  // Scores of the token after `tokens`, of which the model uses the last ones that fit its sequence
  // length. Valid until the next call.
  Result<std::span<const float>> ScoresAfter(std::span<const int32_t> tokens) {
    const size_t seen = std::min<size_t>(tokens.size(), positions_);
    // A causal model's scores do not depend on the padding behind the last token.
    std::ranges::fill(window_, 0);
    std::ranges::copy(tokens.last(seen), window_.begin());
    KUMO_RETURN_IF_ERROR(model_->Predict(1, std::as_bytes(std::span(window_)), 0, scores_));
    next_.resize(words_);
    for (int64_t w = 0; w < words_; ++w) {
      next_[w] = scores_[w * positions_ + static_cast<int64_t>(seen) - 1];
    }
    return std::span<const float>(next_);
  }

 private:
  LanguageModel() = default;

  int64_t positions_ = 0;
  int64_t words_ = 0;
  std::unique_ptr<RunningModel> model_;
  std::vector<int32_t> window_;
  std::vector<float> scores_, next_;
};

// Continues one prompt.
Status Continue(LanguageModel* network, const Vocabulary& vocabulary,
                const GenerationRequest& request, std::vector<int32_t> tokens,
                GeneratedTexts* texts) {
  StopFilter filter(request.stop, [&](std::string_view text) { texts->Add(text); });
  for (int i = 0; i < request.tokens; ++i) {
    KUMO_ASSIGN_OR_RETURN(const std::span<const float> scores, network->ScoresAfter(tokens));
    Rng rng(static_cast<uint64_t>(request.seed), RngPurpose::kGeneration, static_cast<uint64_t>(i));
    // A token without text was never trained.
    const int64_t token = DrawToken(scores.first(vocabulary.size()), request.sampling, &rng);
    if (!filter.Add(vocabulary.TextOf(token))) return OkStatus();
    tokens.push_back(static_cast<int32_t>(token));
  }
  filter.Finish();
  return OkStatus();
}

}  // namespace

Status Generate(const ModelName& name, const GenerationRequest& request, GeneratedTexts* texts) {
  KUMO_ASSIGN_OR_RETURN(const StoredModel model, OpenStoredModel(name));
  KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<LanguageModel> network, LanguageModel::Make(model));
  KUMO_ASSIGN_OR_RETURN(ModelData data, DataOf(model));
  if (HasCharacters(model.experiment.data) && data.class_names.empty()) {
    return FailedPrecondition("checkpoint " + model.checkpoint +
                              " lacks the characters of its text, which are too many; locate the "
                              "text with --set data.directory=DIR --set data.text=FILE");
  }
  const Vocabulary vocabulary(std::move(data.class_names));
  if (vocabulary.size() > network->words()) {
    return InvalidArgument("the network has " + std::to_string(network->words()) +
                           " tokens, but the text that it was trained on has " +
                           std::to_string(vocabulary.size()));
  }
  std::vector<std::vector<int32_t>> prompts;
  for (const std::string& prompt : request.prompts) {
    KUMO_ASSIGN_OR_RETURN(prompts.emplace_back(), vocabulary.TokensOf(prompt));
  }
  for (size_t i = 0; i < prompts.size(); ++i) {
    texts->Begin(request.prompts[i]);
    KUMO_RETURN_IF_ERROR(Continue(network.get(), vocabulary, request, prompts[i], texts));
    texts->End();
  }
  return OkStatus();
}

}  // namespace kumo
