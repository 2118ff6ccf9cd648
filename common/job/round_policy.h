// Round policy: the shape of a job's rounds. For a round: the contributions of partitions, the
// codecs of pushes and pulls, and the evaluated weights. For the job: the arrays of a version, and
// the arrays that a partition carries. A pure function of the experiment: servers, workers,
// checkpoints, memory figures and the simulation ask it, and not sync.mode.
//
// Which samples a round trains on is the job plan's (job_plan.h). The functions that make a plan or
// a shard map of an experiment (job_identity.h), and notes on settings, ask for sync.mode.
//
// Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/codec/codec.h"
#include "common/job/job_plan.h"
#include "common/job/parameter_layout.h"
#include "common/job/shard_map.h"
#include "common/settings/experiment.h"

namespace kumo {

// Arrays that a partition carries from round to round for each trained chunk, numbered in the order
// of the fields. Each is as long as the chunk.
struct CarriedArrays {
  int residual = 0;  // of the push codec's error feedback: 0 or 1
  // Way of the partition's own weights from the servers' weights (JobPlan): 0 or 1.
  int way = 0;
  // Slots of the local optimiser, if its state is kept from round to round.
  int optimiser_slots = 0;

  int count() const { return residual + way + optimiser_slots; }
  int first_slot() const { return residual + way; }
  bool operator==(const CarriedArrays&) const = default;
};

// Form in which a pull carries the change of the weights by a round.
enum class PullForm {
  kWeights,     // the weights, as float32 or in a codec that holds them
  kDifference,  // how the workers' copy of the weights has moved, in a codec
  kRelay,       // the round's coded contributions; workers apply the update rule themselves
};

// The contributions that a pull relays, one code behind the other in partition order.
struct Relay {
  const Codec* codec = nullptr;
  std::vector<int64_t> samples = {};  // of each contribution; those without samples are not there
  int64_t round_samples = 0;          // their sum

  size_t EncodedBytes(size_t numbers) const {
    return samples.size() * codec->EncodedBytes(numbers);
  }
};

// Bytes of an exchange of all trained chunks.
struct ExchangeBytes {
  int64_t push = 0;  // of a partition's contribution
  int64_t pull = 0;  // of the next version, to a worker that has the one before
};

class RoundPolicy {
 public:
  RoundPolicy() = default;
  // Without a map and its layout for all but PushCodec in a codec of tensors, and the chunks that
  // are too small to be relayed.
  explicit RoundPolicy(const Experiment& experiment);
  RoundPolicy(const Experiment& experiment, const ParameterLayout& layout, const ShardMap& map);

  // --- A round.

  // Codec of a contribution to a chunk of the map. Workers encode with it; shards refuse a
  // contribution in another one.
  const Codec& PushCodec(const RoundPlan& round, const Chunk& chunk) const;
  // Codec of pulls of the version that the round makes; null: float32, or the round is relayed.
  const Codec* PullCodec(const RoundPlan& round, Segment segment) const;
  // Whether pulls relay the contributions to a segment: w' = w - sum_i samples_i c_i / samples, in
  // float32, the sum in partition order, as rule `average` has it, so with the servers' bits.
  bool Relays(const RoundPlan& round, Segment segment) const {
    return form_ == PullForm::kRelay && round.local_steps && segment != Segment::kStatistics;
  }
  // The same for a chunk of the map: it is pulled as float32 if that is fewer bytes, as it is if
  // the chunk has pieces of many small tensors. So no message is longer than a chunk.
  bool Relays(const RoundPlan& round, const Chunk& chunk) const {
    return Relays(round, chunk.segment) && (relays_ == nullptr || relays_->at(chunk.index));
  }
  // Whether contributions to a segment may have other weights in the round's mean than their
  // samples, as a loss has that divides by something else (Trainer). Not if workers average
  // them, if they are applied on arrival, or if a contribution is of more than a round's steps.
  bool MayWeigh(const RoundPlan& round, Segment segment) const {
    return may_weigh_ && !Relays(round, segment) && segment != Segment::kStatistics;
  }
  // Context for encoding a partition's contribution to a chunk; it accepts any finite number.
  EncodeContext PushContext(const RoundPlan& round, int partition, const Range& chunk) const;
  // Context for encoding the pulls of a version of a chunk, likewise.
  EncodeContext PullContext(int64_t version, const Range& chunk) const;
  // Bytes of the exchange of all trained chunks in the codecs of `round`; with fragments a round
  // exchanges a part of them. chunks: of the map.
  ExchangeBytes BytesOf(const RoundPlan& round, std::span<const Chunk> chunks,
                        int partitions) const;
  // Whether the servers keep two weights in the version that the round makes: the start of the next
  // round and the evaluated weights.
  bool KeepsWeightsApart(const RoundPlan& round) const { return KeepsApart(round.local_steps); }
  // Whether workers evaluate other weights in that version than the next round starts from.
  bool EvaluatesApart(const RoundPlan& round) const {
    return pulls_differences() || KeepsWeightsApart(round);
  }

