#include "common/checkpoint/continuation.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/checkpoint/manifest.h"
#include "common/checkpoint/relocation.h"
#include "common/job/job_identity.h"
#include "common/job/job_plan.h"
#include "common/job/round_policy.h"
#include "common/optimiser/optimiser.h"
#include "common/settings/option_table.h"

namespace kumo {
namespace {

constexpr char kOtherSamples[] = "the rounds so far would have had other samples";
constexpr char kFreshMoments[] =
    "Adam's moments would start at zero in the middle of their bias correction";

bool Has(const SettingChange& change, Effect effect) {
  const Option* const option = OptionTable::Shared().Find(change.key);
  return option != nullptr && option->Has(effect);
}

// The state that a version carries besides its weights.
struct Carried {
  // The meaning of the arrays in a word: equal words, equal meaning. "": there are none.
  std::string_view rule;
  std::string_view local;      // of a partition's optimiser, if its state is kept between blocks
  std::string_view slots;      // of a partition's optimiser slots, also if each block resets them
  CarriedArrays arrays;        // of a partition
  bool block_moments = false;  // `rule` are moments of a block rule that corrects their bias
  bool apart = false;          // the rule keeps what blocks start from, and the weights
  bool averaged = false;       // what is evaluated is a moving average of the weights
  bool copies = false;         // workers hold a copy of their own
  int partitions = 1;
};

Carried CarriedBy(const Experiment& e, const RoundPlan& last) {
  Carried carried;
  const RoundPolicy policy(e);
  const std::string_view optimiser = TraitsOf(e.optimiser.type).state;
  carried.rule = last.local_steps ? TraitsOf(e.block).state : optimiser;
  carried.block_moments = last.local_steps && TraitsOf(e.block).takes_moments;
  carried.arrays = policy.carried();
  if (carried.arrays.optimiser_slots > 0) carried.slots = optimiser;
  if (!policy.resets_local_state()) carried.local = carried.slots;
  carried.apart = last.local_steps && TraitsOf(e.block).keeps_weights_apart;
  carried.averaged = e.evaluation.average_samples > 0;
  carried.copies = policy.pulls_differences();
  carried.partitions = e.sync.partitions;
  return carried;
}

// Settings and plan of a checkpoint, and the present ones.
struct Comparison {
  Experiment then;
  JobPlan plan_then, plan_now;
  RoundPlan last_then, last_now;  // the round that made the version
  Carried carried_then, carried_now;
  OptimiserTraits optimiser_now;
  bool other_fragments = false;  // fragments are other numbers
};

JobSpec SizesOf(const checkpoint::Manifest& manifest) {
  JobSpec spec;
  spec.train_samples = manifest.train_samples();
  spec.validation_samples = manifest.validation_samples();
  return spec;
}

// FailedPrecondition if the new plan has no such version.
Result<Comparison> Compare(const checkpoint::Manifest& manifest, const Experiment& now) {
  Comparison c;
  KUMO_ASSIGN_OR_RETURN(c.then, ExperimentOfText(manifest.experiment_text()));
  KUMO_ASSIGN_OR_RETURN(c.plan_then, PlanFor(c.then, SizesOf(manifest)));
  KUMO_ASSIGN_OR_RETURN(c.plan_now, PlanFor(now, SizesOf(manifest)));
  const int64_t version = manifest.version();
  if (version < 1 || version > c.plan_then.rounds()) {
    return DataLoss("checkpoint " + manifest.name() + " is of no round of its experiment");
  }
  c.last_then = c.plan_then.Round(version - 1);
  if (c.plan_then.SamplesAt(version) > c.plan_now.samples()) {
    return FailedPrecondition("job.epochs = " + std::to_string(now.job.epochs) + ": " +
                              std::to_string(c.plan_then.SamplesAt(version)) +
                              " samples were trained already, more than these " +
                              std::to_string(c.plan_now.samples()) + "; set it higher");
  }
  if (version > c.plan_now.rounds()) {
    std::string changes;
    for (const SettingChange& change : SettingChanges(manifest.experiment_text(), now)) {
      if (!Has(change, Effect::kRounds) && !Has(change, Effect::kMode)) continue;
      changes += (changes.empty() ? "" : ", ") + DescribeChange(change);
    }
    return FailedPrecondition(changes + ": " + kOtherSamples);
  }
  c.last_now = c.plan_now.Round(version - 1);
  c.carried_then = CarriedBy(c.then, c.last_then);
  c.carried_now = CarriedBy(now, c.last_now);
  c.optimiser_now = TraitsOf(now.optimiser.type);
  c.other_fragments =
      c.plan_now.settings().fragments > 1 && c.then.sync.ChunkUnit() != now.sync.ChunkUnit();
  return c;
}

bool SameUntilNow(const Comparison& c, int64_t version) {
  return c.plan_then.SamplesAt(version) == c.plan_now.SamplesAt(version) &&
         c.last_then.local_steps == c.last_now.local_steps && c.last_then.step == c.last_now.step &&
         c.last_then.full_precision == c.last_now.full_precision &&
         c.last_then.epoch == c.last_now.epoch;
}

// Whether the arrays are now moments of an optimiser that corrects their bias, as Adam does.
using Words = std::string_view Carried::*;
bool AreMoments(const Comparison& c, Words what) {
  return c.optimiser_now.corrects_bias && c.carried_now.*what == c.optimiser_now.state;
}

// The changes that are not allowed, one sentence each.
class Refusals {
 public:
  Refusals(const checkpoint::Manifest& manifest, const Comparison& c,
           const std::vector<SettingChange>& changes)
      : manifest_(manifest), c_(c), changes_(changes) {}

