// Random graphs are run by their plan, on numbers that lie where it says, and by plain
// differentiation with an array for each value: the gradients must be the same. What shares memory
// without being allowed to shows as another number.
#include "models/graph/step_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace kumo {
namespace {

// What a node of the test computes. All but kScale have no weight.
enum class Kind { kScale, kTanh, kSquare, kHalve, kAdd, kMultiply };

OpTraits TraitsOf(Kind kind) {
  switch (kind) {
    case Kind::kScale:  // y = weight x
      return {.reads_input = true};
    case Kind::kTanh:
      return {.can_run_in_place = true, .reads_output = true};
    case Kind::kSquare:
      return {.reads_input = true};
    case Kind::kHalve:
      return {.can_run_in_place = true};
    case Kind::kAdd:
      return {.can_run_in_place = true, .passes_gradient = true};
    case Kind::kMultiply:
      return {.reads_input = true};
  }
  return {};
}

struct TestGraph {
  Graph graph;
  std::vector<Kind> kinds;
  std::vector<OpTraits> traits;
  std::vector<double> weights;  // by node
};

void AddInput(TestGraph* to) {
  to->graph.inputs.push_back("x");
  to->graph.AddValue({1});
}

void AddNode(Kind kind, const std::vector<int>& inputs, TestGraph* to) {
  Node node;
  node.name = "n" + std::to_string(to->graph.nodes.size());
  node.inputs = inputs;
  node.outputs = {to->graph.AddValue(to->graph.values[inputs[0]].shape)};
  if (kind == Kind::kScale) {
    node.parameters = {static_cast<int>(to->graph.parameters.size())};
    to->graph.parameters.push_back(
        {TensorKind::kWeight, {node.name, {1}, Segment::kDecayed}, {}, {}});
  }
  to->graph.nodes.push_back(std::move(node));
  to->kinds.push_back(kind);
  to->traits.push_back(TraitsOf(kind));
}

// A loss of each of these values.
void EndWith(const std::vector<int>& values, TestGraph* to) {
  for (const int value : values) {
    to->graph.losses.emplace_back();
    to->graph.losses.back().inputs = {value};
  }
}

constexpr uint64_t kOneLoss = 1500;  // seeds below it have one

// Every value is read: what nobody reads is added to the scores at the end.
TestGraph RandomGraph(uint64_t seed) {
  Rng rng(seed, RngPurpose::kTest);
  TestGraph test;
  AddInput(&test);
  const int nodes = 2 + static_cast<int>(rng.NextBelow(14));
  for (int i = 0; i < nodes; ++i) {
    const auto kind = static_cast<Kind>(rng.NextBelow(6));
    const auto any = [&] {
      // Mostly something new, so that graphs are deep.
      const auto values = static_cast<int64_t>(test.graph.values.size());
      const auto back = static_cast<int64_t>(rng.NextBelow(rng.NextBelow(3) == 0 ? values : 2));
      return static_cast<int>(std::max<int64_t>(0, values - 1 - back));
    };
    std::vector<int> inputs = {any()};
    if (kind == Kind::kAdd || kind == Kind::kMultiply) inputs.push_back(any());
    if (kind == Kind::kAdd && rng.NextBelow(3) == 0) inputs.push_back(any());
    AddNode(kind, inputs, &test);
  }
  AddNode(Kind::kScale, {static_cast<int>(test.graph.values.size()) - 1}, &test);
  std::vector<bool> read(test.graph.values.size());
  for (const Node& node : test.graph.nodes) {
    for (const int input : node.inputs) read[input] = true;
  }
  std::vector<int> ends;
  for (size_t v = 0; v < read.size(); ++v) {
    if (!read[v]) ends.push_back(static_cast<int>(v));
  }
  if (ends.size() > 1) AddNode(Kind::kAdd, ends, &test);
  const auto last = static_cast<int>(test.graph.values.size()) - 1;
  // Seeds after the first ones have more losses, some of which only measure, and outputs.
  for (uint64_t more = seed < kOneLoss ? 0 : rng.NextBelow(4); more > 0; --more) {
    EndWith({1 + static_cast<int>(rng.NextBelow(last))}, &test);
    test.graph.losses.back().weight = static_cast<float>(rng.NextBelow(3)) / 2;
    test.graph.outputs.push_back({"o", 1 + static_cast<int>(rng.NextBelow(last))});
  }
  EndWith({last}, &test);
  for (size_t i = 0; i < test.graph.nodes.size(); ++i) {
    test.weights.push_back(static_cast<double>(rng.NextUniform(-1, 1)));
  }
  return test;
}

double Forward(Kind kind, double weight, const std::vector<double>& x) {
  double sum = 0;
  for (const double v : x) sum += v;
  switch (kind) {
    case Kind::kScale:
      return weight * x[0];
    case Kind::kTanh:
      return std::tanh(x[0]);
    case Kind::kSquare:
      return x[0] * x[0];
    case Kind::kHalve:
      return x[0] / 2;
    case Kind::kAdd:
      return sum;
    case Kind::kMultiply:
      return x[0] * x[1];
  }
  return 0;
}

// The gradient of input k, from what the op says that it reads.
double Backward(Kind kind, double weight, const std::vector<double>& x, double y, double g, int k) {
  switch (kind) {
    case Kind::kScale:
      return weight * g;
    case Kind::kTanh:
      return (1 - y * y) * g;
    case Kind::kSquare:
      return 2 * x[0] * g;
    case Kind::kHalve:
      return g / 2;
    case Kind::kAdd:
      return g;
    case Kind::kMultiply:
      return x[1 - k] * g;
  }
  return 0;
}

constexpr double kX = 0.7;
double GradientOf(const LossNode& loss) { return 1.25 * static_cast<double>(loss.weight); }

std::vector<double> InputsOf(const Node& node, const std::vector<double>& values) {
  std::vector<double> x;
  for (const int input : node.inputs) x.push_back(values[input]);
  return x;
}

std::vector<double> PlainValues(const TestGraph& test) {
  std::vector<double> values(test.graph.values.size());
  values[0] = kX;
  for (size_t i = 0; i < test.graph.nodes.size(); ++i) {
    const Node& node = test.graph.nodes[i];
    values[node.outputs[0]] = Forward(test.kinds[i], test.weights[i], InputsOf(node, values));
  }
  return values;
}

// Of each weight, by node.
std::map<int, double> PlainGradients(const TestGraph& test) {
  const std::vector<double> values = PlainValues(test);
  std::vector<double> gradients(test.graph.values.size());
  for (const LossNode& loss : test.graph.losses) {
    gradients[loss.inputs[0]] += GradientOf(loss);
  }
  std::map<int, double> of_weights;
  for (size_t i = test.graph.nodes.size(); i-- > 0;) {
    const Node& node = test.graph.nodes[i];
    const std::vector<double> x = InputsOf(node, values);
    const double g = gradients[node.outputs[0]];
    if (test.kinds[i] == Kind::kScale) of_weights[static_cast<int>(i)] = x[0] * g;
    for (size_t k = 0; k < x.size(); ++k) {
      gradients[node.inputs[k]] += Backward(test.kinds[i], test.weights[i], x,
                                            values[node.outputs[0]], g, static_cast<int>(k));
    }
  }
  return of_weights;
}

// The length of an array; only its first number is used.
int64_t BytesOf(const Shape&) { return 300; }

// The same by a plan, every array where it says.
class Machine {
 public:
  Machine(const TestGraph& test, const StepPlan& plan)
      : test_(test), plan_(plan), memory_(static_cast<size_t>(plan.bytes)) {}

