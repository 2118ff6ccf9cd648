// Loss of a single-shot detector. Three passes: the logarithms of the sums of exponentials of all
// boxes' scores, sample by sample in the vector lanes; for each sample the matching, the choice of
// the negatives and the sums; for each sample the gradients of the chosen boxes, since those of all
// others are 0.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "common/detection/boxes.h"
#include "models/backend/cpu/ops.h"

namespace kumo::cpu {
namespace {

class Multibox final : public LossOp {
 public:
  Multibox(CpuEngine& engine, MultiboxSpec spec, int max_batch)
      : engine_(engine),
        spec_(std::move(spec)),
        defaults_(DefaultBoxes(spec_.grids)),
        samples_(static_cast<size_t>(max_batch)) {
    for (size_t map = 0; map < spec_.grids.size(); ++map) {
      const BoxGrid& grid = spec_.grids[map];
      const int64_t cells = grid.rows * grid.columns;
      for (int64_t k = 0; k < grid.boxes_per_cell(); ++k) {
        for (int64_t cell = 0; cell < cells; ++cell) places_.push_back({map, k, cell, cells});
      }
    }
    for (Sample& sample : samples_) sample.matches.resize(defaults_.size());
  }

  void Run(int batch, const LossArrays& arrays, double* sums) override {
    const int64_t lanes = engine_.Lanes(batch);
    log_sums_.resize(places_.size() * static_cast<size_t>(lanes));
    constexpr int64_t kAtOnce = 64;  // boxes
    const int64_t pieces = (std::ssize(places_) + kAtOnce - 1) / kAtOnce;
    engine_.Parallel(pieces, [&](int64_t i) {
      const int64_t end = std::min((i + 1) * kAtOnce, std::ssize(places_));
      for (int64_t box = i * kAtOnce; box < end; ++box) SumExponentials(arrays, box, lanes);
    });
    engine_.Parallel(batch, [&](int64_t n) { Choose(arrays, n, lanes); });
    int64_t positives = 0;
    for (int n = 0; n < batch; ++n) positives += std::ssize(samples_[n].positives);
    for (int n = 0; n < batch; ++n) {
      const Sample& sample = samples_[n];
      sums[MultiboxSpec::kLossSum] += sample.of_offsets + sample.of_classes;
      sums[MultiboxSpec::kOffsetSum] += sample.of_offsets;
      sums[MultiboxSpec::kClassSum] += sample.of_classes;
    }
    sums[MultiboxSpec::kPositivesSum] += static_cast<double>(positives);
    if (!Zero(arrays, lanes) || positives == 0) return;
    const float factor = spec_.weight / static_cast<float>(positives);
    engine_.Parallel(batch, [&](int64_t n) { SetGradients(arrays, n, lanes, factor); });
  }

 private:
  // Place of a default box in the inputs: box k of a cell of a map.
  struct Place {
    size_t map = 0;
    int64_t k = 0;
    int64_t cell = 0;
    int64_t cells = 0;  // of the map
  };
  struct Sample {
    std::vector<int32_t> matches;
    std::vector<int64_t> positives;
    std::vector<int64_t> negatives;  // after Choose those that count
    std::vector<float> hardness;     // by default box
    double of_offsets = 0;
    double of_classes = 0;
  };

  // NaN counts as the hardest, so that the order is total.
  static float Order(float hardness) {
    return std::isnan(hardness) ? std::numeric_limits<float>::infinity() : hardness;
  }
  // Position of number i (coordinate or class) of a box in sample 0; sample n is n floats further.
  int64_t At(const Place& place, int64_t numbers, int64_t i, int64_t lanes) const {
    return ((place.k * numbers + i) * place.cells + place.cell) * lanes;
  }
  const float* Scores(const LossArrays& arrays, const Place& place, int64_t c,
                      int64_t lanes) const {
    return Floats(arrays.inputs[spec_.grids.size() + place.map]) +
           At(place, spec_.scores(), c, lanes);
  }
  const float* Offsets(const LossArrays& arrays, const Place& place, int64_t i,
                       int64_t lanes) const {
    return Floats(arrays.inputs[place.map]) + At(place, MultiboxSpec::kCoordinates, i, lanes);
  }

  void SumExponentials(const LossArrays& arrays, int64_t box, int64_t lanes) {
    const Place& place = places_[box];
    const float* const scores = Scores(arrays, place, 0, lanes);
    const int64_t stride = place.cells * lanes;
    float* const to = log_sums_.data() + box * lanes;
    for (int64_t n = 0; n < lanes; ++n) {
      float top = scores[n];
      for (int64_t c = 1; c < spec_.scores(); ++c) top = std::max(top, scores[c * stride + n]);
      float sum = 0;
      for (int64_t c = 0; c < spec_.scores(); ++c) sum += std::exp(scores[c * stride + n] - top);
      to[n] = top + std::log(sum);
    }
  }

  // The class that a matched box is to have.
  int64_t ClassOf(const LossArrays& arrays, int64_t n, int32_t object) const {
    const TargetArray& classes = arrays.targets[0];
    return static_cast<const int32_t*>(classes.values)[n * classes.room + object] + 1;
  }
  Box BoxOf(const LossArrays& arrays, int64_t n, int32_t object) const {
    const TargetArray& boxes = arrays.targets[1];
    Box box;
    std::memcpy(&box, static_cast<const Box*>(boxes.values) + n * boxes.room + object, sizeof box);
    return box;
  }
  // The differences of a matched box's offsets and those that it is to have.
  std::array<float, 4> Differences(const LossArrays& arrays, int64_t n, int64_t box,
                                   int64_t lanes) const {
    const BoxOffsets wanted = EncodeBox(BoxOf(arrays, n, samples_[n].matches[box]), defaults_[box]);
    const std::array<float, 4> goal = {wanted.x, wanted.y, wanted.width, wanted.height};
    std::array<float, 4> differences;
    for (int64_t i = 0; i < MultiboxSpec::kCoordinates; ++i) {
      differences[i] = Offsets(arrays, places_[box], i, lanes)[n] - goal[i];
    }
    return differences;
  }

