// A member of a job that has no lease, and sends contributions of a partition all the same, in
// every form that a shard takes. It joins as a worker does, and says at once that it leaves, so
// that nothing is leased to it.
#pragma once

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <glog/logging.h>

#include "common/base/process/signals.h"
#include "common/codec/codec.h"
#include "common/job/protocol.h"
#include "common/transport/zmq_transport.h"
#include "tests/common/job/loss_and_accuracy.h"
#include "worker/session/job_shape.h"

namespace kumo {

class Liar {
 public:
  Liar(const Experiment& experiment, const JobSpec& spec, const ProcessIdentity& process,
       int partition)
      : identity_(IdentityOf(experiment)),
        shape_(JobShape::Make(experiment, spec, identity_.servers).value()),
        partition_(partition) {
    hello_.header.set_type(wire::HELLO);
    wire::Hello* hello = hello_.header.mutable_hello();
    *hello = HelloOf(identity_, process);
    hello->set_role(wire::Hello::WORKER);
    hello->set_name("liar");
    *hello->mutable_spec() = SpecToWire(spec);
    ZmqTransportOptions options;
    options.name = WorkerPeer("liar", process.incarnation);
    options.framing.job = identity_.JobId();
    transport_ = ZmqTransport::Make(options).value();
    for (int s = 0; s < identity_.servers; ++s) {
      CHECK(transport_->Connect(ServerPeer(s), experiment.cluster.servers[s]).ok());
    }
  }

  // Returns when server 0 has taken note of a member that leaves.
  void Join() {
    while (!acknowledged_) StepContext();
  }
  // Lies until `stops` are asked for. Returns how many contributions were sent.
  int64_t Lie(StopSource* stops) {
    int64_t sent = 0;
    while (stops->Take().empty()) {
      StepContext();
      for (int64_t round = 0; round < shape_.plan.rounds(); ++round) sent += Lie(round);
    }
    return sent;
  }

 private:
  // Greets who has not welcomed it, and goes on being a member.
  void StepContext() {
    for (int s = 0; s < identity_.servers; ++s) {
      if (!welcomed_.contains(ServerPeer(s))) {
        if (s == 0 || welcomed_.contains(ServerPeer(0))) Send(s, hello_);
        continue;
      }
      Message heartbeat;
      heartbeat.header.set_type(wire::HEARTBEAT);
      if (s == 0) heartbeat.header.mutable_worker_report()->set_leaving(true);
      Send(s, std::move(heartbeat));
    }
    const auto hear = [this](const PeerName& from, const Message& message) {
      if (message.header.type() == wire::WELCOME) {
        generation_ = message.header.welcome().generation();
        welcomed_.insert(from);
      }
      acknowledged_ |= message.header.type() == wire::HEARTBEAT_REPLY && from == ServerPeer(0);
    };
    // Whatever comes, at most 5 ms.
    for (int i = 0; i < 5; ++i) transport_->Poll(kMillisecond, hear);
  }

  int64_t Lie(int64_t round) {
    const RoundPlan plan = shape_.plan.Round(round);
    int64_t sent = 0;
    for (const Chunk& chunk : shape_.map.chunks()) {
      const Codec& codec = shape_.policy.PushCodec(plan, chunk);
      const std::vector<float> garbage(chunk.range.size(), 0.25f);
      auto coded = std::make_shared<std::vector<std::byte>>(codec.EncodedBytes(garbage.size()));
      CHECK_EQ(codec.Encode(garbage, {}, *coded), -1);
      Message push;
      push.header.set_type(wire::PUSH);
      push.header.set_codec(static_cast<uint32_t>(codec.id()));
      push.header.set_samples(shape_.plan.PartitionSamples(plan, partition_).size());
      if (chunk.index == 0) {
        push.header.mutable_metrics()->set_samples(push.header.samples());
        test::SetLossSum(1, push.header.mutable_metrics());
      }
      push.payload = {coded, std::span<const std::byte>(*coded)};
      sent += Send(chunk, round, std::move(push));

      Message state;
      state.header.set_type(wire::PUT_STATE);
      state.header.set_codec(static_cast<uint32_t>(CodecId::kFp32));
      auto numbers = std::make_shared<std::vector<float>>(garbage);
      state.payload = {numbers, std::as_bytes(std::span<const float>(*numbers))};
      sent += Send(chunk, round + 1, state);
      if (round > 0) continue;
      state.header.set_type(wire::INITIALISE);
      sent += Send(chunk, 0, std::move(state));
    }
    return sent;
  }

  bool Send(const Chunk& chunk, int64_t round, Message message) {
    message.header.set_chunk(chunk.index);
    message.header.set_round(round);
    message.header.set_partition(message.header.type() == wire::INITIALISE ? 0 : partition_);
    message.header.set_request(++requests_);
    return Send(chunk.server, std::move(message));
  }
  bool Send(int server, Message message) {
    message.header.set_generation(generation_);
    return transport_->Send(ServerPeer(server), std::move(message)).ok();
  }

  const JobIdentity identity_;
  const JobShape shape_;
  const int partition_;
  Message hello_;
  std::unique_ptr<ZmqTransport> transport_;
  std::set<PeerName> welcomed_;
  uint32_t generation_ = 0;
  uint64_t requests_ = 0;
  bool acknowledged_ = false;
};

}  // namespace kumo
