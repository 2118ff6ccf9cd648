// The detector's loss beside its definition in double, and its layer.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "common/detection/boxes.h"
#include "models/layers/loss.h"
#include "models/network.h"
#include "tests/models/ops/layer_on_device.h"

namespace kumo {
namespace {

using testing::HasSubstr;

// A minibatch of scores and offsets, sample by sample, box by box, and its objects.
struct Case {
  static constexpr int64_t kRoom = 5;

  int batch = 0;
  std::vector<std::vector<double>> offsets;  // [sample][box x 4]
  std::vector<std::vector<double>> scores;   // [sample][box x scores]
  std::vector<int32_t> counts;
  std::vector<int32_t> classes;  // [sample x kRoom]
  std::vector<Box> boxes;
};

struct Found {
  std::vector<double> sums;
  std::vector<std::vector<double>> grad_offsets;
  std::vector<std::vector<double>> grad_scores;
};

MultiboxSpec SmallSpec() {
  return {.classes = 2, .grids = {{3, 3, 8, 6, 9, {2}}, {2, 2, 12, 12, 20, {}}}, .weight = 0.5f};
}

Case RandomCase(const MultiboxSpec& spec, Rng* rng) {
  Case made;
  made.batch = 1 + static_cast<int>(rng->NextBelow(5));
  const auto boxes = static_cast<int64_t>(DefaultBoxes(spec.grids).size());
  const auto draw = [&](int64_t count) {
    std::vector<double> numbers(static_cast<size_t>(count));
    for (double& x : numbers) x = static_cast<double>(rng->NextUniform(-3, 3));
    return numbers;
  };
  // Often many boxes have the same scores, so that many are equally hard.
  const int64_t different = rng->NextBelow(2) == 0 ? 3 : boxes;
  const std::vector<double> scores = draw(different * spec.scores());
  for (int n = 0; n < made.batch; ++n) {
    made.offsets.push_back(draw(boxes * 4));
    made.scores.emplace_back();
    for (int64_t box = 0; box < boxes; ++box) {
      const auto from =
          scores.begin() + static_cast<int64_t>(rng->NextBelow(different)) * spec.scores();
      made.scores.back().insert(made.scores.back().end(), from, from + spec.scores());
    }
    made.counts.push_back(static_cast<int32_t>(rng->NextBelow(Case::kRoom + 1)));
    for (int64_t o = 0; o < Case::kRoom; ++o) {
      made.classes.push_back(static_cast<int32_t>(rng->NextBelow(spec.classes)));
      const float left = rng->NextUniform(0, 20), top = rng->NextUniform(0, 20);
      const bool flat = rng->NextBelow(8) == 0;
      made.boxes.push_back(
          {left, top, left + (flat ? 0 : rng->NextUniform(2, 16)), top + rng->NextUniform(2, 16)});
    }
  }
  return made;
}

Found ByDefinition(const MultiboxSpec& spec, const Case& of) {
  const std::vector<Box> defaults = DefaultBoxes(spec.grids);
  Found found;
  found.sums.assign(MultiboxSpec::sums(), 0);
  double positives = 0;
  std::vector<std::vector<int32_t>> matches(of.batch, std::vector<int32_t>(defaults.size()));
  for (int n = 0; n < of.batch; ++n) {
    MatchBoxes(defaults, {of.boxes.data() + n * Case::kRoom, static_cast<size_t>(of.counts[n])},
               spec.threshold, matches[n]);
    positives +=
        static_cast<double>(std::ssize(defaults) - std::ranges::count(matches[n], kNoObject));
  }
  const double factor = positives > 0 ? static_cast<double>(spec.weight) / positives : 0;
  for (int n = 0; n < of.batch; ++n) {
    std::vector<double> grad_offsets(of.offsets[n].size()), grad_scores(of.scores[n].size());
    std::vector<std::tuple<float, size_t>> hardness;
    std::vector<size_t> chosen;
    const auto scores_of = [&](size_t box) { return of.scores[n].data() + box * spec.scores(); };
    const auto log_sum = [&](size_t box) {
      double sum = 0;
      for (int64_t c = 0; c < spec.scores(); ++c) sum += std::exp(scores_of(box)[c]);
      return std::log(sum);
    };
    const auto wanted = [&](size_t box) {
      const int32_t object = matches[n][box];
      return object == kNoObject ? 0 : of.classes[n * Case::kRoom + object] + 1;
    };
    for (size_t box = 0; box < defaults.size(); ++box) {
      if (matches[n][box] != kNoObject) {
        chosen.push_back(box);
      } else {
        hardness.emplace_back(-static_cast<float>(log_sum(box) - scores_of(box)[0]), box);
      }
    }
    for (const size_t box : chosen) {
      const BoxOffsets goal = EncodeBox(of.boxes[n * Case::kRoom + matches[n][box]], defaults[box]);
      const float goals[] = {goal.x, goal.y, goal.width, goal.height};
      for (int i = 0; i < 4; ++i) {
        const double d = of.offsets[n][box * 4 + i] - static_cast<double>(goals[i]);
        found.sums[MultiboxSpec::kOffsetSum] += std::abs(d) < 1 ? d * d / 2 : std::abs(d) - 0.5;
        grad_offsets[box * 4 + i] = factor * std::clamp(d, -1.0, 1.0);
      }
    }
    std::ranges::sort(hardness);
    const auto most = static_cast<size_t>(spec.negatives * static_cast<float>(chosen.size()));
    hardness.resize(std::min(hardness.size(), most));
    for (const auto& [hard, box] : hardness) chosen.push_back(box);
    for (const size_t box : chosen) {
      const double sum = log_sum(box);
      found.sums[MultiboxSpec::kClassSum] += sum - scores_of(box)[wanted(box)];
      for (int64_t c = 0; c < spec.scores(); ++c) {
        grad_scores[box * spec.scores() + c] =
            factor * (std::exp(scores_of(box)[c] - sum) - (c == wanted(box) ? 1 : 0));
      }
    }
    found.grad_offsets.push_back(grad_offsets);
    found.grad_scores.push_back(grad_scores);
  }
  found.sums[MultiboxSpec::kPositivesSum] = positives;
  found.sums[MultiboxSpec::kLossSum] =
      found.sums[MultiboxSpec::kOffsetSum] + found.sums[MultiboxSpec::kClassSum];
  return found;
}

// One spec on one backend.
class Device {
 public:
  Device(const Setting& setting, const MultiboxSpec& spec)
      : spec_(spec), backend_(setting.make()), loss_(backend_->MakeLoss(spec, kMaxBatch).value()) {
    for (const int64_t numbers : {int64_t{4}, spec_.scores()}) {
      for (const BoxGrid& grid : spec_.grids) {
        shapes_.push_back({grid.boxes_per_cell() * numbers, grid.rows, grid.columns});
      }
    }
  }