  std::map<int, double> Run() {
    input_ = kX;
    for (const Instruction& step : plan_.forward) {
      Write(step.outputs[0],
            Forward(test_.kinds[step.node], test_.weights[step.node], ReadAll(step.inputs)));
    }
    const std::vector<double> values = PlainValues(test_);
    for (const Output& output : test_.graph.outputs) {
      EXPECT_EQ(Read(plan_.array_of[output.value]), values[output.value]);
    }
    std::map<int, double> of_weights;
    for (const Instruction& step : plan_.backward) {
      switch (step.kind) {
        case Instruction::Kind::kForward:
          ADD_FAILURE() << "a forward step on the way back";
          break;
        case Instruction::Kind::kLoss:
          EXPECT_EQ(Read(step.inputs[0]), values[test_.graph.losses[step.node].inputs[0]]);
          if (step.grad_inputs[0] == Instruction::kNone) break;
          Write(step.grad_inputs[0], GradientOf(test_.graph.losses[step.node]));
          break;
        case Instruction::Kind::kSum:
          Write(step.outputs[0], Read(step.inputs[0]) + Read(step.inputs[1]));
          break;
        case Instruction::Kind::kBackward:
          GoBack(step, &of_weights);
          break;
      }
    }
    return of_weights;
  }

 private:
  void GoBack(const Instruction& step, std::map<int, double>* of_weights) {
    const Kind kind = test_.kinds[step.node];
    const OpTraits traits = TraitsOf(kind);
    EXPECT_EQ(step.inputs.empty(), !traits.reads_input);
    EXPECT_EQ(step.outputs.empty(), !traits.reads_output);
    const std::vector<double> x = ReadAll(step.inputs);
    const double y = step.outputs.empty() ? 0 : Read(step.outputs[0]);
    const double g = Read(step.grad_outputs[0]);
    if (kind == Kind::kScale) (*of_weights)[step.node] = x[0] * g;
    for (size_t k = 0; k < step.grad_inputs.size(); ++k) {
      if (step.grad_inputs[k] == Instruction::kNone) continue;
      Write(step.grad_inputs[k],
            Backward(kind, test_.weights[step.node], x, y, g, static_cast<int>(k)));
    }
  }
  double Read(int array) const {
    if (array == 0) return input_;
    double number = 0;
    std::memcpy(&number, memory_.data() + plan_.offsets[array], sizeof(number));
    return number;
  }
  std::vector<double> ReadAll(const std::vector<int>& arrays) const {
    std::vector<double> numbers;
    for (const int array : arrays) numbers.push_back(Read(array));
    return numbers;
  }
  void Write(int array, double number) {
    ASSERT_NE(array, 0) << "the input is the caller's";
    // All of it, so that it disturbs whoever shares any of it.
    unsigned char* const at = memory_.data() + plan_.offsets[array];
    std::memset(at, 0x5a, static_cast<size_t>(BytesOf({})));
    std::memcpy(at, &number, sizeof(number));
  }