  // --- All rounds.

  // Codec of pulls of a segment outside a warm-up; null: float32, or rounds are relayed.
  const Codec* PullCodec(Segment segment) const;
  PullForm pull_form() const { return form_; }
  // The contributions that have made the chunk's numbers of `version`, for pulls by workers with
  // the numbers before; nullopt: they are not relayed.
  std::optional<Relay> RelayOf(const JobPlan& plan, int64_t version, const Chunk& chunk) const;
  // The codec of a pull by its number: sync.pull_codec or float32; null: another one.
  const Codec* FindPullCodec(uint32_t id) const;
  // Whether pulls say how the weights have moved, so that workers hold a copy that differs from
  // the servers' weights by the codec's loss.
  bool pulls_differences() const { return form_ == PullForm::kDifference; }
  // Whether pulls tell a change from the version before: a difference or a relay.
  bool pulls_changes() const { return form_ != PullForm::kWeights; }
  // As EvaluatesApart, for a round of any kind that the job has.
  bool evaluates_apart() const;
  // Whether some rounds have local steps whose optimiser starts each block without state.
  bool resets_local_state() const { return local_steps_ && resets_; }
  // Whether this state ends with the block, so that the partitions of a worker share its arrays.
  bool shares_local_state() const { return local_steps_ && carried_.optimiser_slots == 0; }
  const CarriedArrays& carried() const { return carried_; }
  // Share of a partition's own weights in the weights that it continues from after an exchange.
  float local_share() const { return local_share_; }
  // Vectors of weights in a version, and slots of the update rule: the most of any round.
  int version_vectors() const;
  int rule_slots() const { return rule_slots_; }
  // Versions of a chunk that a server keeps, and of a checkpoint within an epoch, at most.
  int kept_versions() const { return kept_versions_; }
  int saved_versions() const { return saved_versions_; }

 private:
  bool KeepsApart(bool local_steps) const {
    return averages_weights_ || (local_steps && block_keeps_apart_);
  }

  void MakePushCodecs(const ParameterLayout& layout, const ShardMap& map);

  uint64_t seed_ = 0;
  bool local_steps_ = false;  // of some rounds
  bool resets_ = false;
  const Codec* push_codec_ = nullptr;
  bool may_weigh_ = true;
  // By chunk; null: push_codec_.
  std::shared_ptr<const std::vector<std::unique_ptr<const Codec>>> push_codecs_;
  std::shared_ptr<const std::vector<bool>> relays_;  // by chunk, unless null: all
  const Codec* pull_codec_ = nullptr;                // null: float32
  PullForm form_ = PullForm::kWeights;
  bool averages_weights_ = false;
  bool block_keeps_apart_ = false;
  CarriedArrays carried_;
  float local_share_ = 0;
  int rule_slots_ = 0;
  int kept_versions_ = 2;
  int saved_versions_ = 1;
};

}  // namespace kumo