  Found Run(const Case& of) {
    std::vector<DeviceArray<std::byte>> inputs, gradients;
    std::vector<const void*> from;
    std::vector<void*> to;
    for (size_t i = 0; i < shapes_.size(); ++i) {
      const int64_t bytes = backend_->ActivationBytes(shapes_[i], of.batch);
      inputs.emplace_back(*backend_, bytes, "inputs");
      gradients.emplace_back(*backend_, bytes, "their gradients");
      const std::vector<float> numbers = Input(of, i);
      LoadActivations(*backend_, shapes_[i], of.batch, numbers.data(), inputs[i].data());
      from.push_back(inputs[i].data());
      to.push_back(gradients[i].data());
    }
    const auto on_device = [&]<typename T>(const std::vector<T>& numbers) {
      DeviceArray<T> array(*backend_, std::ssize(numbers), "targets");
      backend_->Write(numbers.data(), numbers.size() * sizeof(T), array.data());
      return array;
    };
    const auto counts = on_device(of.counts);
    const auto classes = on_device(of.classes);
    const auto boxes = on_device(of.boxes);
    const TargetArray targets[] = {{classes.data(), counts.data(), Case::kRoom},
                                   {boxes.data(), counts.data(), Case::kRoom}};
    DeviceArray<double> sums(*backend_, MultiboxSpec::sums(), "sums");
    backend_->SetStep({});
    loss_->Run(of.batch, {from, targets, to}, sums.data());
    Found found;
    found.sums.resize(MultiboxSpec::sums());
    EXPECT_TRUE(
        backend_->Read(sums.data(), found.sums.size() * sizeof(double), found.sums.data()).ok());
    found.grad_offsets.resize(of.batch);
    found.grad_scores.resize(of.batch);
    for (size_t i = 0; i < shapes_.size(); ++i) {
      std::vector<float> numbers(static_cast<size_t>(of.batch * shapes_[i].size()));
      backend_->StoreOutputs(shapes_[i], of.batch, gradients[i].data(), numbers.data());
      const size_t maps = spec_.grids.size();
      Append(numbers, i, of.batch, i < maps ? &found.grad_offsets : &found.grad_scores);
    }
    return found;
  }