  void Choose(const LossArrays& arrays, int64_t n, int64_t lanes) {
    Sample& sample = samples_[n];
    Match(arrays, n, &sample);
    sample.positives.clear();
    sample.negatives.clear();
    sample.hardness.resize(places_.size());
    for (int64_t box = 0; box < std::ssize(places_); ++box) {
      const bool matched = sample.matches[box] != kNoObject;
      (matched ? sample.positives : sample.negatives).push_back(box);
      const int64_t wanted = matched ? ClassOf(arrays, n, sample.matches[box]) : 0;
      sample.hardness[box] =
          log_sums_[box * lanes + n] - Scores(arrays, places_[box], wanted, lanes)[n];
    }
    // In double: the product may exceed any integer.
    const auto count = static_cast<int64_t>(std::min(
        static_cast<double>(spec_.negatives) * static_cast<double>(sample.positives.size()),
        static_cast<double>(sample.negatives.size())));
    const auto harder = [&](int64_t a, int64_t b) {
      const float x = Order(sample.hardness[a]), y = Order(sample.hardness[b]);
      return x > y || (x == y && a < b);
    };
    std::ranges::nth_element(sample.negatives, sample.negatives.begin() + count, harder);
    sample.negatives.resize(count);
    std::ranges::sort(sample.negatives);  // so that sums do not depend on the selection's order
    sample.of_offsets = sample.of_classes = 0;
    for (const int64_t box : sample.positives) {
      for (const float difference : Differences(arrays, n, box, lanes)) {
        const auto far = static_cast<double>(std::abs(difference));
        sample.of_offsets += far < 1 ? far * far / 2 : far - 0.5;
      }
      sample.of_classes += static_cast<double>(sample.hardness[box]);
    }
    for (const int64_t box : sample.negatives) {
      sample.of_classes += static_cast<double>(sample.hardness[box]);
    }
  }
  void Match(const LossArrays& arrays, int64_t n, Sample* sample) const {
    const int32_t count = std::min(arrays.targets[1].counts[n], MultiboxSpec::kMostObjects);
    std::vector<Box> objects;
    for (int32_t o = 0; o < count; ++o) objects.push_back(BoxOf(arrays, n, o));
    MatchBoxes(defaults_, objects, spec_.threshold, sample->matches);
  }

  // Returns whether any gradient is wanted.
  bool Zero(const LossArrays& arrays, int64_t lanes) const {
    bool any = false;
    for (size_t map = 0; map < spec_.grids.size(); ++map) {
      const int64_t boxes = spec_.grids[map].boxes();
      const auto zero = [&](size_t input, int64_t numbers) {
        void* const gradient = arrays.grad_input(static_cast<int>(input));
        if (gradient == nullptr) return;
        std::fill_n(Floats(gradient), boxes * numbers * lanes, 0.0f);
        any = true;
      };
      zero(map, MultiboxSpec::kCoordinates);
      zero(spec_.grids.size() + map, spec_.scores());
    }
    return any;
  }

  void SetGradients(const LossArrays& arrays, int64_t n, int64_t lanes, float factor) {
    const Sample& sample = samples_[n];
    for (const int64_t box : sample.positives) {
      SetScoreGradients(arrays, n, box, ClassOf(arrays, n, sample.matches[box]), lanes, factor);
      const Place& place = places_[box];
      void* const gradient = arrays.grad_input(static_cast<int>(place.map));
      if (gradient == nullptr) continue;
      const std::array<float, 4> differences = Differences(arrays, n, box, lanes);
      for (int64_t i = 0; i < MultiboxSpec::kCoordinates; ++i) {
        Floats(gradient)[At(place, MultiboxSpec::kCoordinates, i, lanes) + n] =
            factor * std::clamp(differences[i], -1.0f, 1.0f);
      }
    }
    for (const int64_t box : sample.negatives) SetScoreGradients(arrays, n, box, 0, lanes, factor);
  }
  void SetScoreGradients(const LossArrays& arrays, int64_t n, int64_t box, int64_t wanted,
                         int64_t lanes, float factor) {
    const Place& place = places_[box];
    void* const gradient = arrays.grad_input(static_cast<int>(spec_.grids.size() + place.map));
    if (gradient == nullptr) return;
    const float log_sum = log_sums_[box * lanes + n];
    for (int64_t c = 0; c < spec_.scores(); ++c) {
      const float softmax = std::exp(Scores(arrays, place, c, lanes)[n] - log_sum);
      Floats(gradient)[At(place, spec_.scores(), c, lanes) + n] =
          factor * (softmax - (c == wanted ? 1.0f : 0.0f));
    }
  }

  CpuEngine& engine_;
  const MultiboxSpec spec_;
  const std::vector<Box> defaults_;
  std::vector<Place> places_;    // of the default boxes
  std::vector<Sample> samples_;  // of the minibatch
  std::vector<float> log_sums_;  // boxes x lanes
};

}  // namespace

std::unique_ptr<LossOp> MakeLoss(CpuEngine& engine, const MultiboxSpec& spec, int max_batch) {
  return std::make_unique<Multibox>(engine, spec, max_batch);
}

}  // namespace kumo::cpu