  const TestGraph& test_;
  const StepPlan& plan_;
  std::vector<unsigned char> memory_;
  double input_ = 0;
};

TEST(StepPlanTest, RandomGraphsHaveTheGradientsOfPlainDifferentiation) {
  int sums = 0;
  int64_t shared = 0, separate = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    const TestGraph test = RandomGraph(seed);
    const StepPlan plan = MakeStepPlan(test.graph, test.traits, BytesOf);
    const std::map<int, double> expected = PlainGradients(test);
    const std::map<int, double> found = Machine(test, plan).Run();
    ASSERT_EQ(found.size(), expected.size()) << "seed " << seed;
    for (const auto& [node, gradient] : expected) {
      // Sums are in another order here.
      ASSERT_NEAR(found.at(node), gradient, 1e-12 * (1 + std::abs(gradient)))
          << "seed " << seed << ", node " << node;
    }
    for (const Instruction& step : plan.backward) {
      sums += step.kind == Instruction::Kind::kSum ? 1 : 0;
    }
    shared += plan.bytes;
    separate += static_cast<int64_t>(plan.offsets.size()) * 512;
  }
  EXPECT_GT(sums, 3000) << "these graphs are too simple";
  EXPECT_LT(shared, separate * 3 / 4) << "memory is shared";
}

TEST(StepPlanTest, AChainOfOpsInPlaceHasOneArrayEachWay) {
  TestGraph test;
  AddInput(&test);
  AddNode(Kind::kScale, {0}, &test);
  for (int i = 1; i < 5; ++i) AddNode(Kind::kHalve, {i}, &test);
  EndWith({5}, &test);
  const StepPlan plan = MakeStepPlan(test.graph, test.traits, BytesOf);
  EXPECT_THAT(plan.array_of, testing::ElementsAre(0, 1, 1, 1, 1, 1));
  EXPECT_EQ(plan.offsets.size(), 3u) << "input, activations, their gradients";
}

TEST(StepPlanTest, AShortcutsGradientIsNotCopied) {
  // y = scale(x0); z = y + scale(y)
  TestGraph test;
  AddInput(&test);
  AddNode(Kind::kScale, {0}, &test);
  AddNode(Kind::kScale, {1}, &test);
  AddNode(Kind::kAdd, {1, 2}, &test);
  EndWith({3}, &test);
  const StepPlan plan = MakeStepPlan(test.graph, test.traits, BytesOf);
  std::vector<Instruction::Kind> kinds;
  for (const Instruction& step : plan.backward) kinds.push_back(step.kind);
  EXPECT_THAT(kinds, testing::ElementsAre(Instruction::Kind::kLoss, Instruction::Kind::kBackward,
                                          Instruction::Kind::kSum, Instruction::Kind::kBackward));
}

