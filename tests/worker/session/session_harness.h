// A session, what it asked for, and servers that answer when the test lets them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/common/job/small_job.h"
#include "worker/session/session.h"

namespace kumo::test {

inline SessionSettings SmallSettings(int servers = 1) {
  Job job = SmallJob();
  job.experiment.cluster.servers.assign(servers, "ipc://somewhere");
  SessionSettings settings;
  settings.experiment = job.experiment;
  settings.identity = IdentityOf(job.experiment);
  settings.spec = job.spec;
  settings.name = "worker-0";
  settings.process.incarnation = 5;
  return settings;
}

inline Payload Bytes(size_t n) {
  auto zeros = std::make_shared<std::vector<std::byte>>(n);
  return {zeros, std::span<const std::byte>(*zeros)};
}

// So many float32 numbers that are all `number`.
inline Payload Filled(int64_t numbers, float number) {
  auto floats = std::make_shared<std::vector<float>>(numbers, number);
  return {floats, std::as_bytes(std::span<const float>(*floats))};
}

class Script {
 public:
  explicit Script(SessionSettings settings = SmallSettings(), TimeUs start = 0)
      : now(start),
        settings_(std::move(settings)),
        session_(Session::Make(settings_, start).value()),
        servers_(settings_.identity.servers) {}

  Session& session() { return session_; }
  const ShardMap& map() const { return session_.shape().map; }

