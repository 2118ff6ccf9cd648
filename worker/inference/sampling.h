// Sampling of a language model's text: draws the next token, and ends the text at a stop string.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/rng.h"

namespace kumo {

struct SamplingSettings {
  // Scores are divided by the temperature before the softmax: values below 1 sharpen the
  // distribution; 0 always takes the likeliest token.
  double temperature = 0.8;
  int most_likely = 0;  // sample from this many of the likeliest tokens (top-k); 0: all
  // Sample from the likeliest tokens whose probabilities add up to at least this (top-p), after
  // most_likely; 1: all.
  double top_p = 1;
};

// The next token. Of equal scores the lower token counts as likelier. Pure, except for *rng.
// Requires scores.
int64_t DrawToken(std::span<const float> scores, const SamplingSettings& settings, Rng* rng);

// Passes a text on as it grows, up to a stop string, which is left out. A part that may be the
// start of the stop string is held back. One thread.
class StopFilter {
 public:
  // stop: "" for none.
  StopFilter(std::string stop, std::function<void(std::string_view)> say)
      : stop_(std::move(stop)), say_(std::move(say)) {}

  // The next part of the text. Returns false if the stop string has come: the text has ended.
  bool Add(std::string_view part);
  // The text ends without the stop string.
  void Finish();

 private:
  const std::string stop_;
  const std::function<void(std::string_view)> say_;
  std::string held_;
};

}  // namespace kumo
