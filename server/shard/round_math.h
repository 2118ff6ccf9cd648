// Round mathematics: which contributions are valid, how a round and a version make the next
// version, and how pulls deliver it. A function of the experiment's result settings only; it does
// not know which messages have arrived.
//
// Immutable; thread-safe. Owned by a Shard.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "common/base/status.h"
#include "common/codec/codec.h"
#include "common/job/job_identity.h"
#include "common/job/job_plan.h"
#include "common/job/metric_list.h"
#include "common/job/parameter_layout.h"
#include "common/job/round_policy.h"
#include "common/job/shard_map.h"
#include "common/optimiser/optimiser.h"
#include "common/optimiser/schedule.h"
#include "common/settings/experiment.h"
#include "common/transport/message.h"
#include "server/protocol/chunk_work.h"
#include "server/protocol/version.h"
#include "server/rules/rule.h"

namespace kumo {

class RoundMath {
 public:
  // For the chunks of one server. The errors of Schedule::Make.
  static Result<RoundMath> Make(const Experiment& experiment, const JobPlan& plan,
                                const JobSpec& spec, const ShardMap& map, int server);

  const JobPlan& plan() const { return plan_; }
  int partitions() const { return plan_.settings().partitions; }
  const RoundPolicy& policy() const { return policy_; }

  // The contribution to a chunk in a PUSH, whose round and partition are within the plan.
  // InvalidArgument if samples, codec, length or elements do not fit the round.
  Result<CodedContribution> Contribution(const Chunk& chunk, const Message& push) const;
  // Completes the work that has all contributions of its round, so that it makes the next version.
  // base: the version that they were computed from, maybe `current`.
  // If the chunk takes no part in the round, the next version shares all arrays with `current`, and
  // nothing is computed.
  // Otherwise takes the slots of `current`, and takes `previous` apart: its arrays become those of
  // the next version unless another holder still reads them. Requires that `current` exists.
  void Close(const Chunk& chunk, const Version& base, ChunkWork* work, Version* current,
             Version* previous) const;
  // Completes the work that applies one contribution on arrival, to a round, or none: then the next
  // weights share all arrays with `current`. Otherwise as Close.
  struct Arrival {
    int64_t step = 1;   // contributions that the chunk has taken, this one included
    int64_t since = 0;  // of them, those since the weights that this one was computed from
  };
  void Apply(const Chunk& chunk, int64_t round, const Arrival& arrival, ChunkWork* work,
             Version* current, Version* previous) const;
  // Makes a version's coded start, if pulls are coded and do not tell differences. Errors of
  // CheckFits.
  Status CodeStart(const Chunk& chunk, int64_t number, Version* version) const;
  // FailedPrecondition, naming version and tensor, if the pull codec cannot hold the element at
  // first_bad of a version's start; -1: it holds all elements.
  Status CheckFits(const Chunk& chunk, int64_t number, int64_t first_bad) const;

 private:
  RoundMath() = default;
  // The next version has the numbers of `current`.
  void Share(const RoundPlan& round, const Chunk& chunk, ChunkWork* work, Version* current) const;
  // `round`: whose samples the contributions are of. trained: samples of the job up to its end.
  // base: as of Close.
  void Step(const RoundPlan& round, int64_t trained, const Chunk& chunk, const Version& base,
            ChunkWork* work, Version* current, Version* previous) const;
  const std::shared_ptr<const Rule>& RuleFor(const RoundPlan& round, Segment segment) const;

  JobPlan plan_;
  RoundPolicy policy_;
  ParameterLayout layout_;
  MetricList metrics_;
  float weight_decay_ = 0.0f;  // of the decayed segment, in gradient mode
  float block_decay_ = 0.0f;   // of the decayed segment, of the block rule
  bool corrects_staleness_ = false;
  double average_samples_ = 0;  // time constant of the moving average; 0: none
  bool stream_ = false;
  std::optional<Schedule> schedule_, block_schedule_;
  // Shared, since work under way may outlive the shard.
  std::shared_ptr<const Rule> gradient_rule_, block_rule_, average_rule_;
};

// The arrays of the version after `current`, for a rule to write, and the slots that go on with it,
// as many as the rule has. step: of the round in its mode (RoundPlan::step); at step 1 the rule's
// state begins as zeros, and slots of an earlier rule are dropped. worker_copy: workers hold other
// numbers than the start. `current` keeps all but the slots; `previous` ends. Requires that
// `current` exists.
Version NextArrays(const Rule& rule, int64_t step, bool worker_copy, Version* current,
                   Version* previous);

}  // namespace kumo
