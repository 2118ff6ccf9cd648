// Contender: Kumo's transport with a real shard. The server's work is a round of synchronous SGD
// (checking the numbers, update rule, next version) instead of an addition.
#include <cstdint>
#include <memory>
#include <variant>

#include <glog/logging.h>

#include "bench/push_pull.h"
#include "bench/push_pull_transport.h"
#include "common/base/buffer.h"
#include "server/shard/shard.h"

namespace kumo::bench {
namespace {

// One partition with minibatches of one sample: a push is a round, w -= 1 * push.
std::unique_ptr<Shard> MakeShard(const Model& model) {
  static_assert(kChunkFloats * sizeof(float) % 1024 == 0);
  Experiment experiment;
  experiment.cluster.chunk_kib = kChunkFloats * sizeof(float) / 1024;
  experiment.optimiser.type = OptimiserType::kSgd;
  experiment.optimiser.weight_decay = 0;
  experiment.schedule.type = ScheduleType::kConstant;
  experiment.schedule.learning_rate = 1;
  PlanSettings settings;
  settings.mode = SyncMode::kGradient;
  settings.train_samples = 1'000'000;
  const Result<JobPlan> plan = JobPlan::Make(settings);
  CHECK(plan.ok()) << plan.status().message();
  const TensorSpec weights{"weights", {static_cast<int64_t>(model.floats)}, Segment::kDecayed};
  Result<ParameterLayout> layout = ParameterLayout::Make({weights});
  CHECK(layout.ok()) << layout.status().message();
  JobSpec spec;
  spec.layout = *std::move(layout);
  auto made = Shard::Make({}, experiment, *plan, spec,
                          [](int64_t, const MetricSums&, StepContext*) { return Directive{}; });
  CHECK(made.ok()) << made.status().message();
  return std::move(made).value();
}

void Serve(const Model& model, int report_fd) {
  const auto transport = MakeTransport(kServer, Checksums::kNetwork);
  const Status bound = transport->Bind("tcp://127.0.0.1:*");
  CHECK(bound.ok()) << bound.message();
  const std::unique_ptr<Shard> shard = MakeShard(model);
  Report(report_fd, transport->bound_address());
  ZmqTransport::MessageHandler handler = [&](const PeerName& from, Message message) {
    StepContext context;
    ServerActions& actions = context.actions;
    const Status status = shard->OnMessage(from, message, /*leased=*/true, &context);
    CHECK(status.ok()) << status.message();
    // Actions lead to more of them.
    for (size_t i = 0; i < actions.size(); ++i) {
      if (auto* compute = std::get_if<ComputeAction>(&actions[i])) {
        const std::shared_ptr<ChunkWork> work = compute->work;
        work->Run();
        const Status computed = shard->OnComputed(*work, &context);
        CHECK(computed.ok()) << computed.message();
      } else if (auto* send = std::get_if<SendAction>(&actions[i])) {
        SendPatiently(*transport, send->to, send->message, handler);
      }
    }
  };
  while (true) transport->Poll(-1, handler);
}

class ShardWorker : public PushPullWorker {
 public:
  ShardWorker(const Model& model, const std::string& address)
      : model_(model),
        zero_(model.floats),
        worker_(model, MakeTransport("worker/bench/1", Checksums::kNetwork)) {
    worker_.Connect(address);
    for (size_t i = 0; i < model_.chunks(); ++i) {
      Message message = MakeMessage(wire::INITIALISE, i);
      message.payload = Borrow(model_.chunk(zero_.span(), i));
      worker_.Send(message);
    }
    worker_.AwaitReplies(model_.chunks(), 0);
  }

  void PushPull(std::span<float> update, std::span<float> weights) override {
    worker_.ReceiveInto(weights);
    for (size_t i = 0; i < model_.chunks(); ++i) {
      Message push = MakeMessage(wire::PUSH, i);
      push.header.set_round(round_);
      push.header.set_samples(1);
      if (i == 0) push.header.mutable_metrics()->set_samples(1);
      push.header.set_codec(static_cast<uint32_t>(CodecId::kFp32));
      push.payload = Borrow(model_.chunk(update, i));
      worker_.Send(push);
    }
    ++round_;
    for (size_t i = 0; i < model_.chunks(); ++i) {
      Message pull = MakeMessage(wire::PULL, i);
      pull.header.set_round(round_);
      worker_.Send(pull);
    }
    worker_.AwaitReplies(model_.chunks(), model_.chunks());
  }

 private:
  const Model model_;
  Buffer<float> zero_;
  TransportWorker worker_;
  int64_t round_ = 0;
};

}  // namespace

Contender KumoShardContender() {
  return {"kumo, real shard", Serve,
          [](const Model& model, const std::string& address) -> std::unique_ptr<PushPullWorker> {
            return std::make_unique<ShardWorker>(model, address);
          },
          -1};
}

}  // namespace kumo::bench
