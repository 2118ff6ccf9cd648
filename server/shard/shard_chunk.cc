#include "server/shard/shard_chunk.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/job/buggify.h"
#include "server/protocol/messages.h"
#include "server/shard/subject.h"

namespace kumo {
namespace {

// Waiting contributions that are worth a pass over the running sum.
constexpr int kWorthAPass = 4;

}  // namespace

// --- The open round.

void OpenRound::Add(int partition, CodedContribution contribution) {
  if (waiting_.empty()) waiting_.resize(here_.size());
  waiting_[partition] = std::move(contribution);
  here_[partition] = true;
}

// Contributions that come next in partition order; 0 if they are too few for a pass of their own.
int OpenRound::CountReady() const {
  int ready = 0;
  int counting = 0;
  for (; added_ + ready < partitions() && here_[added_ + ready]; ++ready) {
    if (waiting_[added_ + ready].weight > 0) ++counting;
  }
  const bool closes = added_ + ready == partitions();
  return closes || (counting >= kWorthAPass && !relays_) ? ready : 0;
}

void OpenRound::MoveInto(ChunkWork* work, FloatArray* sum) {
  const int ready = CountReady();
  const bool closes = added_ + ready == partitions();
  for (int i = 0; i < ready; ++i) {
    CodedContribution next = std::exchange(waiting_[added_ + i], {});
    weight_ += next.weight;
    if (next.weight > 0) work->contributions.push_back(std::move(next));
  }
  work->sum_holds_contributions = added_ > 0;
  if (!closes && !*sum) *sum = MakeArray(work->elements);
  work->sum = !closes || added_ > 0 ? *sum : nullptr;
  added_ += ready;
}

bool OpenRound::empty() const { return std::ranges::count(here_, true) == 0; }

std::vector<int> OpenRound::Missing() const {
  std::vector<int> missing;
  for (int p = 0; p < partitions(); ++p) {
    if (!Has(p)) missing.push_back(p);
  }
  return missing;
}

// --- The chunk.

ShardChunk::ShardChunk(const Chunk& chunk, const RoundMath* math) : chunk_(chunk), math_(math) {
  OpenAt(0);
}

OpenRound& ShardChunk::OpenAt(int64_t round) {
  const JobPlan& plan = math_->plan();
  const bool relays = round < plan.rounds() && math_->policy().Relays(plan.Round(round), chunk_);
  return rounds_.try_emplace(round, math_->partitions(), relays).first->second;
}

bool ShardChunk::as_published() const {
  return !math_->plan().on_arrival() ||
         std::ranges::all_of(rounds_, [](const auto& round) { return round.second.empty(); });
}

const Version* ShardChunk::Find(int64_t version) const {
  if (version == version_ + 1) return frozen_.exists() ? &frozen_ : nullptr;
  if (version == version_ && weights_.exists()) return &weights_;
  const auto found = versions_.find(version);
  return found == versions_.end() ? nullptr : &found->second;
}

std::map<int64_t, Version> ShardChunk::Earlier() const {
  return {versions_.begin(), versions_.find(version_)};
}

// Versions that come from a checkpoint, from another server or from a worker. A coded start is not
// sent between servers, so it is made again here; that gives the same bytes, since coding a start
// uses no residual. Coded differences are not made again: those who ask get the copy as a whole.
Status ShardChunk::Begin(std::map<int64_t, Version> versions) {
  const int64_t newest = versions.rbegin()->first;
  for (auto& [number, version] : versions) {
    KUMO_RETURN_IF_ERROR(math_->CodeStart(chunk_, number, &version));
    if (number < newest) version.slots.clear();
  }
  version_ = newest;
  versions_ = std::move(versions);
  rounds_.clear();
  OpenAt(version_);
  if (math_->plan().on_arrival()) {
    applied_ = version_ * math_->partitions();
    MoveTo(versions_.at(version_));
  }
  return OkStatus();
}

Result<bool> ShardChunk::OnInitialise(const PeerName& from, const Message& message, bool leased,
                                      StepContext* context) {
  const auto bytes = message.payload.bytes;
  if (bytes.size() != chunk_.range.size() * sizeof(float)) {
    return InvalidArgument("initial weights of chunk " + std::to_string(chunk_.index) + " have " +
                           std::to_string(bytes.size()) + " bytes");
  }
  KUMO_RETURN_IF_ERROR(CheckFloats(bytes, chunk_.range.size()));
  const bool first = version_ < 0;
  if (first) {
    if (!leased) return NotLeased(message.header);
    KUMO_RETURN_IF_ERROR(Begin({{0, VersionOf({{Version::kStart, CopyFloats(bytes)}})}}));
  }
  context->Do(Acknowledgement(from, message.header));
  return first;
}

// The checks come in the order of their cost, and of what they need: the contribution is compared
// with the plan and decoded for a check only if it would count and is leased. A repeated push of
// an open round is still `held`: its sender, maybe another worker, keeps its copy too.
Result<bool> ShardChunk::OnPush(const PeerName& from, const Message& message, bool leased,
                                bool held, StepContext* context) {
  const wire::Header& header = message.header;
  const int partition = header.partition();
  if (partition < 0 || partition >= math_->partitions()) {
    return InvalidArgument(SubjectOf(header) + ": no such partition");
  }
  const JobPlan& plan = math_->plan();
  if (header.round() < 0 || header.round() >= plan.rounds() ||
      plan.BaseOf(header.round()) > version_) {
    return Aborted(SubjectOf(header) + ": the open round is " + std::to_string(version_));
  }
  const bool open = header.round() >= version_;
  const auto known = rounds_.find(header.round());
  const bool counts = open && (known == rounds_.end() || !known->second.Has(partition));
  if (counts) {
    if (!leased) return NotLeased(header);
    KUMO_ASSIGN_OR_RETURN(CodedContribution contribution, math_->Contribution(chunk_, message));
    OpenRound& round = OpenAt(header.round());
    if (plan.on_arrival()) {
      round.Note(partition);
      arrived_.push_back({header.round(), header.applied(), std::move(contribution)});
    } else {
      round.Add(partition, std::move(contribution));
    }
    if (header.save()) round.Save();
  }
  if (held && open) OpenAt(header.round()).Keeps(partition, from, header.request());
  if (!Buggify(RareWay::kPushNotAcknowledged)) {
    context->Do(Acknowledgement(from, header, held && open));
  }
  return counts;
}

std::shared_ptr<ChunkWork> ShardChunk::NextWork(bool freeze) {
  if (math_->plan().on_arrival()) return NextApplication();
  OpenRound& round = rounds_.begin()->second;
  if (computing_ || !round.ready()) return nullptr;
  auto work = std::make_shared<ChunkWork>();
  work->chunk = chunk_.index;
  work->round = version_;
  work->elements = chunk_.range.size();
  round.MoveInto(work.get(), &sum_);
  computing_ = true;
  if (!round.closing()) return work;
  // Every partition has contributed, so no chunk has an earlier round open than OldestOpen says of
  // the version that is made. The work writes into the arrays of a version that ends with this.
  Version ends;
  const auto kept = versions_.lower_bound(math_->plan().OldestKept(version_ + 1));
  for (auto version = versions_.begin(); version != kept; version = versions_.erase(version)) {
    if (version->first < version_) ends = std::move(version->second);
  }
  const Version& base = versions_.at(math_->plan().BaseOf(version_));
  math_->Close(chunk_, base, work.get(), &versions_.at(version_), &ends);
  work->info.weight = round.weight();
  work->freeze = freeze || round.saves();
  return work;
}

// A round may have all contributions when the one before closes: then a work without a contribution
// closes it.
std::shared_ptr<ChunkWork> ShardChunk::NextApplication() {
  const OpenRound& oldest = rounds_.begin()->second;
  const bool complete = oldest.closing();
  if (computing_ || (arrived_.empty() && !complete)) return nullptr;
  auto work = std::make_shared<ChunkWork>();
  work->chunk = chunk_.index;
  work->round = version_;
  work->elements = chunk_.range.size();
  int64_t round = version_;
  int64_t since = 0;
  if (!complete) {
    Arrived& next = arrived_.front();
    round = next.round;
    since = applied_ - std::clamp<int64_t>(next.started, 0, applied_);
    OpenAt(round).Apply();
    if (next.contribution.weight > 0) work->contributions.push_back(std::move(next.contribution));
    arrived_.pop_front();
    ++applied_;
  }
  computing_ = true;
  math_->Apply(chunk_, round, {.step = applied_, .since = since}, work.get(), &weights_, &spare_);
  work->ends_round = oldest.closing();
  work->freeze = work->ends_round && oldest.saves();
  return work;
}

void ShardChunk::MoveTo(Version weights) {
  in_weights_ = applied_;
  spare_ = std::exchange(weights_, std::move(weights));
  Version& published = versions_[version_];
  if (!published.exists() || math_->plan().EvaluatedEpoch(version_) < 0) published = weights_;
  published.slots.clear();
}

Result<bool> ShardChunk::OnComputed(const ChunkWork& work) {
  if (work.applies() && !work.ends_round) {
    KUMO_RETURN_IF_ERROR(math_->CheckFits(chunk_, version_ + 1, work.first_bad));
    MoveTo(work.next);
  }
  if (!work.closes()) {
    computing_ = false;
    return false;
  }
  KUMO_RETURN_IF_ERROR(math_->CheckFits(chunk_, version_ + 1, work.first_bad));
  next_ = work.next;
  frozen_ = work.frozen;
  return true;
}

// Keepers are released before the parked pulls are answered (by the caller): a worker that gets the
// version has no reason to keep its contribution.
std::optional<Version> ShardChunk::Publish(StepContext* context) {
  wire::Header header;
  header.set_type(wire::PUSH);
  header.set_chunk(chunk_.index);
  header.set_round(version_);
  OpenRound& round = rounds_.begin()->second;
  const bool saves = round.saves();
  for (const auto& [keeper, request] : round.Close()) {
    header.set_partition(keeper.first);
    header.set_request(request);
    context->Do(Acknowledgement(keeper.second, header));
  }
  rounds_.erase(rounds_.begin());
  OpenAt(version_ + 1);
  versions_.at(version_).slots.clear();  // they went on with the next version
  versions_[++version_] = next_;
  if (math_->plan().on_arrival()) {
    versions_.erase(versions_.begin(), versions_.find(version_));
    MoveTo(next_);
  }
  next_ = {};
  computing_ = false;
  Version frozen = std::exchange(frozen_, {});
  if (!saves) return std::nullopt;
  return frozen;
}

Status ShardChunk::OnPull(const PeerName& from, const wire::Header& header,
                          const Directive& directive, StepContext* context) {
  const int64_t version = header.round();
  if (header.vector() != wire::START && header.vector() != wire::WEIGHTS) {
    return InvalidArgument("pull of an unknown vector " + std::to_string(header.vector()));
  }
  const JobPlan& plan = math_->plan();
  if (version < 0 || version > plan.rounds() ||
      plan.ToldWith(version) > version_ + 1 + plan.delay()) {
    return Aborted("pull of version " + std::to_string(version) + " of chunk " +
                   std::to_string(header.chunk()) + ", which is at version " +
                   std::to_string(version_));
  }
  const ParkedPull pull{from,
                        header.vector(),
                        header.request(),
                        version,
                        header.has_base() ? header.base() : -1,
                        header.wait() ? version : plan.ToldWith(version),
                        applied_ + std::ssize(arrived_)};
  if (IsDue(pull)) {
    Answer(pull, directive, context);
    return OkStatus();
  }
  const auto same = [&](const ParkedPull& parked) {
    return parked.peer == pull.peer && parked.vector == pull.vector;
  };
  if (const auto parked = std::ranges::find_if(parked_, same); parked != parked_.end()) {
    // A repeated pull does not wait for what has come meanwhile.
    const bool repeated = parked->version == pull.version;
    const int64_t after = repeated ? parked->after : pull.after;
    *parked = pull;
    parked->after = after;
  } else {
    parked_.push_back(pull);
  }
  return OkStatus();
}

void ShardChunk::AnswerParked(const DirectiveOf& directive, StepContext* context) {
  std::erase_if(parked_, [&](const ParkedPull& pull) {
    if (!IsDue(pull)) return false;
    Answer(pull, directive(pull.version), context);
    return true;
  });
}

// For a worker that asks for a version that is gone, since it was left behind (frozen, for
// example): the oldest round that may be open somewhere and whose base is here.
int64_t ShardChunk::OldestRoundToCompute() const {
  const JobPlan& plan = math_->plan();
  int64_t round = plan.OldestOpen(version_);
  if (plan.on_arrival()) return round;
  while (round < version_ && !versions_.contains(plan.BaseOf(round))) ++round;
  return round;
}

// A worker that pulls gets its own contributions, since they arrived before.
bool ShardChunk::IsDue(const ParkedPull& pull) const {
  if (pull.least > version_) return false;
  return !math_->plan().on_arrival() || pull.after <= applied_ - (computing_ ? 1 : 0);
}

// On arrival a round starts from the weights as they are, but an epoch's first version is evaluated
// as it was published.
const Version* ShardChunk::VersionFor(int64_t pulled) const {
  const auto found = versions_.find(pulled);
  if (found != versions_.end()) return &found->second;
  const bool may_be_open = pulled >= math_->plan().OldestOpen(version_);
  return weights_.exists() && may_be_open ? &weights_ : nullptr;
}

void ShardChunk::Answer(const ParkedPull& pull, const Directive& directive,
                        StepContext* context) const {
  const int64_t version = pull.version;
  const Version* const asked = VersionFor(version);
  SendAction reply;
  reply.to = pull.peer;
  wire::Header& header = reply.message.header;
  header.set_chunk(chunk_.index);
  header.set_vector(pull.vector);
  header.set_request(pull.request);
  if (!asked) {
    header.set_type(wire::GONE);
    header.set_round(OldestRoundToCompute());
    context->Do(std::move(reply));
    return;
  }
  if (Buggify(RareWay::kAnswerDropped)) return;
  header.set_type(wire::CHUNK);
  header.set_round(version);
  if (math_->plan().on_arrival()) {
    const bool as_published = asked->start != weights_.start;
    header.set_applied(as_published ? version * math_->partitions() : in_weights_);
  }
  const JobPlan& plan = math_->plan();
  const RoundPolicy& policy = math_->policy();
  const Codec* codec = asked->coded ? policy.PullCodec(chunk_.segment) : nullptr;
  if (const auto relay = policy.RelayOf(plan, version, chunk_); asked->coded && relay) {
    codec = relay->codec;
  }
  // The last version with other numbers, from which a change is told.
  const int64_t before = plan.NumbersSince(version, chunk_) - 1;
  if (plan.SameNumbers(pull.base, version, chunk_)) {  // the peer has these numbers
    header.set_codec(static_cast<uint32_t>(CodecId::kFp32));
    header.set_base(pull.base);
  } else if (pull.vector == wire::START && codec != nullptr &&
             (!policy.pulls_changes() || plan.SameNumbers(pull.base, before, chunk_))) {
    header.set_codec(static_cast<uint32_t>(codec->id()));
    if (policy.pulls_changes()) header.set_base(pull.base);
    reply.message.payload = {asked->coded, std::as_const(*asked->coded).span()};
  } else {
    header.set_codec(static_cast<uint32_t>(CodecId::kFp32));
    reply.message.payload = BytesOf(pull.vector == wire::START ? asked->copy() : asked->weights);
  }
  header.set_save(directive.save);
  header.set_stop(directive.stop);
  header.set_move(directive.move);
  context->Do(std::move(reply));
}

void ShardChunk::Forget(const PeerName& peer) {
  std::erase_if(parked_, [&](const ParkedPull& pull) { return pull.peer == peer; });
}

}  // namespace kumo