TEST(StepPlanTest, WhatComesBeforeTheFirstWeightsHasNoGradient) {
  TestGraph test;
  AddInput(&test);
  AddNode(Kind::kSquare, {0}, &test);
  AddNode(Kind::kScale, {1}, &test);
  EndWith({2}, &test);
  const StepPlan plan = MakeStepPlan(test.graph, test.traits, BytesOf);
  ASSERT_EQ(plan.backward.size(), 2u);
  EXPECT_EQ(plan.backward[1].grad_inputs, std::vector<int>{Instruction::kNone});
}

TEST(StepPlanTest, TheWayBackEndsAtTheFirstTrainedNodeAndWhatLiesBelowWorksInPlace) {
  // Of three scales the first is frozen, and so is the last.
  TestGraph test;
  AddInput(&test);
  AddNode(Kind::kScale, {0}, &test);
  AddNode(Kind::kTanh, {1}, &test);
  AddNode(Kind::kHalve, {2}, &test);
  AddNode(Kind::kScale, {3}, &test);
  AddNode(Kind::kScale, {4}, &test);
  EndWith({5}, &test);
  for (const int frozen : {0, 2}) test.graph.parameters[frozen].tensor.factors.rate = 0;
  const StepPlan plan = MakeStepPlan(test.graph, test.traits, BytesOf);
  ASSERT_EQ(plan.backward.size(), 3u) << "the loss and two scales";
  EXPECT_EQ(plan.backward[1].node, 4);
  EXPECT_NE(plan.backward[1].grad_inputs, std::vector<int>{Instruction::kNone});
  EXPECT_EQ(plan.backward[2].node, 3);
  EXPECT_EQ(plan.backward[2].grad_inputs, std::vector<int>{Instruction::kNone});
  EXPECT_EQ(plan.array_of[3], plan.array_of[2]) << "nobody derives tanh from its value";
}

TEST(StepPlanTest, ALossThatWeighsNothingAndWhatLeadsToNoOtherHaveNoGradient) {
  TestGraph test;
  AddInput(&test);
  AddNode(Kind::kScale, {0}, &test);
  AddNode(Kind::kTanh, {1}, &test);
  EndWith({2, 1}, &test);
  test.graph.losses[0].weight = 0;
  const StepPlan plan = MakeStepPlan(test.graph, test.traits, BytesOf);
  ASSERT_EQ(plan.backward.size(), 3u) << "two losses, and one scale";
  EXPECT_EQ(plan.backward[0].grad_inputs, std::vector<int>{Instruction::kNone});
  EXPECT_EQ(plan.backward[2].node, 0);
}

TEST(PlaceArraysTest, ThoseThatAreAliveTogetherDoNotOverlap) {
  Rng rng(1, RngPurpose::kTest);
  for (int round = 0; round < 300; ++round) {
    std::vector<Lifetime> arrays(1 + rng.NextBelow(30));
    int64_t together = 0;  // most that is alive at any time
    for (Lifetime& array : arrays) {
      array.bytes = static_cast<int64_t>(rng.NextBelow(3000));
      array.first = static_cast<int>(rng.NextBelow(20));
      array.last = array.first + static_cast<int>(rng.NextBelow(8));
    }
    int64_t total = 0;
    const std::vector<int64_t> offsets = PlaceArrays(arrays, &total);
    for (size_t i = 0; i < arrays.size(); ++i) {
      EXPECT_EQ(offsets[i] % 256, 0);
      EXPECT_LE(offsets[i] + arrays[i].bytes, total);
      for (size_t j = 0; j < i; ++j) {
        if (arrays[i].first > arrays[j].last || arrays[j].first > arrays[i].last) continue;
        EXPECT_TRUE(offsets[i] + arrays[i].bytes <= offsets[j] ||
                    offsets[j] + arrays[j].bytes <= offsets[i]);
      }
    }
    for (int time = 0; time < 30; ++time) {
      int64_t alive = 0;
      for (const Lifetime& array : arrays) {
        if (array.first <= time && time <= array.last) alive += (array.bytes + 255) / 256 * 256;
      }
      together = std::max(together, alive);
    }
    EXPECT_GE(total, together);
    EXPECT_LE(total, 2 * together);
  }
}

}  // namespace
}  // namespace kumo
