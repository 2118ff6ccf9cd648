#include "worker/session/session.h"

#include <algorithm>
#include <limits>

#include <glog/logging.h>

#include "common/job/checkpoint/origin.h"
#include "common/job/protocol.h"

namespace kumo {
namespace {

int64_t UntilOf(const wire::Orders::Lease& lease) {
  return lease.until() > 0 ? lease.until() : std::numeric_limits<int64_t>::max();
}

}  // namespace

Result<Session> Session::Make(SessionSettings settings, TimeUs now) {
  KUMO_ASSIGN_OR_RETURN(JobPlan plan, PlanFor(settings.experiment, settings.spec));
  ShardMap map(settings.spec.layout, settings.identity.servers,
               settings.experiment.cluster.chunk_kib * 1024);
  Session session(std::move(settings), std::move(plan), std::move(map), now);
  KUMO_ASSIGN_OR_RETURN(session.push_codecs_, PushCodecs::Make(session.settings_.experiment));
  return session;
}

Session::Session(SessionSettings settings, JobPlan plan, ShardMap map, TimeUs now)
    : settings_(std::move(settings)),
      plan_(std::move(plan)),
      map_(std::move(map)),
      now_(now),
      ticked_at_(now),
      servers_(settings_.identity.servers) {
  for (Server& server : servers_) server.heard = now;
  for (int vector : {wire::START, wire::WEIGHTS}) {
    installed_[vector].assign(map_.chunks().size(), -1);
    waiting_[vector].resize(map_.chunks().size());
  }
}

PeerName Session::peer_name() const {
  return "worker/" + settings_.name + "/" + std::to_string(settings_.process.incarnation);
}

const Codec& Session::PushCodec(const RoundPlan& round, Segment segment) const {
  return push_codecs_.For(round, segment);
}

WorkerActions Session::OnMessage(int server, const Message& message, TimeUs now) {
  WorkerActions actions;
  now_ = now;
  const wire::Header& header = message.header;
  if (finished_) return actions;
  if (header.type() == wire::REFUSED) {
    OnRefused(server, header, &actions);
    return Stamp(std::move(actions));
  }
  if (header.job() != settings_.identity.JobId()) return actions;
  servers_[server].heard = now;
  LOG_IF(WARNING, servers_[server].unheard) << NameOf(server) << " is heard again";
  servers_[server].unheard = false;
  if (header.type() == wire::WELCOME) {
    OnWelcome(server, header.welcome(), &actions);
  } else if (server == 0 && generation_ != 0 && header.generation() > generation_) {
    Rejoin(header.generation(), &actions);  // the job has gone back
    return Stamp(std::move(actions));
  } else if (header.generation() != generation_) {
    return actions;  // of a generation that is over
  }
  switch (header.type()) {
    case wire::HEARTBEAT_REPLY:
      if (server == 0 && (header.has_orders() || header.has_refusal())) OnOrders(header, &actions);
      break;
    case wire::ACK:
      OnAck(header);
      break;
    case wire::CHUNK:
      OnChunk(message);
      break;
    case wire::GONE:
      OnGone(server, header, &actions);
      break;
    case wire::STATE:
      OnState(message);
      break;
    default:
      break;
  }
  if (!finished_) Proceed(&actions);
  LeaveIfHandedOver(&actions);
  return Stamp(std::move(actions));
}

void Session::OnOrders(const wire::Header& header, WorkerActions* actions) {
  if (header.has_refusal()) {
    Finish(ErrorFromPeer(header.refusal().code(), "the job failed: " + header.refusal().reason()),
           actions);
    return;
  }
  const wire::Orders& orders = header.orders();
  if (orders.finished()) {
    Finish(orders.stopped() ? Unavailable("the job was stopped and saved") : OkStatus(), actions);
    return;
  }
  if (header.round() < orders_at_) return;  // overtaken
  orders_at_ = header.round();
  job_waits_for_ = orders.waits_for();
  if (orders.stop_at() > 0) halted_at_ = orders.stop_at();
  std::map<int, wire::Orders::Lease> wanted;
  for (const auto& lease : orders.leases()) {
    if (lease.partition() >= 0 && lease.partition() < plan_.settings().partitions &&
        lease.from() >= 0 && lease.from() <= plan_.rounds()) {
      // A helper's order is for less than the lease.
      const bool helps = lease.until() > 0;
      if (!helps || !wanted.contains(lease.partition())) wanted[lease.partition()] = lease;
    }
  }
  for (auto lease = leases_.begin(); lease != leases_.end();) {
    const auto keep = wanted.find(lease->first);
    if (keep != wanted.end() && keep->second.from() == lease->second.from &&
        UntilOf(keep->second) == lease->second.until) {
      // The worker that was to hand it over has died: ask again, without waiting.
      if (lease->second.handed_over && !keep->second.handed_over()) {
        lease->second.handed_over = false;
        requests_.Drop(wire::GET_STATE, lease->first);
      }
      ++lease;
      continue;
    }
    const int partition = lease->first;
    LOG(INFO) << "partition " << partition << " is no longer ours";
    // What is being pushed of it goes on: with what the next owner pushes it counts once.
    requests_.Drop(wire::GET_STATE, partition);
    std::erase_if(received_states_,
                  [&](const auto& s) { return std::get<0>(s.first) == partition; });
    actions->push_back(DropAction{partition});
    lease = leases_.erase(lease);
  }
  for (const auto& [partition, lease] : wanted) {
    if (leases_.contains(partition)) continue;
    LOG(INFO) << "computes partition " << partition << " from round " << lease.from() << " on";
    leases_[partition] =
        Lease{lease.from(), lease.from(), UntilOf(lease), lease.handed_over(), false, -1};
  }
  released_ = orders.released();
  if (leases_.empty()) requests_.Drop(wire::PULL, 0);  // nothing is computed from it
}

void Session::OnAck(const wire::Header& header) {
  const OpenRequests::Key request{header.acknowledges(), header.partition(), header.chunk(),
                                  header.slot()};
  if (!requests_.Waits(request, header.round())) return;  // a second answer
  if (header.acknowledges() == wire::EVALUATED) {
    if (const auto lease = leases_.find(header.partition()); lease != leases_.end()) {
      lease->second.evaluated = std::max(lease->second.evaluated, header.round());
    }
  }
  if (header.acknowledges() == wire::PUSH && requests_.Waits(request)) times_.acknowledged = now_;
  if (header.held()) {
    requests_.Hold(request, now_);
  } else {
    requests_.Drop(request);
  }
}

void Session::OnChunk(const Message& message) {
  const wire::Header& header = message.header;
  const OpenRequests::Key request{wire::PULL, 0, header.chunk(), header.vector()};
  if (!requests_.Waits(request, header.round())) return;  // a second answer, or no longer wanted
  const auto codec = FindCodec(header.codec());
  const size_t numbers = map_.chunks()[header.chunk()].range.size();
  if (!codec.ok() || message.payload.bytes.size() != (*codec)->EncodedBytes(numbers)) {
    LOG(WARNING) << "chunk " << header.chunk() << " came with " << message.payload.bytes.size()
                 << " bytes of codec " << header.codec() << "; asks again";
    return;
  }
  requests_.Drop(request);
  waiting_[header.vector()][header.chunk()] = message;
  if (header.vector() == wire::START && times_.pushed) {
    if (!times_.first_chunk) times_.first_chunk = now_;
    times_.last_chunk = now_;
  }
}

void Session::OnGone(int server, const wire::Header& header, WorkerActions* actions) {
  if (header.chunk() < 0 || header.round() <= 0 || header.round() > plan_.rounds()) {
    // The server does not know us (any more). Where that is server 0, others have our leases.
    if (server == 0) {
      since_ = 0;
      ForgetRounds(actions);
      Rejoin(generation_, actions);
    } else {
      servers_[server].welcomed = false;
      SendHello(server, actions);
    }
    return;
  }
  // The round that we are at has closed without us: go on with the oldest one still open, if the
  // partition is ours still.
  orders_due_ = std::max(orders_due_, header.round());
  requests_.Drop({wire::PULL, 0, header.chunk(), header.vector()});
  for (auto& [partition, lease] : leases_) {
    if (lease.round >= header.round()) continue;
    lease.round = header.round();
    lease.adopted = false;
  }
}

void Session::OnState(const Message& message) {
  const wire::Header& header = message.header;
  const OpenRequests::Key request{wire::GET_STATE, header.partition(), header.chunk(),
                                  header.slot()};
  if (!requests_.Waits(request, header.round())) return;
  const size_t bytes = map_.chunks()[header.chunk()].range.size() * sizeof(float);
  if (!message.payload.empty() && message.payload.bytes.size() != bytes) return;
  requests_.Drop(request);
  received_states_[{header.partition(), header.chunk(), header.slot()}] = message.payload;
}

int64_t Session::TargetRound() const {
  int64_t target = std::numeric_limits<int64_t>::max();
  for (const auto& [partition, lease] : leases_) {
    if (lease.round < lease.until) target = std::min(target, lease.round);
  }
  return target;
}

void Session::Proceed(WorkerActions* actions) {
  if (busy_ != Busy::kNo || leases_.empty()) return;
  if (std::any_of(servers_.begin(), servers_.end(), [](auto& s) { return !s.welcomed; })) return;
  // Whoever holds partition 0 brings the initial weights; should it be lost, the next one does.
  if (!initialised_ && leases_.contains(0) && leases_[0].round == 0) {
    busy_ = Busy::kInitialising;
    busy_partition_ = 0;
    actions->push_back(InitialiseAction{});
    return;
  }
  const int64_t target = TargetRound();
  if (target > plan_.rounds()) return;  // has only helped, and is done
  if (halted_at_ >= 0 && target >= halted_at_) {
    // This worker waits for the coordinator's last word. A partition that came here after its
    // worker was lost still asks for what it carries: the shards' last snapshot waits for the state
    // or this.
    for (const auto& [partition, lease] : leases_) {
      if (!lease.adopted) AskForState(partition, lease, actions);
    }
    return;
  }
  if (target >= orders_due_ && orders_at_ < orders_due_) return;
  if (!PullMissing(wire::START, target, actions)) return;
  if (times_.first_chunk) ReportTimes();
  if (NeedsWeightsApart(target) && !PullMissing(wire::WEIGHTS, target, actions)) return;
  for (auto& [partition, lease] : leases_) {
    if (lease.round != target || lease.round >= lease.until) continue;
    ComputePartition(partition, &lease, actions);
    if (busy_ != Busy::kNo) return;
  }
}

// True when all chunks are installed at `version`.
bool Session::PullMissing(wire::Vector vector, int64_t version, WorkerActions* actions) {
  bool complete = true;
  for (const Chunk& chunk : map_.chunks()) {
    auto& waiting = waiting_[vector][chunk.index];
    if (waiting && waiting->header.round() == version) {
      const auto codec = FindCodec(waiting->header.codec());
      actions->push_back(InstallAction{chunk.index, vector, *codec, std::move(waiting->payload)});
      installed_[vector][chunk.index] = version;
      if (chunk.index == 0 && vector == wire::START) {
        save_ = waiting->header.save();
        if (waiting->header.stop()) halted_at_ = version + 1;
        if (waiting->header.move()) orders_due_ = std::max(orders_due_, version + 1);
      }
    }
    waiting.reset();
    if (installed_[vector][chunk.index] == version) continue;
    complete = false;
    if (requests_.Waits({wire::PULL, 0, chunk.index, vector}, version)) continue;
    wire::Header header;
    header.set_type(wire::PULL);
    header.set_slot(vector);  // tells the two pulls of a chunk apart in requests_
    header.set_vector(vector);
    header.set_chunk(chunk.index);
    header.set_round(version);
    Ask(chunk.server, std::move(header), {}, actions);
  }
  return complete;
}

// True where version `version` is evaluated and the rule keeps the evaluated weights apart from
// what blocks start from.
bool Session::NeedsWeightsApart(int64_t version) const {
  if (plan_.EvaluatedEpoch(version) < 0) return false;
  return plan_.Round(version - 1).mode == SyncMode::kBlock &&
         settings_.experiment.block.KeepsWeightsApart();
}

void Session::ComputePartition(int partition, Lease* lease, WorkerActions* actions) {
  if (requests_.Waits(wire::EVALUATED, partition)) return;
  if (requests_.Waits(wire::PUT_STATE, partition)) return;
  if (!lease->adopted) {
    AskForState(partition, *lease, actions);
    if (requests_.Waits(wire::GET_STATE, partition)) return;
    AdoptAction adopt{partition, {}};
    for (const auto& [key, payload] : received_states_) {
      if (std::get<0>(key) != partition || payload.empty()) continue;
      adopt.arrays.push_back({std::get<1>(key), std::get<2>(key), payload});
    }
    std::erase_if(received_states_,
                  [&](const auto& s) { return std::get<0>(s.first) == partition; });
    actions->push_back(std::move(adopt));
    lease->adopted = true;
  }
  busy_partition_ = partition;
  busy_round_ = lease->round;
  if (plan_.EvaluatedEpoch(lease->round) >= 0 && lease->evaluated != lease->round) {
    busy_ = Busy::kEvaluating;
    const bool apart = NeedsWeightsApart(lease->round);
    actions->push_back(
        EvaluateAction{partition, lease->round, apart ? wire::WEIGHTS : wire::START});
    return;
  }
  if (lease->round >= plan_.rounds()) return;
  busy_ = Busy::kTraining;
  pushed_.assign(map_.chunks().size(), false);
  if (report_.samples() == 0) report_.set_samples_at_s(ToSeconds(now_));
  actions->push_back(TrainAction{partition, plan_.Round(lease->round), save_});
}

// What the partition carries: asked of each shard once, unless there is nothing to carry.
void Session::AskForState(int partition, const Lease& lease, WorkerActions* actions) {
  const int arrays = CarriedArrays(settings_.experiment, settings_.spec);
  if (lease.round == 0) return;
  for (const Chunk& chunk : map_.chunks()) {
    if (chunk.segment == Segment::kStatistics) continue;
    for (int array = 0; array < arrays; ++array) {
      if (requests_.Waits({wire::GET_STATE, partition, chunk.index, array}) ||
          received_states_.contains({partition, chunk.index, array})) {
        continue;
      }
      wire::Header header;
      header.set_type(wire::GET_STATE);
      header.set_partition(partition);
      header.set_chunk(chunk.index);
      header.set_slot(array);
      header.set_round(lease.round);
      header.set_wait(lease.handed_over && lease.round == lease.from);
      Ask(chunk.server, std::move(header), {}, actions);
    }
  }
}

WorkerActions Session::OnInitialised(InitialWeights weights, TimeUs now) {
  WorkerActions actions;
  now_ = now;
  busy_ = Busy::kNo;
  if (finished_ || busy_partition_ < 0) {
    Proceed(&actions);
    return Stamp(std::move(actions));
  }
  initialised_ = true;
  for (const Chunk& chunk : map_.chunks()) {
    wire::Header header;
    header.set_type(wire::INITIALISE);
    header.set_chunk(chunk.index);
    header.set_codec(static_cast<uint32_t>(CodecId::kFp32));
    if (chunk.index == 0 && weights.origin) *header.mutable_origin() = Excerpt(*weights.origin);
    Ask(chunk.server, std::move(header), std::move(weights.chunks[chunk.index]), &actions);
  }
  Proceed(&actions);
  return Stamp(std::move(actions));
}

// The lease of the block that is being trained; null where it went away meanwhile.
Session::Lease* Session::LeaseOfBlock() {
  const auto lease = leases_.find(busy_partition_);
  if (lease == leases_.end() || lease->second.round != busy_round_) return nullptr;
  return &lease->second;
}

// Whether some chunks of the block under way are pushed, and may have closed their round. Then the
// others must follow, whoever has the lease: else servers might be left at different versions.
bool Session::HalfPushed() const {
  return busy_ == Busy::kTraining && busy_partition_ >= 0 &&
         std::find(pushed_.begin(), pushed_.end(), true) != pushed_.end();
}

void Session::Push(int chunk, Payload payload, const wire::Metrics* metrics,
                   WorkerActions* actions) {
  const RoundPlan round = plan_.Round(busy_round_);
  wire::Header header;
  header.set_type(wire::PUSH);
  header.set_round(busy_round_);
  header.set_partition(busy_partition_);
  header.set_chunk(chunk);
  header.set_samples(plan_.PartitionSamples(round, busy_partition_).size());
  header.set_save(save_);
  header.set_codec(static_cast<uint32_t>(PushCodec(round, map_.chunks()[chunk].segment).id()));
  if (metrics != nullptr) *header.mutable_metrics() = *metrics;
  pushed_[chunk] = true;
  Ask(ServerOf(chunk), std::move(header), std::move(payload), actions);
}

WorkerActions Session::OnCoded(std::vector<CodedChunk> chunks, TimeUs now) {
  WorkerActions actions;
  now_ = now;
  if (finished_ || LeaseOfBlock() == nullptr) return actions;
  if (leave_by_ > 0 && !HalfPushed()) return actions;  // it might have to give it up
  for (CodedChunk& coded : chunks) {
    CHECK_GT(coded.chunk, 0) << "the block's metrics go with chunk 0";
    Push(coded.chunk, std::move(coded.payload), nullptr, &actions);
  }
  return Stamp(std::move(actions));
}

WorkerActions Session::OnTrained(TrainedBlock block, TimeUs now) {
  WorkerActions actions;
  now_ = now;
  const bool half_pushed = HalfPushed();
  busy_ = Busy::kNo;
  report_.set_samples(report_.samples() + block.metrics.samples());
  report_.set_samples_at_s(ToSeconds(now));
  if (finished_) return actions;
  Lease* const lease = LeaseOfBlock();
  if (lease != nullptr || half_pushed) {
    for (const Chunk& chunk : map_.chunks()) {
      if (pushed_[chunk.index]) continue;
      Push(chunk.index, std::move(block.contributions[chunk.index]),
           chunk.index == 0 ? &block.metrics : nullptr, &actions);
    }
  }
  if (lease != nullptr) EndBlock(std::move(block.carried), lease, &actions);
  Proceed(&actions);
  return Stamp(std::move(actions));
}

// What the partition carries is put on the servers, and its next block can be computed.
void Session::EndBlock(std::vector<TrainedBlock::Array> carried, Lease* lease,
                       WorkerActions* actions) {
  for (TrainedBlock::Array& array : carried) {
    wire::Header header;
    header.set_type(wire::PUT_STATE);
    header.set_round(busy_round_ + 1);
    header.set_partition(busy_partition_);
    header.set_chunk(array.chunk);
    header.set_slot(array.index);
    header.set_codec(static_cast<uint32_t>(CodecId::kFp32));
    Ask(ServerOf(array.chunk), std::move(header), std::move(array.payload), actions);
  }
  times_ = {};
  times_.pushed = now_;
  lease->round = busy_round_ + 1;
  report_.set_round(lease->round);
}

WorkerActions Session::OnEvaluated(const wire::Metrics& metrics, TimeUs now) {
  WorkerActions actions;
  now_ = now;
  busy_ = Busy::kNo;
  if (finished_) return actions;
  if (leases_.contains(busy_partition_)) {
    wire::Header header;
    header.set_type(wire::EVALUATED);
    header.set_slot(plan_.EvaluatedEpoch(busy_round_));  // an earlier epoch's may still be held
    header.set_round(busy_round_);
    header.set_partition(busy_partition_);
    *header.mutable_metrics() = metrics;
    Ask(0, std::move(header), {}, &actions);
  }
  Proceed(&actions);
  return Stamp(std::move(actions));
}

WorkerActions Session::OnFailed(const Status& status, TimeUs now) {
  WorkerActions actions;
  now_ = now;
  Finish(status, &actions);
  return Stamp(std::move(actions));
}

void Session::Ask(int server, wire::Header header, Payload payload, WorkerActions* actions) {
  const Message& message =
      requests_.Add(server, Message{std::move(header), std::move(payload)}, now_);
  // What cannot be sent yet is sent when the server has welcomed us.
  if (servers_[server].welcomed) actions->push_back(SendToServerAction{server, message});
}

void Session::SetTimes(double compute_ms, double coding_ms) {
  report_.set_compute_ms(compute_ms);
  coding_ms_ = coding_ms;
}

// Network: coding, pushes until the last is acknowledged, and chunks from the first to the last.
// Wait: from the acknowledgement until the first chunk of the next version comes.
void Session::ReportTimes() {
  const auto milliseconds = [](TimeUs from, TimeUs to) {
    return to > from ? static_cast<double>(to - from) * 1e-3 : 0.0;
  };
  const TimeUs sent = times_.acknowledged.value_or(*times_.pushed);
  report_.set_network_ms(coding_ms_ + milliseconds(*times_.pushed, sent) +
                         milliseconds(*times_.first_chunk, *times_.last_chunk));
  report_.set_wait_ms(milliseconds(sent, *times_.first_chunk));
}

std::string Session::WaitsForProcesses() const {
  for (size_t i = 0; i < servers_.size(); ++i) {
    if (!servers_[i].welcomed) return NameOf(static_cast<int>(i));
  }
  if (leases_.empty() && !job_waits_for_.empty())
    return "the job, which waits for " + job_waits_for_;
  return "";
}

std::string Session::StateInWords() const {
  if (const std::string missing = WaitsForProcesses(); !missing.empty()) {
    return "waits for " + missing;
  }
  if (leases_.empty()) return "waits for a partition to compute";
  if (TargetRound() > plan_.rounds()) return "waits for a partition to compute";
  const std::string round = "round " + std::to_string(TargetRound());
  if (busy_ == Busy::kInitialising) return "makes the initial weights";
  if (busy_ == Busy::kTraining)
    return round + ": trains partition " + std::to_string(busy_partition_);
  if (busy_ == Busy::kEvaluating) return round + ": evaluates";
  const auto at = [](const OpenRequests::Request* request) {
    return " (server " + std::to_string(request->server) + ")";
  };
  if (const auto* pull = requests_.First(wire::PULL)) {
    return round + ": waits for the weights" + at(pull);
  }
  for (const wire::Type type : {wire::GET_STATE, wire::PUT_STATE}) {
    if (const auto* state = requests_.First(type)) {
      return round + ": hands over a partition's state" + at(state);
    }
  }
  return requests_.empty() ? round + ": waits for orders" : round + ": waits for acknowledgements";
}

WorkerActions Session::Stamp(WorkerActions actions) const {
  for (WorkerAction& action : actions) {
    if (auto* send = std::get_if<SendToServerAction>(&action)) {
      send->message.header.set_protocol(kProtocolVersion);
      send->message.header.set_job(settings_.identity.JobId());
      send->message.header.set_generation(generation_);
    }
  }
  return actions;
}

}  // namespace kumo
