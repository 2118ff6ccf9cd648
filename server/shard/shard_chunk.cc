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
  arrived_[partition] = std::move(contribution);
}

// Contributions that come next in partition order; 0 if they are too few for a pass of their own.
int OpenRound::CountReady() const {
  int ready = 0;
  int with_samples = 0;
  for (; added_ + ready < partitions() && arrived_[added_ + ready]; ++ready) {
    if (arrived_[added_ + ready]->samples > 0) ++with_samples;
  }
  const bool closes = added_ + ready == partitions();
  return closes || with_samples >= kWorthAPass ? ready : 0;
}

void OpenRound::MoveInto(ChunkWork* work) {
  const int ready = CountReady();
  const bool closes = added_ + ready == partitions();
  for (int i = 0; i < ready; ++i) {
    auto& arrived = arrived_[added_ + i];
    if (arrived->samples > 0) work->contributions.push_back(std::move(*arrived));
    arrived.reset();
  }
  work->sum_holds_contributions = added_ > 0;
  if (!closes && !sum_) sum_ = MakeArray(work->elements);
  work->sum = !closes || added_ > 0 ? sum_ : nullptr;
  added_ += ready;
}

std::vector<int> OpenRound::Missing() const {
  std::vector<int> missing;
  for (int p = added_; p < partitions(); ++p) {
    if (!arrived_[p]) missing.push_back(p);
  }
  return missing;
}

OpenRound::Keepers OpenRound::Close() {
  added_ = 0;
  save_ = false;
  return std::exchange(keepers_, {});
}

// --- The chunk.

ShardChunk::ShardChunk(const Chunk& chunk, const RoundMath* math)
    : chunk_(chunk), math_(math), round_(math->partitions()) {}

const Version* ShardChunk::Find(int64_t version) const {
  const Version* found = nullptr;
  if (version == version_ + 1) found = &frozen_;
  if (version == version_) found = &current_;
  if (version == version_ - 1) found = &previous_;
  return found && found->exists() ? found : nullptr;
}

// Versions that come from a checkpoint, from another server or from a worker. A coded start is not
// sent between servers, so it is made again here; that gives the same bytes, since coding a start
// uses no residual. Coded differences are not made again: those who ask get the copy as a whole.
Status ShardChunk::Begin(int64_t version, Version current, Version previous) {
  KUMO_RETURN_IF_ERROR(math_->CodeStart(chunk_, version, &current));
  if (previous.exists()) {
    KUMO_RETURN_IF_ERROR(math_->CodeStart(chunk_, version - 1, &previous));
  }
  version_ = version;
  current_ = std::move(current);
  previous_ = std::move(previous);
  previous_.slots.clear();  // no round starts from the previous version
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
    KUMO_RETURN_IF_ERROR(Begin(0, VersionOf({{Version::kStart, CopyFloats(bytes)}}), {}));
  }
  context->Do(Acknowledgement(from, message.header));
  return first;
}

// The checks come in the order of their cost, and of what they need: the contribution is compared
// with the plan and decoded for a check only if it would count and is leased. A repeated push of
// the open round is still `held`: its sender, maybe another worker, keeps its copy too.
Result<bool> ShardChunk::OnPush(const PeerName& from, const Message& message, bool leased,
                                bool held, StepContext* context) {
  const wire::Header& header = message.header;
  const int partition = header.partition();
  if (partition < 0 || partition >= math_->partitions()) {
    return InvalidArgument(SubjectOf(header) + ": no such partition");
  }
  if (header.round() > version_ || header.round() < 0 || header.round() >= math_->plan().rounds()) {
    return Aborted(SubjectOf(header) + ": the open round is " + std::to_string(version_));
  }
  const bool open = header.round() == version_;
  const bool counts = open && !round_.Has(partition);
  if (counts) {
    if (!leased) return NotLeased(header);
    KUMO_ASSIGN_OR_RETURN(CodedContribution contribution, math_->Contribution(chunk_, message));
    round_.Add(partition, std::move(contribution));
    if (header.save()) round_.Save();
  }
  if (held && open) round_.Keeps(partition, from, header.request());
  if (!Buggify(RareWay::kPushNotAcknowledged)) {
    context->Do(Acknowledgement(from, header, held && open));
  }
  return counts;
}

std::shared_ptr<ChunkWork> ShardChunk::NextWork(bool freeze) {
  if (computing_ || !round_.ready()) return nullptr;
  auto work = std::make_shared<ChunkWork>();
  work->chunk = chunk_.index;
  work->round = version_;
  work->elements = chunk_.range.size();
  round_.MoveInto(work.get());
  computing_ = true;
  if (!round_.closing()) return work;
  // Every partition has contributed, so none needs the previous version: the work writes into its
  // arrays from now on.
  math_->Close(chunk_, work.get(), &current_, &previous_);
  work->freeze = freeze || round_.saves();
  return work;
}

Result<bool> ShardChunk::OnComputed(const ChunkWork& work) {
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
  const bool saves = round_.saves();
  for (const auto& [keeper, request] : round_.Close()) {
    header.set_partition(keeper.first);
    header.set_request(request);
    context->Do(Acknowledgement(keeper.second, header));
  }
  ++version_;
  computing_ = false;
  previous_ = std::exchange(current_, std::exchange(next_, {}));
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
  if (version < 0 || version > version_ + 1 || version > math_->plan().rounds()) {
    return Aborted("pull of version " + std::to_string(version) + " of chunk " +
                   std::to_string(header.chunk()) + ", which is at version " +
                   std::to_string(version_));
  }
  const ParkedPull pull{from, header.vector(), header.request(),
                        header.has_base() ? header.base() : -1};
  if (version <= version_) {
    Answer(pull, version, directive, context);
    return OkStatus();
  }
  const auto same = [&](const ParkedPull& parked) {
    return parked.peer == pull.peer && parked.vector == pull.vector;
  };
  if (const auto parked = std::ranges::find_if(parked_, same); parked != parked_.end()) {
    *parked = pull;
  } else {
    parked_.push_back(pull);
  }
  return OkStatus();
}

void ShardChunk::AnswerParked(const Directive& directive, StepContext* context) {
  for (const ParkedPull& pull : std::exchange(parked_, {}))
    Answer(pull, version_, directive, context);
}

// GONE names the oldest version that is here, so that a worker which was left behind (frozen, for
// example) goes on from there.
void ShardChunk::Answer(const ParkedPull& pull, int64_t version, const Directive& directive,
                        StepContext* context) const {
  const Version* const asked = Find(version);
  SendAction reply;
  reply.to = pull.peer;
  wire::Header& header = reply.message.header;
  header.set_chunk(chunk_.index);
  header.set_vector(pull.vector);
  header.set_request(pull.request);
  if (!asked) {
    header.set_type(wire::GONE);
    header.set_round(Find(version_ - 1) ? version_ - 1 : version_);
    context->Do(std::move(reply));
    return;
  }
  if (Buggify(RareWay::kAnswerDropped)) return;
  header.set_type(wire::CHUNK);
  header.set_round(version);
  const Codec* const codec = asked->coded ? math_->policy().PullCodec(chunk_.segment) : nullptr;
  const bool difference = codec != nullptr && !codec->codes_weights();
  if (chunk_.frozen() && pull.base >= 0) {  // the peer has these numbers
    header.set_codec(static_cast<uint32_t>(CodecId::kFp32));
    header.set_base(pull.base);
  } else if (pull.vector == wire::START && codec != nullptr &&
             (!difference || pull.base == version - 1)) {
    header.set_codec(static_cast<uint32_t>(codec->id()));
    if (difference) header.set_base(pull.base);
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