 private:
  // Calls see(sample, number of the box among the map's, number of the box, place in the input).
  template <typename See>
  void ForEach(size_t input, int batch, const See& see) const {
    const BoxGrid& grid = spec_.grids[input % spec_.grids.size()];
    const int64_t numbers = input < spec_.grids.size() ? 4 : spec_.scores();
    const int64_t plane = grid.rows * grid.columns;
    for (int n = 0; n < batch; ++n) {
      for (int64_t box = 0; box < grid.boxes(); ++box) {
        for (int64_t i = 0; i < numbers; ++i) {
          const int64_t channel = box / plane * numbers + i;
          see(n, box, i, (n * shapes_[input].channels() + channel) * plane + box % plane);
        }
      }
    }
  }
  std::vector<float> Input(const Case& of, size_t input) const {
    const bool is_offsets = input < spec_.grids.size();
    const int64_t numbers = is_offsets ? 4 : spec_.scores();
    const int64_t first = FirstBox(input % spec_.grids.size());
    std::vector<float> made(static_cast<size_t>(of.batch * shapes_[input].size()));
    ForEach(input, of.batch, [&](int n, int64_t box, int64_t i, int64_t at) {
      const auto& from = (is_offsets ? of.offsets : of.scores)[n];
      made[at] = static_cast<float>(from[(first + box) * numbers + i]);
    });
    return made;
  }
  void Append(const std::vector<float>& from, size_t input, int batch,
              std::vector<std::vector<double>>* to) const {
    ForEach(input, batch, [&](int n, int64_t, int64_t, int64_t at) {
      (*to)[n].push_back(static_cast<double>(from[at]));
    });
  }
  int64_t FirstBox(size_t map) const {
    int64_t first = 0;
    for (size_t m = 0; m < map; ++m) first += spec_.grids[m].boxes();
    return first;
  }

