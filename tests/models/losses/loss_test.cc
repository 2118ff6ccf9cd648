// Every loss and its gradient, beside the slope that is measured and on every backend.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include <glog/logging.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "models/layers/loss.h"
#include "tests/models/ops/layer_on_device.h"

namespace kumo {
namespace {

// Labels of a loss, as the host has them. A list has between 0 and kRoom entries in a sample;
// numbers of a list are boxes.
struct Labels {
  static constexpr int64_t kRoom = 3;

  Labels(const Target& label, int batch, Rng* rng) {
    room = label.list ? kRoom : 1;
    for (int n = 0; label.list && n < batch; ++n) {
      counts.push_back(static_cast<int32_t>((n + 1) % (kRoom + 1)));
    }
    for (int64_t entry = 0; entry < batch * room; ++entry) {
      for (int64_t i = 0; i < Shape(label.extents).size(); ++i) {
        if (label.classes > 0) {
          whole.push_back(static_cast<int32_t>(rng->NextBelow(label.classes)));
        } else if (label.list && i >= 2) {
          any.push_back(any[any.size() - 2] + rng->NextUniform(4, 20));
        } else {
          any.push_back(label.list ? rng->NextUniform(0, 24) : rng->NextUniform(-2, 2));
        }
      }
    }
  }
  std::span<const std::byte> bytes() const {
    return whole.empty() ? std::as_bytes(std::span(any)) : std::as_bytes(std::span(whole));
  }

  int64_t room = 1;
  std::vector<int32_t> counts;
  std::vector<int32_t> whole;
  std::vector<float> any;
};

struct LossCase {
  model::Layer layer;
  std::vector<Shape> inputs;
};

// With the defaults of its settings, if they are one network's.
LossCase CaseOf(const LossKind& kind) {
  LossCase made = {{}, {{7, 2, 3}}};
  const auto* field = model::Layer::descriptor()->FindFieldByNumber(kind.kind);
  auto* const settings = model::Layer::GetReflection()->MutableMessage(&made.layer, field);
  if (kind.kind == model::Layer::kMultibox) {
    // So many negatives are all there are: a choice of them has no slope.
    CHECK(google::protobuf::TextFormat::ParseFromString(
        R"(classes: 2 negatives: 1000
           maps { step: 8 size: 6 next_size: 9 ratios: 2 }
           maps { step: 12 size: 12 next_size: 20 })",
        settings));
    made.inputs = {{16, 3, 3}, {8, 2, 2}, {12, 3, 3}, {6, 2, 2}};
  }
  return made;
}

// A loss on a device, with its targets.
class LossUnderTest {
 public:
  LossUnderTest(Backend* backend, const LossCase& of, const LossPlan& plan, int batch)
      : backend_(*backend), shapes_(of.inputs), metrics_(plan.metrics), batch_(batch) {
    Rng rng(7, RngPurpose::kTest);
    loss_ = backend_.MakeLoss(plan.spec, batch).value();
    for (const Target& target : plan.targets) {
      labels_.emplace_back(target, batch, &rng);
      const Labels& labels = labels_.back();
      values_.emplace_back(backend_, std::ssize(labels.bytes()), "labels");
      counts_.emplace_back(backend_, std::ssize(labels.counts), "their counts");
      backend_.Write(labels.bytes().data(), labels.bytes().size(), values_.back().data());
      backend_.Write(labels.counts.data(), labels.counts.size() * sizeof(int32_t),
                     counts_.back().data());
      targets_.push_back({values_.back().data(), counts_.back().data(), labels.room});
    }
    for (const Shape& shape : shapes_) {
      const int64_t bytes = backend_.ActivationBytes(shape, batch);
      device_.emplace_back(backend_, bytes, "inputs");
      gradients_.emplace_back(backend_, bytes, "their gradients");
    }
  }

  // All inputs, one after the other.
  int64_t numbers() const {
    int64_t numbers = 0;
    for (const Shape& shape : shapes_) numbers += batch_ * shape.size();
    return numbers;
  }
  // Of the minibatch, as the metric `loss` has it.
  double Mean(const std::vector<float>& inputs, bool backward = false) {
    std::vector<const void*> arrays;
    std::vector<void*> gradients;
    const float* from = inputs.data();
    for (size_t i = 0; i < shapes_.size(); ++i) {
      LoadActivations(backend_, shapes_[i], batch_, from, device_[i].data());
      from += batch_ * shapes_[i].size();
      arrays.push_back(device_[i].data());
      if (backward) gradients.push_back(gradients_[i].data());
    }
    DeviceArray<double> sums(backend_, metrics_.sums(), "sums");
    backend_.SetStep({});
    loss_->Run(batch_, {arrays, targets_, gradients}, sums.data());
    MetricSums found = {batch_, std::vector<double>(static_cast<size_t>(metrics_.sums()))};
    EXPECT_TRUE(
        backend_.Read(sums.data(), found.sums.size() * sizeof(double), found.sums.data()).ok());
    return *MetricList::FigureOf(metrics_.metrics()[0], found);
  }
  std::vector<float> Gradient(const std::vector<float>& inputs) {
    (void)Mean(inputs, true);
    std::vector<float> found(inputs.size());
    float* to = found.data();
    for (size_t i = 0; i < shapes_.size(); ++i) {
      backend_.StoreOutputs(shapes_[i], batch_, gradients_[i].data(), to);
      to += batch_ * shapes_[i].size();
    }
    return found;
  }