  void Tick(TimeUs later = 0) {
    now += later;
    Take(session_.Tick(now, {}));
  }
  // A message of a server, as it would be stamped.
  void Receive(int server, Message message) {
    message.header.set_job(settings_.identity.JobId());
    message.header.set_generation(generation);
    Take(session_.OnMessage(server, message, now));
  }
  void ReceiveHeader(int server, const wire::Header& header) { Receive(server, {header, {}}); }
  void Join() {
    Tick();
    for (int s = 0; s < servers_; ++s) Welcome(s);
  }
  void Welcome(int server) {
    wire::Header header;
    header.set_type(wire::WELCOME);
    header.mutable_welcome()->set_generation(generation);
    header.mutable_welcome()->set_since(since > 0 ? since : generation);
    header.mutable_welcome()->set_version(start_version);
    ReceiveHeader(server, header);
  }
  void Order(const std::map<int, int64_t>& leases, int64_t as_of = 0, bool released = false,
             int64_t stop = 0) {
    wire::Header header;
    header.set_type(wire::HEARTBEAT_REPLY);
    header.set_round(as_of);
    header.mutable_orders()->set_released(released);
    header.mutable_orders()->set_stop_at(stop);
    for (const auto& [partition, from] : leases) {
      auto* lease = header.mutable_orders()->add_leases();
      lease->set_partition(partition);
      lease->set_from(from);
    }
    ReceiveHeader(0, header);
  }
  // Answers one request as a willing server would.
  void Answer(const SendToServerAction& send) {
    if (std::optional<Message> reply = Reply(send)) Receive(send.server, *std::move(reply));
  }
  // That answer; nullopt where a request has none.
  std::optional<Message> Reply(const SendToServerAction& send) const {
    const wire::Header& asked = send.message.header;
    Message reply;
    wire::Header& header = reply.header;
    header.set_round(asked.round());
    header.set_partition(asked.partition());
    header.set_chunk(asked.chunk());
    header.set_request(asked.request());
    switch (asked.type()) {
      case wire::PULL:
        header.set_type(wire::CHUNK);
        header.set_vector(asked.vector());
        header.set_codec(static_cast<uint32_t>(CodecId::kFp32));
        if (applied) header.set_applied(applied(asked));
        header.set_save(asked.chunk() == 0 && save_at.contains(asked.round()));
        header.set_stop(asked.chunk() == 0 && asked.round() == stop_at);
        header.set_move(asked.chunk() == 0 && asked.round() == move_at);
        if (const Chunk& chunk = map().chunks()[asked.chunk()];
            asked.has_base() &&
            session_.shape().plan.SameNumbers(asked.base(), asked.round(), chunk)) {
          header.set_base(asked.base());
        } else {
          reply.payload =
              Filled(map().chunks()[asked.chunk()].range.size(), static_cast<float>(asked.round()));
        }
        break;
      case wire::GET_STATE:
        header.set_type(wire::STATE);
        header.set_carried_array(asked.carried_array());
        if (keeps_states) reply.payload = Filled(map().chunks()[asked.chunk()].range.size(), 1);
        break;
      case wire::PUSH:
      case wire::PUT_STATE:
      case wire::EVALUATED:
      case wire::INITIALISE:
        header.set_type(wire::ACK);
        header.set_acknowledges(asked.type());
        header.set_held(held.contains(asked.type()));
        break;
      default:
        return std::nullopt;
    }
    return reply;
  }
  // Answers and computes until the session waits; returns how many requests were answered.
  int Run(int64_t until_round = INT64_MAX) {
    int answered = 0;
    while (!left) {
      if (!sent.empty()) {
        const SendToServerAction send = sent.front();
        sent.pop_front();
        log.push_back(send);
        if (send.message.header.type() == wire::PULL && send.message.header.round() > until_round) {
          continue;
        }
        Answer(send);
        ++answered;
      } else if (!Work()) {
        break;
      }
    }
    return answered;
  }
  // Answers until a block is to be trained.
  void RunUntilItTrains() {
    while (!train) {
      ASSERT_FALSE(sent.empty());
      const SendToServerAction send = sent.front();
      sent.pop_front();
      Answer(send);
    }
  }
  // Chunks of the block that is to be trained are coded.
  void HandOn(const std::vector<int>& chunks) {
    std::vector<CodedChunk> coded;
    for (const int chunk : chunks) {
      const Codec& codec = session_.shape().policy.PushCodec(train->round, map().chunks()[chunk]);
      coded.push_back({chunk, Bytes(codec.EncodedBytes(map().chunks()[chunk].range.size()))});
    }
    Take(session_.OnCoded(std::move(coded), now));
  }
  // Carries the computation out that was asked for; false when there is none.
  bool Work() {
    if (initialise) {
      initialise = false;
      std::vector<Payload> weights;
      for (const Chunk& chunk : map().chunks()) weights.push_back(Bytes(chunk.range.size() * 4));
      Take(session_.OnInitialised({std::move(weights), {}}, now));
    } else if (train) {
      const TrainAction asked = *std::exchange(train, std::nullopt);
      TrainedBlock block;
      block.times = times;
      const int64_t samples =
          session_.shape().plan.MainSamples(asked.round, asked.partition).size();
      block.metrics.samples = samples;
      for (const Chunk& chunk : map().chunks()) {
        const Codec& codec = session_.shape().policy.PushCodec(asked.round, chunk);
        block.contributions.push_back(samples == 0 ? Payload()
                                                   : Bytes(codec.EncodedBytes(chunk.range.size())));
        const int arrays = session_.shape().policy.carried().count();
        for (int i = 0; asked.save_state && i < arrays; ++i) {
          if (!chunk.trained()) continue;
          block.carried.push_back({chunk.index, i, Bytes(chunk.range.size() * 4)});
        }
      }
      Take(session_.OnTrained(std::move(block), now));
    } else if (ahead) {
      const TrainAheadAction asked = *std::exchange(ahead, std::nullopt);
      TrainedAhead front;
      const int arrays = session_.shape().policy.carried().count();
      for (const Chunk& chunk : map().chunks()) {
        for (int i = 0; asked.save_state && chunk.trained() && i < arrays; ++i) {
          front.carried.push_back({chunk.index, i, Bytes(chunk.range.size() * 4)});
        }
      }
      Take(session_.OnTrainedAhead(std::move(front), now));
    } else if (evaluate) {
      evaluate.reset();
      Take(session_.OnEvaluated(Evaluation(), now));
    } else {
      return false;
    }
    return true;
  }
  void Take(WorkerActions actions) {
    for (WorkerAction& action : actions) {
      if (auto* send = std::get_if<SendToServerAction>(&action)) sent.push_back(*send);
      if (std::get_if<InitialiseAction>(&action)) {
        ExpectIdle();
        initialise = true;
      }
      if (auto* install = std::get_if<InstallAction>(&action)) {
        installs.emplace_back(install->chunk, install->vector);
        const size_t numbers = map().chunks()[install->chunk].range.size();
        EXPECT_EQ(install->payload.bytes.size(), install->relay
                                                     ? install->relay->EncodedBytes(numbers)
                                                     : install->codec->EncodedBytes(numbers));
        if (install->relay) {
          relays.emplace_back(install->chunk, install->payload.bytes.size());
        } else if (install->vector == wire::START) {
          install->codec->Decode(install->payload.bytes, numbers, 0, {&base[install->chunk], 1});
        }
      }
      if (auto* adopt = std::get_if<AdoptAction>(&action)) adopted.insert(adopt->partition);
      if (auto* t = std::get_if<TrainAction>(&action)) {
        ExpectIdle();
        EXPECT_TRUE(adopted.contains(t->partition)) << "trains before it adopts";
        train = *t;
        trained.emplace_back(t->round.round, t->partition);
        std::set<float>& from = trained_from.emplace_back();
        for (const auto& [chunk, version] : base) from.insert(version);
      }
      if (auto* t = std::get_if<TrainAheadAction>(&action)) {
        ExpectIdle();
        ahead = *t;
        trained_ahead.emplace_back(t->round.round, t->partition);
      }
      if (auto* e = std::get_if<EvaluateAction>(&action)) {
        ExpectIdle();
        evaluate = *e;
        evaluated.emplace_back(e->version, e->partition);
      }
      if (auto* drop = std::get_if<DropAction>(&action)) {
        adopted.erase(drop->partition);
        dropped.push_back(drop->partition);
      }
      if (auto* leave = std::get_if<LeaveAction>(&action)) {
        left = leave->status;
        handed_over = leave->handed_over;
      }
    }
  }
  // One computation at a time.
  void ExpectIdle() { EXPECT_FALSE(initialise || train || ahead || evaluate); }
  int CountSent(wire::Type type) const {
    return static_cast<int>(std::count_if(
        sent.begin(), sent.end(), [&](const auto& s) { return s.message.header.type() == type; }));
  }

