#include "tests/server/shard/shard_harness.h"
#include "tests/common/job/loss_and_accuracy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <glog/logging.h>

namespace kumo::test {

Job NesterovJob(CodecId codec) {
  Job job = SmallJob();
  job.experiment.block.nesterov = true;
  job.experiment.sync.push_codec = codec;
  return job;
}

Payload PackFloats(std::span<const float> numbers) {
  auto copy = std::make_shared<std::vector<float>>(numbers.begin(), numbers.end());
  return {copy, std::as_bytes(std::span<const float>(*copy))};
}

std::vector<float> UnpackFloats(const Payload& payload) {
  std::vector<float> numbers(payload.bytes.size() / sizeof(float));
  if (!numbers.empty()) std::memcpy(numbers.data(), payload.bytes.data(), payload.bytes.size());
  return numbers;
}

Message PushMessage(const Job& job, const Chunk& chunk, int64_t round, int partition, bool save) {
  const JobPlan plan = job.plan();
  const RoundPlan r = plan.Round(round);
  const bool full = r.full_precision || chunk.segment == Segment::kStatistics;
  const Codec& codec = CodecOf(full ? CodecId::kFp32 : job.experiment.sync.push_codec);
  std::vector<float> numbers(chunk.range.size());
  Rng rng(9, RngPurpose::kTest, round, partition, chunk.index);
  for (float& x : numbers) x = 0.1f * rng.NextNormal();
  auto coded = std::make_shared<std::vector<std::byte>>(codec.EncodedBytes(numbers.size()));
  CHECK_EQ(codec.Encode(numbers, {}, *coded), -1);

  Message push;
  push.header.set_type(wire::PUSH);
  push.header.set_round(round);
  push.header.set_partition(partition);
  push.header.set_chunk(chunk.index);
  push.header.set_codec(static_cast<uint32_t>(codec.id()));
  push.header.set_samples(plan.PartitionSamples(r, partition).size());
  push.header.set_save(save);
  if (chunk.index == 0) {
    push.header.mutable_metrics()->set_samples(push.header.samples());
    test::SetLossSum(0.1 * (partition + 1), push.header.mutable_metrics());
    test::SetCorrect(static_cast<double>(std::min<int64_t>(partition, push.header.samples())),
                     push.header.mutable_metrics());
  }
  if (JobPlan::TakesPart(r, chunk) && plan.SpanSamples(r, chunk, partition) > 0)
    push.payload = {coded, std::span<const std::byte>(*coded)};
  return push;
}

Message InitialiseMessage(const Chunk& chunk, uint64_t seed) {
  std::vector<float> numbers(chunk.range.size());
  Rng rng(seed, RngPurpose::kInitialWeights, chunk.index);
  for (float& x : numbers) x = rng.NextNormal();
  Message message;
  message.header.set_type(wire::INITIALISE);
  message.header.set_chunk(chunk.index);
  message.payload = PackFloats(numbers);
  return message;
}

Message PullMessage(int chunk, int64_t version, wire::Vector vector) {
  Message message;
  message.header.set_type(wire::PULL);
  message.header.set_chunk(chunk);
  message.header.set_round(version);
  message.header.set_vector(vector);
  return message;
}

Message StateMessage(wire::Type type, const Chunk& chunk, int64_t version, int partition, int slot,
                     Payload payload) {
  Message message;
  message.header.set_type(type);
  message.header.set_chunk(chunk.index);
  message.header.set_round(version);
  message.header.set_partition(partition);
  message.header.set_carried_array(slot);
  message.payload = std::move(payload);
  return message;
}

Shards::Shards(const Job& job, int servers) : job_(job) {
  Experiment experiment = job.experiment;
  experiment.cluster.servers.assign(servers, "ipc://somewhere");
  for (int s = 0; s < servers; ++s) {
    Result<std::unique_ptr<Shard>> shard =
        Shard::Make({.index = s, .servers = servers}, experiment, job.plan(), job.spec,
                    [this](int64_t version, const MetricSums& metrics, StepContext*) {
                      observed.emplace_back(version, metrics);
                      return directive(version);
                    });
    CHECK(shard.ok()) << shard.status().message();
    shards_.push_back(std::move(shard).value());
  }
}

wire::ServerReport Shards::Report(int server) const {
  wire::ServerReport report;
  shards_[server]->Describe(&report);
  return report;
}

void Shards::Collect(int server, StepContext context) {
  for (ServerAction& action : context.actions) {
    if (auto* send = std::get_if<SendAction>(&action)) sent.push_back(std::move(*send));
    if (auto* save = std::get_if<SaveAction>(&action)) saved.push_back(std::move(*save));
    if (auto* compute = std::get_if<ComputeAction>(&action)) {
      work_.emplace_back(server, compute->work);
    }
  }
}

Status Shards::Send(const Message& message, const PeerName& from, int server, bool leased) {
  const int chunk = message.header.chunk();
  if (server < 0) server = map().chunks().at(chunk).server;
  StepContext context;
  const Status status = shards_[server]->OnMessage(from, message, leased, &context);
  // An error refuses the message: nothing else may come of it.
  CHECK(status.ok() || context.actions.empty()) << status.message();
  Collect(server, std::move(context));
  return status;
}

void Shards::Compute(Rng* rng) {
  while (!work_.empty()) {
    const size_t i = rng ? rng->NextBelow(work_.size()) : 0;
    const auto [server, work] = work_[i];
    work_.erase(work_.begin() + static_cast<ptrdiff_t>(i));
    work->Run();
    StepContext context;
    const Status status = shards_[server]->OnComputed(*work, &context);
    if (!status.ok()) failures.push_back(status);
    Collect(server, std::move(context));
  }
}

void Shards::Acknowledge(int server, const wire::Header& replicate) {
  StepContext context;
  shards_[server]->OnReplicated(replicate, &context);
  Collect(server, std::move(context));
}

void Shards::ReplaceHolder(int server) {
  StepContext context;
  shards_[server]->ReplicateAgain(&context);
  Collect(server, std::move(context));
}

void Shards::Tick(TimeUs now) {
  for (int s = 0; s < servers(); ++s) {
    StepContext context{now, {}};
    shards_[s]->Tick(&context);
    Collect(s, std::move(context));
  }
}

void Shards::Initialise(uint64_t seed) {
  for (const Chunk& chunk : map().chunks()) {
    const Status status = Send(InitialiseMessage(chunk, seed));
    CHECK(status.ok()) << status.message();
  }
}

void Shards::RunRound(int64_t round, bool save) {
  for (int p = 0; p < job_.experiment.sync.partitions; ++p) {
    for (const Chunk& chunk : map().chunks()) {
      const Status status = Send(PushMessage(job_, chunk, round, p, save));
      CHECK(status.ok()) << status.message();
    }
  }
  Compute();
}

std::vector<float> Shards::Pull(int64_t version, wire::Vector vector) {
  std::vector<float> all(job_.spec.layout.size());
  for (const Chunk& chunk : map().chunks()) {
    std::vector<SendAction> before = std::exchange(sent, {});
    const Status status = Send(PullMessage(chunk.index, version, vector), "worker/reader/1");
    CHECK(status.ok()) << status.message();
    CHECK_EQ(sent.size(), 1u);
    const Message& reply = sent[0].message;
    CHECK_EQ(reply.header.type(), wire::CHUNK);
    CHECK_EQ(reply.header.round(), version);
    const Codec& codec = **FindCodec(reply.header.codec());
    codec.Decode(reply.payload.bytes, chunk.range.size(), 0,
                 std::span<float>(all).subspan(chunk.range.begin, chunk.range.size()));
    sent = std::move(before);
  }
  return all;
}

Status Shards::Restore(const ShardSnapshot& snapshot) {
  StepContext context;
  for (auto& shard : shards_) KUMO_RETURN_IF_ERROR(shard->Restore(snapshot, &context));
  return OkStatus();
}

ShardSnapshot Shards::TakeSaved() {
  ShardSnapshot all;
  for (const SaveAction& save : std::exchange(saved, {})) {
    all.version = save.snapshot.version;
    for (StateArray array : save.snapshot.arrays) {
      auto own = std::make_shared<std::vector<float>>(array.numbers.begin(), array.numbers.end());
      array.numbers = *own;
      array.owner = own;
      all.arrays.push_back(std::move(array));
    }
  }
  return all;
}

}  // namespace kumo::test