 private:
  Backend& backend_;
  const std::vector<Shape> shapes_;
  const MetricList metrics_;
  const int batch_;
  std::unique_ptr<LossOp> loss_;
  std::vector<Labels> labels_;
  std::vector<DeviceArray<std::byte>> values_;
  std::vector<DeviceArray<int32_t>> counts_;
  std::vector<TargetArray> targets_;
  std::vector<DeviceArray<std::byte>> device_;
  std::vector<DeviceArray<std::byte>> gradients_;
};

// Or a change of such a field would make a trained network unusable (common/job/network_changes.h).
TEST(LossRegistryTest, EveryLossSaysWhichFieldsMatterInTrainingOnly) {
  const auto of_training = [](const google::protobuf::FieldDescriptor& field) {
    return field.options().GetExtension(model::training);
  };
  for (const LossKind& kind : LossKinds()) {
    const auto& field = *model::Layer::descriptor()->FindFieldByNumber(kind.kind);
    bool marked = of_training(field);
    for (int i = 0; i < field.message_type()->field_count(); ++i) {
      marked |= of_training(*field.message_type()->field(i));
    }
    EXPECT_TRUE(marked) << kind.name << ": [(training) = true] in proto/model.proto";
  }
}

// Every entry of the list on random inputs: the slope is measured; and the gradient goes by the
// weight, the sums do not.
TEST(LossRegistryTest, EveryLossHasTheGradientOfItsMeanTimesItsWeight) {
  constexpr int kBatch = 19;
  constexpr float kStep = 1e-2f;
  for (const LossKind& kind : LossKinds()) {
    const LossCase of = CaseOf(kind);
    const auto backend = MakeCpuBackend(1);
    Result<LossPlan> plan = kind.plan(of.layer, of.inputs);
    ASSERT_TRUE(plan.ok()) << kind.name << ": " << plan.status().message();
    LossUnderTest loss(backend.get(), of, *plan, kBatch);
    std::visit([](auto& spec) { spec.weight = 0.5f; }, plan->spec);
    LossUnderTest half(backend.get(), of, *plan, kBatch);
    Rng rng(8, RngPurpose::kTest);
    const std::vector<float> inputs = RandomNumbers(loss.numbers(), &rng);
    const std::vector<float> found = loss.Gradient(inputs);
    const std::vector<float> halved = half.Gradient(inputs);
    EXPECT_EQ(loss.Mean(inputs), half.Mean(inputs)) << kind.name;
    for (size_t i = 0; i < inputs.size(); ++i) {
      ASSERT_NEAR(halved[i], found[i] / 2, 1e-8f) << kind.name;
      std::vector<float> above = inputs;
      std::vector<float> below = inputs;
      above[i] += kStep;
      below[i] -= kStep;
      const double slope = (loss.Mean(above) - loss.Mean(below)) /
                           (static_cast<double>(above[i]) - static_cast<double>(below[i]));
      ASSERT_NEAR(static_cast<double>(found[i]), slope, 1e-4) << kind.name << ", input " << i;
    }
  }
}

// Every entry of the list on every backend, beside the CPU.
TEST(LossRegistryTest, EveryBackendHasTheLossAndGradientOfTheCpu) {
  for (const LossKind& kind : LossKinds()) {
    const LossCase of = CaseOf(kind);
    const LossPlan plan = kind.plan(of.layer, of.inputs).value();
    for (const int batch : {1, 19}) {
      const auto cpu = MakeCpuBackend(1);
      LossUnderTest reference(cpu.get(), of, plan, batch);
      Rng rng(9, RngPurpose::kTest);
      const std::vector<float> inputs = RandomNumbers(reference.numbers(), &rng);
      const double mean = reference.Mean(inputs);
      const std::vector<float> gradient = reference.Gradient(inputs);
      for (const Setting& setting : Settings()) {
        const auto backend = setting.make();
        LossUnderTest loss(backend.get(), of, plan, batch);
        EXPECT_NEAR(loss.Mean(inputs), mean, 1e-5 * (1 + mean))
            << setting.name << ", " << kind.name;
        const std::vector<float> found = loss.Gradient(inputs);
        for (size_t i = 0; i < found.size(); ++i) {
          ASSERT_NEAR(found[i], gradient[i], 1e-6f)
              << setting.name << ", " << kind.name << ", input " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace kumo
