#include "worker/session/rounds.h"

#include <algorithm>
#include <utility>

namespace kumo {

Rounds::Rounds(const JobShape* shape)
    : shape_(shape), leases_(&shape->plan), weights_(shape), states_(shape), computation_(shape) {}

void Rounds::Forget(int64_t version, WorkerStepContext* context) {
  for (const auto& [partition, lease] : leases_.all()) context->Do(DropAction{partition});
  leases_.Forget();
  context->requests->Clear();
  states_.ForgetAll();
  weights_.Forget();
  initialised_ = version > 0;
  progress_.ForgetTimes();
  computation_.Disown();
  saved_ = -1;
}

void Rounds::OnOrders(const wire::Header& header, WorkerStepContext* context) {
  const Leases::Changes changes = leases_.OnOrders(header.round(), header.orders());
  // Requests these states again at once.
  for (const int partition : changes.orphaned) {
    context->requests->Drop(wire::GET_STATE, partition);
    states_.AskAgain(partition);
  }
  for (const int partition : changes.lost) {
    // A push that is under way goes on: together with the next owner's equal push it counts once.
    context->requests->Drop(wire::GET_STATE, partition);
    states_.Forget(partition);
    context->Do(DropAction{partition});
  }
  // Without a lease nothing is computed from pulled weights.
  if (leases_.all().empty()) {
    context->requests->Drop(wire::PULL, 0);
    weights_.AskAgain();
  }
}

void Rounds::OnAnswer(int server, const Message& message, WorkerStepContext* context) {
  const wire::Header& header = message.header;
  const OpenRequest* const request = context->requests->Find(server, header);
  if (request == nullptr) return;  // a second answer, or the answer to a dropped request
  const wire::Header& asked = request->message.header;
  if (header.type() == wire::ACK && header.acknowledges() == asked.type()) {
    OnAck(*request, header, context);
  } else if (header.type() == wire::CHUNK && asked.type() == wire::PULL) {
    if (!weights_.OnChunk(asked, message)) return;
    if (asked.vector() == wire::START) progress_.OnChunk(context->now);
    context->requests->Answered(asked.request(), context->now);
  } else if (header.type() == wire::GONE && asked.type() == wire::PULL) {
    OnGone(*request, header.round(), context);
  } else if (header.type() == wire::STATE && asked.type() == wire::GET_STATE) {
    if (states_.OnState(asked, message.payload)) {
      context->requests->Answered(asked.request(), context->now);
    }
  }
}

void Rounds::OnAck(const OpenRequest& request, const wire::Header& ack,
                   WorkerStepContext* context) {
  const wire::Header& asked = request.message.header;
  if (asked.type() == wire::EVALUATED) {
    if (Lease* const lease = leases_.Find(asked.partition())) {
      lease->evaluated = std::max(lease->evaluated, asked.round());
    }
  }
  if (asked.type() == wire::PUSH && !request.held) progress_.OnPushAcknowledged(context->now);
  if (ack.held()) {
    context->requests->Hold(asked.request(), context->now);
  } else {
    context->requests->Answered(asked.request(), context->now);
  }
}

// The current round has closed without this worker. Continue with the oldest round that is still
// open, if the partition is still leased here.
void Rounds::OnGone(const OpenRequest& pull, int64_t oldest, WorkerStepContext* context) {
  if (oldest <= 0 || oldest > shape_->plan.rounds()) return;
  context->requests->Answered(pull.message.header.request(), context->now);
  weights_.AskAgain();
  leases_.SkipTo(oldest);
}

void Rounds::Proceed(WorkerStepContext* context) {
  // The next version is pulled while a partition trains ahead, since that needs no base weights.
  const bool ahead = computation_.kind() == Computation::Kind::kTrainingAhead;
  const bool busy = computation_.kind() != Computation::Kind::kNone;
  if (leases_.all().empty()) return;
  if (busy && !ahead) {
    AskAhead(context);
    return;
  }
  // The worker that holds partition 0 provides the initial weights; if it is lost, the next holder
  // does.
  const Lease* const first = leases_.Find(0);
  if (!busy && !initialised_ && first != nullptr && first->round == 0) {
    computation_.Initialise(context);
    return;
  }
  const int64_t target = leases_.TargetRound();
  if (target > shape_->plan.rounds()) return;  // was only a helper, and is done
  if (leases_.Halted(target)) {
    // The job stops here and this worker waits for the coordinator's end message. A partition that
    // came here after its worker was lost must still request its carried state: the shards' last
    // snapshot waits for the state or for this request.
    for (const auto& [partition, lease] : leases_.all()) {
      if (!lease.adopted) states_.AskFor(partition, lease, context);
    }
    return;
  }
  if (leases_.WaitsForOrders(target)) return;
  if (!Reach(wire::START, shape_->plan.PulledFor(target), context) || busy) return;
  progress_.OnVersion(target);
  if (shape_->EvaluatesApart(target) && !Reach(wire::WEIGHTS, target, context)) return;
  for (const auto& [partition, lease] : leases_.all()) {
    if (lease.round != target || lease.round >= lease.until) continue;
    ComputePartition(partition, leases_.Find(partition), context);
    if (computation_.kind() == Computation::Kind::kNone) continue;
    AskAhead(context);
    return;
  }
}

// Asks before the block's contribution is pushed, behind which the pulls would wait: so a chunk
// comes back while others are still pushed. With a delay, the base of the next round may be there
// before the current one is computed.
void Rounds::AskAhead(WorkerStepContext* context) {
  const int64_t next = computation_.round() + 1;
  if (shape_->plan.on_arrival()) return;  // the later, the newer
  if (computation_.kind() != Computation::Kind::kTraining) return;
  if (computation_.partition() < 0) return;  // of a generation that is over
  if (next > shape_->plan.rounds() || leases_.Halted(next)) return;
  weights_.AskAhead(wire::START, shape_->plan.BaseOf(next), context);
}

// Returns true when all chunks are installed at `version`.
bool Rounds::Reach(wire::Vector vector, int64_t version, WorkerStepContext* context) {
  const WeightDownload::Reached reached =
      weights_.Reach(vector, version, NeedsWhole(version), context);
  leases_.OnVersion(shape_->plan.ToldWith(version), reached.stop, reached.move);
  return reached.complete;
}

bool Rounds::NeedsWhole(int64_t round) const {
  if (round == saved_) return true;
  return std::ranges::any_of(leases_.all(), [&](const auto& entry) {
    return entry.second.round == round && entry.second.from == round;
  });
}

void Rounds::ComputePartition(int partition, Lease* lease, WorkerStepContext* context) {
  if (context->requests->Waits(wire::EVALUATED, partition)) return;
  if (context->requests->Waits(wire::PUT_STATE, partition)) return;
  if (!lease->adopted) {
    states_.AskFor(partition, *lease, context);
    if (context->requests->Waits(wire::GET_STATE, partition)) return;
    context->Do(states_.Take(partition, lease->round));
    lease->adopted = true;
  }
  if (shape_->plan.EvaluatedEpoch(lease->round) >= 0 && lease->evaluated != lease->round) {
    computation_.Evaluate(partition, lease->round, context);
    return;
  }
  if (lease->round >= shape_->plan.rounds()) return;
  progress_.OnTraining(context->now);
  const JobPlan& plan = shape_->plan;
  const bool is_last = lease->round + 1 == plan.RoundsFrom(plan.BaseOf(lease->round)).end;
  const bool saves = is_last && weights_.save();
  if (saves) saved_ = std::max(saved_, lease->round + 1);
  computation_.Train(partition, lease->round, weights_.applied(), saves, context);
}

void Rounds::OnInitialised(InitialWeights weights, WorkerStepContext* context) {
  computation_.End();
  if (computation_.partition() < 0) return;
  initialised_ = true;
  computation_.SendInitial(std::move(weights), context);
}

// The lease of the block that is being trained; null if the lease has moved meanwhile, also if it
// has come back since: the partition's carried arrays are dropped then (OnOrders), and the block is
// computed again.
Lease* Rounds::LeaseOfBlock() {
  Lease* const lease = leases_.Find(computation_.partition());
  const bool same = lease != nullptr && lease->round == computation_.round() && lease->adopted;
  return same ? lease : nullptr;
}

void Rounds::OnCoded(std::vector<CodedChunk> chunks, bool leaving, WorkerStepContext* context) {
  if (LeaseOfBlock() == nullptr) return;
  if (leaving && !computation_.HalfPushed()) return;
  computation_.PushFinished(std::move(chunks), context);
}

void Rounds::OnTrained(TrainedBlock block, WorkerStepContext* context) {
  const bool half_pushed = computation_.HalfPushed();
  computation_.End();
  progress_.OnTrained(block, context->now);
  Lease* const lease = LeaseOfBlock();
  if (lease != nullptr || half_pushed) computation_.PushRest(&block, context);
  if (lease == nullptr) return;
  computation_.PutCarried(std::move(block.carried), context);
  lease->round = computation_.round() + 1;
  progress_.OnPushed(leases_.TargetRound(), context->now);
  computation_.TrainAhead(context);
}

// The lease may have moved meanwhile: then the next worker waits for this state.
void Rounds::OnTrainedAhead(TrainedAhead ahead, WorkerStepContext* context) {
  computation_.End();
  progress_.OnTrainedAhead(ahead, context->now);
  if (computation_.partition() < 0) return;
  computation_.PutCarried(std::move(ahead.carried), context);
}

void Rounds::OnEvaluated(const Evaluation& evaluation, WorkerStepContext* context) {
  computation_.End();
  if (leases_.Find(computation_.partition()) == nullptr) return;
  computation_.SendEvaluation(evaluation, context);
}

bool Rounds::HandedOver() const {
  return leases_.released() && leases_.all().empty() && !computation_.HalfPushed() &&
         !computation_.owed_state();
}

void Rounds::Report(TimeUs now, wire::WorkerReport* report) const {
  progress_.Report(report);
  report->clear_computing_s();
  if (const auto begun = computation_.begun()) report->set_computing_s(ToSeconds(now - *begun));
}

std::string Rounds::JobWaitsFor() const {
  return leases_.all().empty() ? leases_.job_waits_for() : "";
}

std::string Rounds::InWords(const OpenRequests& requests) const {
  const int64_t target = leases_.TargetRound();
  if (leases_.all().empty() || target > shape_->plan.rounds()) {
    return "waits for a partition to compute";
  }
  const std::string round = "round " + std::to_string(target);
  switch (computation_.kind()) {
    case Computation::Kind::kInitialising:
      return "makes the initial weights";
    case Computation::Kind::kTraining:
    case Computation::Kind::kTrainingAhead:
      return round + ": trains partition " + std::to_string(computation_.partition());
    case Computation::Kind::kEvaluating:
      return round + ": evaluates";
    case Computation::Kind::kNone:
      break;
  }
  const auto at = [](const OpenRequest* request) {
    return " (server " + std::to_string(request->server) + ")";
  };
  if (const auto* pull = requests.First(wire::PULL)) {
    return round + ": waits for the weights" + at(pull);
  }
  for (const wire::Type type : {wire::GET_STATE, wire::PUT_STATE}) {
    if (const auto* state = requests.First(type)) {
      return round + ": hands over a partition's state" + at(state);
    }
  }
  if (const auto* push = requests.First(wire::PUSH)) {
    return round + ": waits for acknowledgements" + at(push);
  }
  return requests.empty() ? round + ": waits for orders" : round + ": waits for acknowledgements";
}

void Progress::OnTraining(TimeUs now) {
  if (samples_ == 0) samples_at_s_ = ToSeconds(now);
}

void Progress::OnTrained(const TrainedBlock& block, TimeUs now) {
  compute_ms_ = block.times.compute_ms;
  coding_ms_ = block.times.coding_ms;
  samples_ += block.metrics.samples;
  samples_at_s_ = ToSeconds(now);
}

void Progress::OnTrainedAhead(const TrainedAhead& ahead, TimeUs now) {
  if (compute_ms_) *compute_ms_ += ahead.compute_ms;
  samples_ += ahead.samples;
  samples_at_s_ = ToSeconds(now);
  busy_until_ = now;
}

void Progress::OnPushed(int64_t round, TimeUs now) {
  pushed_ = now;
  busy_until_ = now;
  acknowledged_ = first_chunk_ = last_chunk_ = std::nullopt;
  round_ = round;
}

void Progress::OnChunk(TimeUs now) {
  if (!pushed_) return;
  if (!first_chunk_) first_chunk_ = now;
  last_chunk_ = now;
}

void Progress::OnVersion(int64_t round) {
  if (!pushed_ || std::exchange(begun_, round) == round) return;
  if (!first_chunk_) {  // it had arrived before the last block was pushed
    network_ms_ = coding_ms_;
    wait_ms_ = 0;
    return;
  }
  const auto milliseconds = [this](TimeUs from, TimeUs to) {
    const TimeUs shown = std::max(from, busy_until_);
    return to > shown ? static_cast<double>(to - shown) * 1e-3 : 0.0;
  };
  const TimeUs sent = acknowledged_.value_or(*pushed_);
  network_ms_ =
      coding_ms_ + milliseconds(*pushed_, sent) + milliseconds(*first_chunk_, *last_chunk_);
  wait_ms_ = milliseconds(sent, *first_chunk_);
}

void Progress::ForgetTimes() {
  pushed_ = acknowledged_ = first_chunk_ = last_chunk_ = std::nullopt;
  compute_ms_ = network_ms_ = wait_ms_ = std::nullopt;
}

void Progress::Report(wire::WorkerReport* report) const {
  report->set_round(round_);
  report->set_samples(samples_);
  report->set_samples_at_s(samples_at_s_);
  report->clear_compute_ms();
  report->clear_wait_ms();
  report->clear_network_ms();
  if (compute_ms_) report->set_compute_ms(*compute_ms_);
  if (wait_ms_) report->set_wait_ms(*wait_ms_);
  if (network_ms_) report->set_network_ms(*network_ms_);
}

}  // namespace kumo
