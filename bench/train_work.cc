#include "bench/train_work.h"

#include <algorithm>
#include <ctime>
#include <span>

#include "bench/take.h"
#include "models/network.h"

namespace kumo {
namespace {

model::Network Zoo(const std::string& name) {
  return Take(LoadNetwork(std::string(KUMO_ZOO) + "/" + name + ".pbtxt",
                          {.vocabulary = 65, .classes = 20}));
}

// He et al. 2015, Deep Residual Learning, table 1, the column of 50 layers: four stages of blocks
// of 1x1, 3x3 and 1x1 convolutions; a stage's first 3x3 halves the plane but for the first stage's.
model::Network ResnetStack() {
  model::Network network;
  network.set_name("resnet_stack");
  model::Input* image = network.add_input();
  image->set_channels(3);
  image->set_height(224);
  image->set_width(224);
  const auto add = [&network](const std::string& kind) {
    model::Layer* layer = network.add_layers();
    layer->set_name(kind + std::to_string(network.layers_size()));
    return layer;
  };
  const auto convolve = [&add](int outputs, int kernel, int stride) {
    model::Convolution* convolution = add("conv")->mutable_convolution();
    convolution->set_outputs(outputs);
    convolution->set_kernel(kernel);
    convolution->set_stride(stride);
    convolution->set_pad(kernel / 2);
    convolution->set_no_bias(true);
    convolution->mutable_weight()->mutable_he_normal();
    add("norm")->mutable_batch_normalisation();
    add("relu")->mutable_relu();
  };
  convolve(64, 7, 2);
  model::Pooling* pool = add("pool")->mutable_max_pooling();
  pool->set_kernel(3);
  pool->set_stride(2);
  pool->set_pad(1);
  const std::array<int, 4> blocks = {3, 4, 6, 3};
  for (size_t stage = 0; stage < blocks.size(); ++stage) {
    const int width = 64 << stage;
    for (int block = 0; block < blocks[stage]; ++block) {
      convolve(width, 1, 1);
      convolve(width, 3, stage > 0 && block == 0 ? 2 : 1);
      convolve(4 * width, 1, 1);
    }
  }
  add("pool")->mutable_average_pooling()->set_kernel(7);
  add("flatten")->mutable_flatten();
  add("fc")->mutable_fully_connected()->set_outputs(1000);
  add("loss")->mutable_softmax_cross_entropy();
  return network;
}

// A U-Net of three levels with a class for each pixel: the lower level returns by a transposed
// convolution, the middle one by a bilinear upsampling.
model::Network Unet() {
  model::Network network;
  network.set_name("unet");
  model::Input* image = network.add_input();
  image->set_channels(3);
  image->set_height(128);
  image->set_width(128);
  const auto add = [&network](const std::string& name) {
    model::Layer* layer = network.add_layers();
    layer->set_name(name);
    return layer;
  };
  const auto convolve = [&add](const std::string& name, int outputs) {
    for (const char* const place : {"a", "b"}) {
      model::Convolution* convolution = add(name + place)->mutable_convolution();
      convolution->set_outputs(outputs);
      convolution->set_kernel(3);
      convolution->set_pad(1);
      convolution->mutable_weight()->mutable_he_normal();
      add(name + place + "_relu")->mutable_relu();
    }
  };
  const auto join = [&add](const std::string& name, const std::string& above, const char* beside) {
    model::Layer* layer = add(name);
    layer->add_inputs(above);
    layer->add_inputs(beside);
    layer->mutable_concat();
  };
  convolve("top", 16);
  add("pool1")->mutable_max_pooling()->set_kernel(2);
  convolve("middle", 32);
  add("pool2")->mutable_max_pooling()->set_kernel(2);
  convolve("bottom", 64);
  model::TransposedConvolution* up = add("up")->mutable_transposed_convolution();
  up->set_outputs(32);
  up->set_kernel(2);
  up->set_stride(2);
  join("both2", "up", "middleb_relu");
  convolve("back2", 32);
  model::Upsampling* smooth = add("smooth")->mutable_upsampling();
  smooth->set_factor(2);
  smooth->set_interpolation(model::Upsampling::BILINEAR);
  join("both1", "smooth", "topb_relu");
  convolve("back1", 16);
  model::Convolution* scores = add("scores")->mutable_convolution();
  scores->set_outputs(2);
  scores->set_kernel(1);
  add("loss")->mutable_softmax_cross_entropy();
  return network;
}

Experiment::Network SettingsOf(const Work& work, const Device& device) {
  Experiment::Network settings;
  settings.device = device;
  settings.precision = work.precision;
  settings.instruction_set = work.instruction_set;
  return settings;
}

}  // namespace

double Now(bool cpu_time) {
  timespec now{};
  clock_gettime(cpu_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::vector<Work> AllWork() {
  OptimiserSettings momentum;
  momentum.weight_decay = 1e-4f;
  OptimiserSettings adam;
  adam.type = OptimiserType::kAdam;
  OptimiserSettings adamw;
  adamw.type = OptimiserType::kAdamW;
  adamw.weight_decay = 0.01f;
  OptimiserSettings muon = adamw;
  muon.type = OptimiserType::kMuon;
  return {{"lenet", Zoo("mnist_lenet"), 64, momentum, 0.05f},
          {"mlp", Zoo("mnist_mlp"), 100, adam, 1e-3f},
          {"convnet", Zoo("cifar_convnet"), 64, momentum, 0.01f},
          {"resnet20", Zoo("cifar_resnet20"), 64, momentum, 0.01f},
          {"resnet50", Zoo("imagenet_resnet50"), 16, momentum, 0.01f},
          {"vgg16", Zoo("imagenet_vgg16"), 4, momentum, 0.01f},
          {"unet", Unet(), 8, momentum, 0.01f},
          {"gpt", Zoo("char_gpt_small"), 12, adamw, 1e-3f},
          {"gpt_muon", Zoo("char_gpt_small"), 12, muon, 0.02f},
          {"resnet", ResnetStack(), 256, momentum, 0.01f, Precision::kBf16}};
}

Trainer::Trainer(const Work& work, const Device& device)
    : work_(work),
      backend_(Take(MakeBackend(SettingsOf(work, device)))),
      net_(Take(Net::Make(work.network, work.batch, backend_.get()))),
      layout_(Take(ParameterLayout::Make(net_->tensors()))),
      weights_(*backend_, layout_.size(), "weights"),
      gradients_(*backend_, layout_.size(), "gradients"),
      optimiser_(MakeOptimiser(work.optimiser)),
      slots_(*backend_, optimiser_->slots() * layout_.size(), "the optimiser's state"),
      optimiser_step_(layout_, net_->matrices(), optimiser_->traits(), backend_.get()) {
  std::vector<float> start(static_cast<size_t>(layout_.size()));
  Take(net_->InitialWeights(1, layout_, start));
  backend_->Write(start.data(), start.size() * sizeof(float), weights_.data());
  Take(net_->Bind(layout_, weights_.data(), gradients_.data()));
  MakeData();
}

void Trainer::Step() {
  Load(static_cast<size_t>(step_++ % 8));
  StepParameters step;
  step.streams = {1, 0, 0, static_cast<uint64_t>(step_)};
  step.optimiser = optimiser_.get();
  step.decayed = {work_.learning_rate, work_.optimiser.weight_decay, step_};
  step.undecayed = {work_.learning_rate, 0, step_};
  backend_->SetStep(step);
  backend_->Repeat({work_.batch, true, nullptr}, [&] {
    net_->Train();
    backend_->MeasureGradients(gradients_.data(), layout_.segment(Segment::kUndecayed).end);
    optimiser_step_.Queue(gradients_.data(), weights_.data(), slots_.data());
  });
}

double Trainer::Measure(double seconds, bool cpu_time) {
  const double start = Now(cpu_time);
  int64_t steps = 0;
  while (true) {
    Step();
    ++steps;
    if (Now(cpu_time) - start >= seconds && steps >= 5) {
      Take(net_->TakeSums());  // waits for the queue
      return static_cast<double>(steps * work_.batch) / (Now(cpu_time) - start);
    }
  }
}

// Samples are bytes, as in a worker; PyTorch's are numbers on the device.
void Trainer::Load(size_t i) {
  const std::span<const std::byte> fields[] = {minibatches_[i][0], minibatches_[i][1]};
  Take(net_->Load({work_.batch, fields}));
}

void Trainer::MakeData() {
  const Fields fields = net_->takes();
  const std::vector<PixelFormula> pixels(fields.size(), {.scale = 1 / 255.0f});
  Take(net_->Connect(fields, pixels));
  Rng rng(1, RngPurpose::kTest);
  // Several minibatches, so that the input is not always in the cache.
  for (std::array<std::vector<std::byte>, 2>& minibatch : minibatches_) {
    for (size_t f = 0; f < minibatch.size(); ++f) {
      minibatch[f] = Draw(fields[f], f == 0 ? 256 : 10, &rng);
    }
  }
}

// Random integers below `below` for each sample.
std::vector<std::byte> Trainer::Draw(const Field& field, uint64_t below, Rng* rng) const {
  std::vector<std::byte> bytes;
  for (int64_t i = 0; i < work_.batch * field.numbers(); ++i) {
    if (field.type == NumberType::kUint8) {
      bytes.push_back(static_cast<std::byte>(rng->NextBelow(below)));
      continue;
    }
    const auto most = std::min<uint64_t>(below, static_cast<uint64_t>(net_->classes()));
    const auto number = static_cast<int32_t>(rng->NextBelow(most));
    const auto four = std::as_bytes(std::span(&number, 1));
    bytes.insert(bytes.end(), four.begin(), four.end());
  }
  return bytes;
}

}  // namespace kumo