  TimeUs now;
  uint32_t generation = 1;
  uint32_t since = 0;         // 0: as the generation
  std::set<wire::Type> held;  // acknowledgements of these say so
  bool keeps_states = false;  // servers have the states that are asked for
  int64_t start_version = 0;
  std::set<int64_t> save_at;  // versions whose round ends with a checkpoint
  int64_t stop_at = -1;
  int64_t move_at = -1;  // the version after whose round leases move
  std::deque<SendToServerAction> sent;
  std::vector<SendToServerAction> log;  // what Run answered, or kept waiting
  std::vector<std::pair<int, wire::Vector>> installs;
  std::function<int64_t(const wire::Header& pull)> applied;  // Header.applied of the answer
  std::vector<std::pair<int, size_t>> relays;                // of them: chunk and bytes
  // Round or version, and partition.
  std::vector<std::pair<int64_t, int>> trained, trained_ahead, evaluated;
  std::map<int, float> base;                  // by chunk: its installed version
  std::vector<std::set<float>> trained_from;  // the versions that `trained` started from
  std::vector<int> dropped;
  std::set<int> adopted;
  bool initialise = false;
  std::optional<TrainAction> train;
  std::optional<TrainAheadAction> ahead;
  std::optional<EvaluateAction> evaluate;
  std::optional<Status> left;
  bool handed_over = false;
  BlockTimes times;  // of the blocks that are trained

 private:
  SessionSettings settings_;
  Session session_;
  int servers_;
};

// Partition 0 is about to train round 0, which begins with the initial weights.
inline void RunUntilItTrains(Script* script) {
  script->Join();
  script->Order({{0, 0}});
  ASSERT_TRUE(script->Work());
  script->RunUntilItTrains();
}

inline void AnswerAll(Script* script) {
  while (!script->left && !script->sent.empty()) {
    const auto send = script->sent.front();
    script->sent.pop_front();
    script->Answer(send);
  }
}

inline void SayGone(Script* script) {
  wire::Header gone;
  gone.set_type(wire::GONE);
  script->ReceiveHeader(0, gone);
}

}  // namespace kumo::test