  const MultiboxSpec spec_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<LossOp> loss_;
  std::vector<Shape> shapes_;
};

void ExpectNear(const std::vector<std::vector<double>>& found,
                const std::vector<std::vector<double>>& expected, const std::string& what) {
  for (size_t n = 0; n < expected.size(); ++n) {
    ASSERT_EQ(found[n].size(), expected[n].size()) << what;
    for (size_t i = 0; i < expected[n].size(); ++i) {
      ASSERT_NEAR(found[n][i], expected[n][i], 1e-5) << what << ", sample " << n << ", " << i;
    }
  }
}

TEST(Multibox, SumsAndGradientsAreThoseOfTheDefinition) {
#ifdef KUMO_SANITIZED  // which watch memory, the same in each case
  const int cases = 20;
#else
  const int cases = GpuIsSimulated() ? 20 : 10000;
#endif
  const MultiboxSpec spec = SmallSpec();
  const std::vector<Setting> settings = Settings();
  std::vector<Device> devices;
  for (const Setting& setting : settings) devices.emplace_back(setting, spec);
  Rng rng(5, RngPurpose::kTest);
  for (int i = 0; i < cases; ++i) {
    const Case of = RandomCase(spec, &rng);
    const Found expected = ByDefinition(spec, of);
    // The first setting takes every case; of many, the others take some.
    const size_t taking = cases > 100 && i % 10 != 0 ? 1 : devices.size();
    for (size_t d = 0; d < taking; ++d) {
      const Found found = devices[d].Run(of);
      const std::string what = settings[d].name + ", case " + std::to_string(i);
      for (int s = 0; s < MultiboxSpec::sums(); ++s) {
        ASSERT_NEAR(found.sums[s], expected.sums[s], 1e-4 * (1 + expected.sums[s])) << what;
      }
      ASSERT_NO_FATAL_FAILURE(ExpectNear(found.grad_offsets, expected.grad_offsets, what));
      ASSERT_NO_FATAL_FAILURE(ExpectNear(found.grad_scores, expected.grad_scores, what));
    }
  }
}

TEST(Multibox, ImagesWithoutObjectsAreWithoutLossAndGradient) {
  const MultiboxSpec spec = SmallSpec();
  Rng rng(6, RngPurpose::kTest);
  Case of = RandomCase(spec, &rng);
  std::ranges::fill(of.counts, 0);
  for (const Setting& setting : Settings()) {
    const Found found = Device(setting, spec).Run(of);
    EXPECT_EQ(found.sums, std::vector<double>(MultiboxSpec::sums(), 0.0)) << setting.name;
    for (const auto& numbers : found.grad_scores) {
      EXPECT_EQ(std::ranges::count(numbers, 0.0), std::ssize(numbers)) << setting.name;
    }
  }
}

TEST(Multibox, AnyNumberOfNegativesIsAtMostAllBoxesWithoutObject) {
  MultiboxSpec spec = SmallSpec();
  Rng rng(8, RngPurpose::kTest);
  Case of = RandomCase(spec, &rng);
  of.counts[0] = 1;
  of.boxes[0] = {2, 2, 10, 10};
  for (const Setting& setting : Settings()) {
    spec.negatives = 1000;  // more than there are boxes
    const Found all = Device(setting, spec).Run(of);
    for (const float negatives : {1e10f, 1e20f, std::numeric_limits<float>::max()}) {
      spec.negatives = negatives;
      const Found found = Device(setting, spec).Run(of);
      EXPECT_EQ(found.sums, all.sums) << setting.name << ", " << negatives;
      EXPECT_EQ(found.grad_scores, all.grad_scores) << setting.name << ", " << negatives;
    }
  }
}

// NaN counts as the hardest negative, so that the loss shows it.
TEST(Multibox, AScoreThatIsNoNumberShows) {
  const MultiboxSpec spec = SmallSpec();
  Rng rng(7, RngPurpose::kTest);
  Case of = RandomCase(spec, &rng);
  of.counts[0] = 1;
  of.boxes[0] = {2, 2, 10, 10};
  std::ranges::fill(of.scores[0], std::numeric_limits<double>::quiet_NaN());
  for (const Setting& setting : Settings()) {
    const Found found = Device(setting, spec).Run(of);
    EXPECT_TRUE(std::isnan(found.sums[MultiboxSpec::kLossSum])) << setting.name;
  }
}

// Network file with heads of one map.
std::string NetworkWith(const std::string& heads, const std::string& loss) {
  return "name: \"detector\" input { channels: 3 height: 16 width: 16 } "
         "layers { name: \"trunk\" convolution { outputs: 8 kernel: 3 stride: 2 pad: 1 } }" +
         heads + "layers { name: \"loss\" inputs: \"offsets\" inputs: \"scores\" multibox { " +
         loss + " } }";
}
std::string Head(const std::string& name, int outputs, const std::string& more = "") {
  return "layers { name: \"" + name +
         "\" inputs: \"trunk\" convolution { outputs: " + std::to_string(outputs) +
         " kernel: 3 pad: 1 " + more + " } }";
}

TEST(Multibox, ALayerTakesTheHeadsOfItsMaps) {
  const std::string heads = Head("offsets", 16) + Head("scores", 12);
  const std::string map = "maps { step: 2 size: 4 next_size: 6 ratios: 2 }";
  const auto plan = [](const std::string& text) -> Result<Graph> {
    KUMO_ASSIGN_OR_RETURN(const model::Network network, ParseNetwork(text, "detector"));
    return PlanNetwork(network);
  };
  const Result<Graph> graph = plan(NetworkWith(heads, "classes: 2 " + map));
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->metrics.Names(), "loss, offset_loss, class_loss, map, map_11, map_coco");
  EXPECT_EQ(graph->target().classes, 2);
  EXPECT_EQ(graph->losses[0].detail, "256 boxes");
  const auto error = [&](const std::string& text) { return plan(text).status().message(); };
  EXPECT_THAT(error(NetworkWith(heads, "classes: 3 " + map)), HasSubstr("4 x 4 channels"));
  EXPECT_THAT(error(NetworkWith(heads, "classes: 2 maps { step: 2 size: 4 next_size: 6 }")),
              HasSubstr("2 x 4 channels"));
  EXPECT_THAT(error(NetworkWith(heads, "classes: 2 " + map + map)), HasSubstr("4 layers, names 2"));
  EXPECT_THAT(error(NetworkWith(heads, "classes: 2 maps { size: 4 next_size: 6 ratios: 2 }")),
              HasSubstr("maps[0].step must be more than 0"));
  EXPECT_THAT(
      error(NetworkWith(heads, "classes: 2 maps { step: 2 size: 4 next_size: 6 ratios: 1 }")),
      HasSubstr("must be above 1"));
  EXPECT_THAT(error(NetworkWith(Head("offsets", 16, "stride: 2") + Head("scores", 12),
                                "classes: 2 " + map)),
              HasSubstr("one height and width"));
}

}  // namespace
}  // namespace kumo