  std::vector<std::string> Collect() {
    Refuse(Effect::kData, "the samples must keep their form");
    Refuse(Effect::kMode, "rounds of one mode do not continue in the other");
    if (!SameUntilNow(c_, manifest_.version())) {
      Refuse(Effect::kRounds, kOtherSamples);
      if (refused_.empty()) refused_.emplace_back(kOtherSamples);
    }
    if (!c_.last_then.ends_epoch) {
      Refuse(Effect::kOrder, "it changes the current epoch; continue from the end of an epoch");
      if (c_.other_fragments) {
        refused_.emplace_back(
            "with other codecs the fragments are cut at other places; continue from the end of an "
            "epoch");
      }
    }
    const bool keeps_local = AreMoments(c_, &Carried::local) && Same(&Carried::local);
    if (keeps_local || (AreMoments(c_, &Carried::rule) && Same(&Carried::rule))) {
      Refuse(Effect::kMomentDecay, kOldMean);
    }
    if (c_.carried_now.block_moments) {
      if (Same(&Carried::rule)) {
        Refuse(Effect::kBlockMomentDecay, kOldMean);
      } else {
        Refuse(Effect::kBlockMoments, kFreshMoments);
      }
    }
    if (keeps_local) {
      Refuse(Effect::kStepCount, "the bias correction of Adam's moments counts steps by it");
    }
    RefuseFreshMoments();
    return std::move(refused_);
  }

 private:
  static constexpr char kOldMean[] = "Adam's moments are means with the old value";

  bool Same(Words what) const { return c_.carried_then.*what == c_.carried_now.*what; }

  void Refuse(Effect effect, const std::string& why) {
    for (const SettingChange& change : changes_) {
      if (Has(change, effect)) refused_.push_back(DescribeChange(change) + ": " + why);
    }
  }

  // The correction of the bias counts from the first round on.
  void RefuseFreshMoments() {
    const bool rule = AreMoments(c_, &Carried::rule) && !Same(&Carried::rule);
    const bool local =
        AreMoments(c_, &Carried::local) &&
        (!Same(&Carried::local) || c_.carried_then.partitions != c_.carried_now.partitions);
    if (rule || local) Refuse(Effect::kAnyMoments, kFreshMoments);
    if (local) Refuse(Effect::kLocalMoments, kFreshMoments);
  }

