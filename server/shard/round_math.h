// The mathematics of a job's rounds: which contributions are right, what a round's contributions
// and a version make, and what the readers get of it. A function of the experiment's result
// settings alone; which messages have come is none of its business.
//
// Immutable; thread-safe. Owned by a Shard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "common/base/status.h"
#include "common/codec/codec.h"
#include "common/job/job_identity.h"
#include "common/job/job_plan.h"
#include "common/job/metric_list.h"
#include "common/job/parameter_layout.h"
#include "common/job/shard_map.h"
#include "common/optimiser/optimiser.h"
#include "common/optimiser/schedule.h"
#include "common/settings/experiment.h"
#include "common/transport/message.h"
#include "server/protocol/version.h"
#include "server/rules/rule.h"
#include "server/shard/chunk_work.h"

namespace kumo {

// The sections of an experiment that the mathematics depends on.
struct RoundSettings {
  BlockRuleSettings block;
  OptimiserSettings optimiser;
  ScheduleSettings schedule;
  Experiment::Sync sync;
};

class RoundMath {
 public:
  // shard_bytes: float32 bytes of all chunks that are worked on together. Errors name the setting
  // that is wrong.
  static Result<RoundMath> Make(const RoundSettings& settings, const JobPlan& plan,
                                const JobSpec& spec, int64_t shard_bytes);

  const JobPlan& plan() const { return plan_; }
  int partitions() const { return plan_.settings().partitions; }
  // The codec that a segment's start goes to the readers in; null: float32.
  const Codec* PullCodec(Segment segment) const;

  // The contribution to a chunk that a PUSH brings. Its round and partition must be ones of the
  // plan. InvalidArgument where samples, codec, length or numbers are not what the round wants.
  Result<CodedContribution> Contribution(const Chunk& chunk, const Message& push) const;
  // Adds to a work that has all contributions of its round what makes the next version.
  void Close(const Chunk& chunk, ChunkWork* work, Version* current, Version* previous) const;
  // Makes a version's coded start, where the readers get one. FailedPrecondition as CheckFits.
  Status CodeStart(const Chunk& chunk, int64_t number, Version* version) const;
  // Whether the codec for the readers can hold a version's start, of which it could not hold the
  // number at first_bad (-1: it holds them all). FailedPrecondition names version and tensor.
  Status CheckFits(const Chunk& chunk, int64_t number, int64_t first_bad) const;

 private:
  RoundMath() = default;
  const std::shared_ptr<const Rule>& RuleFor(const RoundPlan& round, Segment segment) const;

  JobPlan plan_;
  ParameterLayout layout_;
  MetricList metrics_;
  float weight_decay_ = 0.0f;  // of the decayed segment
  bool stream_ = false;
  std::optional<Schedule> schedule_;
  // Work under way may outlive the shard.
  std::shared_ptr<const Rule> gradient_rule_, block_rule_, average_rule_;
  PushCodecs push_codecs_;
  const Codec* pull_codec_ = nullptr;  // null: float32
};

}  // namespace kumo