  const checkpoint::Manifest& manifest_;
  const Comparison& c_;
  const std::vector<SettingChange>& changes_;
  std::vector<std::string> refused_;
};

// State that starts at zero, or differs from the state that was carried.
std::vector<std::string> NotesOf(const Carried& then, const Carried& now) {
  std::vector<std::string> notes;
  if (!then.rule.empty() && then.rule != now.rule) {
    notes.emplace_back("the servers' state of the optimiser or update rule is dropped");
  }
  if (then.apart && !now.apart && !then.averaged) {
    notes.emplace_back("blocks start from the weights that were evaluated");
  }
  if (then.averaged && !now.averaged) {
    notes.emplace_back("the moving average of the weights is dropped");
  }
  const bool local = !then.local.empty();
  if (then.partitions != now.partitions && then.arrays.count() > 0) {
    notes.emplace_back(
        "the state of the partitions (residuals, weights of their own, optimiser state) is "
        "dropped");
    return notes;
  }
  if (then.arrays.residual > now.arrays.residual) {
    notes.emplace_back("the residuals of the push codec are dropped");
  }
  if (local && then.local != now.local) {
    notes.emplace_back("the partitions' optimiser state is dropped");
  }
  return notes;
}

// The evaluated weights become the start of the blocks.
void StartFromWeights(ShardSnapshot* snapshot) {
  std::set<int64_t> apart;
  for (const StateArray& array : snapshot->arrays) {
    if (array.kind == StateKind::kWeights) apart.insert(array.begin);
  }
  std::erase_if(snapshot->arrays, [&](const StateArray& array) {
    return array.kind == StateKind::kStart && apart.contains(array.begin);
  });
  for (StateArray& array : snapshot->arrays) {
    if (array.kind == StateKind::kWeights) array.kind = StateKind::kStart;
  }
}

// Adds share * v to each start, where v is the rule's first slot.
void MoveStarts(double share, ShardSnapshot* snapshot) {
  for (StateArray& start : snapshot->arrays) {
    if (start.kind != StateKind::kStart) continue;
    const int64_t size = std::ssize(start.numbers);
    std::vector<float> velocity(start.numbers.size());
    for (const StateArray& array : snapshot->arrays) {
      if (array.kind != StateKind::kRuleSlot || array.slot != 0) continue;
      CopyOverlap(array, {start.begin, start.begin + size}, velocity);
    }
    auto moved = std::make_shared<std::vector<float>>(start.numbers.begin(), start.numbers.end());
    for (int64_t i = 0; i < size; ++i) {
      (*moved)[i] = static_cast<float>(static_cast<double>((*moved)[i]) +
                                       share * static_cast<double>(velocity[i]));
    }
    start.numbers = *moved;
    start.owner = std::move(moved);
  }
}

// Keeps the weights w = s + eta v that follow from the starts s and the look-ahead of velocity v,
// if they are not stored: a moving average takes their place. eta counts 0 without a look-ahead, if
// v is dropped, and if blocks start from the weights.
void KeepWeights(const Experiment& then, const Carried& carried_then, const Experiment& now,
                 const Carried& carried_now, ShardSnapshot* snapshot) {
  const bool stored = carried_then.apart && !carried_then.averaged;
  // Then they stay stored, or StartFromWeights has made them the starts.
  if (stored && !(carried_now.averaged && carried_now.apart)) return;
  const bool looks_ahead =
      carried_now.apart && carried_now.averaged && carried_then.rule == carried_now.rule;
  const double eta_then = carried_then.apart ? static_cast<double>(then.block.momentum) : 0.0;
  const double eta_now = looks_ahead ? static_cast<double>(now.block.momentum) : 0.0;
  if (eta_then != eta_now) MoveStarts(eta_then - eta_now, snapshot);
}

// The present number of an array that a partition carried; none if it is dropped.
std::optional<int> SlotNow(int slot, const Carried& then, const Carried& now) {
  if (then.partitions != now.partitions) return std::nullopt;
  if (slot < then.arrays.residual) return now.arrays.residual > 0 ? std::optional(0) : std::nullopt;
  if (slot < then.arrays.first_slot()) {
    return now.arrays.way > 0 ? std::optional(now.arrays.residual) : std::nullopt;
  }
  if (then.slots != now.slots) return std::nullopt;
  return slot - then.arrays.first_slot() + now.arrays.first_slot();
}

}  // namespace

Result<checkpoint::Continuation> ContinuationOf(const checkpoint::Manifest& manifest,
                                                const Experiment& now,
                                                const std::vector<SettingChange>& changes) {
  if (!HasTensors(manifest) || manifest.train_samples() < 1) {
    return FailedPrecondition(
        "it was written by release 0.1, which did not store its network and data");
  }
  KUMO_ASSIGN_OR_RETURN(const Comparison c, Compare(manifest, now));
  const std::vector<std::string> refused = Refusals(manifest, c, changes).Collect();
  if (!refused.empty()) {
    std::string text;
    for (const std::string& one : refused) text += (text.empty() ? "" : "; ") + one;
    return FailedPrecondition(text);
  }
  checkpoint::Continuation continuation;
  continuation.set_version(manifest.version());
  continuation.set_samples(c.plan_now.SamplesAt(manifest.version()));
  continuation.set_epoch(c.last_then.epoch + (c.last_then.ends_epoch ? 2 : 1));
  for (const SettingChange& change : changes) {
    checkpoint::Continuation::Change* one = continuation.add_changes();
    one->set_setting(change.key);
    one->set_then(change.then);
    one->set_now(change.now);
  }
  for (std::string& note : NotesOf(c.carried_then, c.carried_now)) {
    continuation.add_notes(std::move(note));
  }
  return continuation;
}

std::vector<std::string> LinesOf(const checkpoint::Continuation& continuation) {
  std::vector<std::string> lines;
  for (const auto& change : continuation.changes()) {
    lines.push_back(DescribeChange({change.setting(), change.then(), change.now()}));
  }
  lines.insert(lines.end(), continuation.notes().begin(), continuation.notes().end());
  return lines;
}

Status Adapt(const checkpoint::Manifest& manifest, const Experiment& now, ShardSnapshot* snapshot) {
  if (SettingChanges(manifest.experiment_text(), now).empty()) return OkStatus();
  KUMO_ASSIGN_OR_RETURN(const Comparison c, Compare(manifest, now));
  const Carried& then = c.carried_then;
  const Carried& carried = c.carried_now;
  if (then.apart && !carried.apart && !then.averaged) StartFromWeights(snapshot);
  KeepWeights(c.then, then, now, carried, snapshot);
  std::erase_if(snapshot->arrays, [&](const StateArray& array) {
    if (array.kind == StateKind::kWeights) return then.averaged && !carried.averaged;
    if (array.kind == StateKind::kWorkerCopy) return !carried.copies;
    if (array.kind == StateKind::kRuleSlot) return then.rule != carried.rule;
    return array.kind == StateKind::kPartitionState && !SlotNow(array.slot, then, carried);
  });
  for (StateArray& array : snapshot->arrays) {
    if (array.kind == StateKind::kPartitionState) array.slot = *SlotNow(array.slot, then, carried);
  }
  return OkStatus();
}

Result<std::string> WhyNoFreshMoments(const checkpoint::Manifest& manifest, const Experiment& now) {
  KUMO_ASSIGN_OR_RETURN(const Comparison c, Compare(manifest, now));
  const bool moments = AreMoments(c, &Carried::rule) || AreMoments(c, &Carried::local) ||
                       c.carried_now.block_moments;
  return std::string(moments ? kFreshMoments : "");
}

}  // namespace kumo
