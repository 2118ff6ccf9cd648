#include "common/checkpoint/network_and_data.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/checkpoint/continuation.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/relocation.h"
#include "common/job/job_plan.h"
#include "common/job/network_changes.h"
#include "common/job/round_policy.h"

namespace kumo {
namespace {

// Requires the same tensors.
std::vector<SettingChange> ChangesOfNetwork(const checkpoint::Manifest& manifest,
                                            const JobSpec& spec) {
  std::vector<SettingChange> changes =
      NetworkChanges(manifest.network(), spec.network, NetworkUse::kTraining);
  // The manifest lacks a long network file.
  const bool alike = manifest.fingerprint() == spec.layout.fingerprint();
  if (changes.empty() && HasTensors(manifest) && !alike) {
    changes.push_back({"learning-rate and weight-decay factors of layers", "others", "these"});
  }
  return changes;
}

// Refuses to train weights that were frozen if their moments would be the only ones that start at
// zero.
Status CheckUnfrozen(const checkpoint::Manifest& manifest, const ParameterLayout& then,
                     const ParameterLayout& now, const Experiment& experiment) {
  KUMO_ASSIGN_OR_RETURN(const std::string why, WhyNoFreshMoments(manifest, experiment));
  for (size_t i = 0; i < now.tensors().size() && !why.empty(); ++i) {
    if (then.tensors()[i].trained() || !now.tensors()[i].trained()) continue;
    return FailedPrecondition("checkpoint " + manifest.name() + ": " + now.tensors()[i].name +
                              " was not trained: " + why +
                              "; train on in another output.directory, with --from");
  }
  return OkStatus();
}

// Refuses other factors within an epoch if the ways of the partitions' own weights would not fit
// them: a tensor that was frozen has no way, which counts as zero, but a way with sync.local_share
// begins at a share of the weights; and the fragments are cut from groups of equal factors.
Status CheckOwnWeights(const checkpoint::Manifest& manifest, const ParameterLayout& then,
                       const JobSpec& spec, const Experiment& experiment) {
  const ParameterLayout& now = spec.layout;
  JobSpec spec_then = spec;
  spec_then.train_samples = manifest.train_samples();
  KUMO_ASSIGN_OR_RETURN(const JobPlan plan, PlanFor(experiment, spec_then));
  if (manifest.version() == plan.rounds() || !plan.Round(manifest.version()).goes_on) {
    return OkStatus();
  }
  const auto refuse = [&](const std::string& why) {
    return FailedPrecondition("checkpoint " + manifest.name() + ": " + why +
                              "; continue from the end of an epoch");
  };
  const bool same_groups =
      std::ranges::equal(then.groups(), now.groups(), {}, &StepGroup::range, &StepGroup::range);
  for (size_t i = 0; i < now.tensors().size(); ++i) {
    const auto tensor = static_cast<int>(i);
    if (plan.settings().fragments > 1 &&
        (!same_groups || !(then.tensor(tensor) == now.tensor(tensor)))) {
      return refuse("with other factors of layers the fragments are cut at other places");
    }
    if (RoundPolicy(experiment).local_share() > 0 && !then.tensors()[i].trained() &&
        now.tensors()[i].trained()) {
      return refuse(now.tensors()[i].name +
                    " was not trained: within an epoch the partitions have no weights of their "
                    "own of it (sync.local_share)");
    }
  }
  return OkStatus();
}

// A set of the data as a checkpoint and as a worker know it.
struct SetThenAndNow {
  const char* name;
  int64_t samples_then, samples_now;
  uint64_t hash_then;  // 0: not known
  const DataIdentity& now;
};

std::vector<SetThenAndNow> SetsOf(const checkpoint::Manifest& manifest, const JobSpec& spec) {
  return {
      {"training", manifest.train_samples(), spec.train_samples, manifest.train_hash(), spec.train},
      {"validation", manifest.validation_samples(), spec.validation_samples,
       manifest.validation_hash(), spec.validation}};
}

std::vector<SettingChange> ChangesOfData(const checkpoint::Manifest& manifest,
                                         const JobSpec& spec) {
  std::vector<SettingChange> changes;
  if (manifest.train_samples() == 0) return changes;  // 0.1 did not say
  for (const SetThenAndNow& set : SetsOf(manifest, spec)) {
    if (set.samples_then != set.samples_now) {
      changes.push_back({std::string(set.name) + " samples", std::to_string(set.samples_then),
                         std::to_string(set.samples_now)});
    }
    if (set.hash_then == 0 || set.hash_then == set.now.hash) continue;
    changes.push_back({std::string("contents of the ") + set.name + " data", HashOf(set.hash_then),
                       HashOf(set.now.hash) + (set.now.name.empty() ? "" : " of " + set.now.name)});
  }
  return changes;
}

// Rounds of the first epoch.
int64_t RoundsOfAnEpoch(const JobPlan& plan) {
  int64_t first = 0, end = plan.rounds();  // the first round of a later epoch lies in [first, end]
  while (first < end) {
    const int64_t middle = first + (end - first) / 2;
    if (plan.Round(middle).epoch == 0) {
      first = middle + 1;
    } else {
      end = middle;
    }
  }
  return first;
}

// Refuses data of another size if the checkpoint's round has another place in their epochs: the
// schedule, the evaluations and the end of the job follow from the number of the round.
Status CheckPlaces(const checkpoint::Manifest& manifest, const JobSpec& spec,
                   const Experiment& now) {
  const int64_t then = manifest.train_samples();
  if (then == spec.train_samples) return OkStatus();
  JobSpec spec_then = spec;
  spec_then.train_samples = then;
  KUMO_ASSIGN_OR_RETURN(const JobPlan before, PlanFor(now, spec_then));
  KUMO_ASSIGN_OR_RETURN(const JobPlan after, PlanFor(now, spec));
  const int64_t version = manifest.version();
  const auto last = [&](const JobPlan& plan) { return plan.Round(version - 1); };
  const auto place = [&](const JobPlan& plan) {
    const RoundPlan round = last(plan);
    return std::tuple(round.epoch, round.ends_epoch, round.local_steps, round.step,
                      round.full_precision, round.samples.begin);
  };
  if (version >= 1 && version <= before.rounds() && version <= after.rounds() &&
      place(before) == place(after)) {
    return OkStatus();
  }
  const auto rounds = [](const JobPlan& plan) {
    return std::to_string(RoundsOfAnEpoch(plan)) + " rounds";
  };
  return FailedPrecondition(
      "checkpoint " + manifest.name() + " was trained on other data: it had " +
      std::to_string(then) + " training samples, there are " + std::to_string(spec.train_samples) +
      ", so that round " + std::to_string(version) +
      " has another place in the epochs (the first has " + rounds(after) + " instead of " +
      rounds(before) +
      "); --continue needs epochs of an equal number of rounds; train on the new data in "
      "another output.directory, from these weights with --from");
}

}  // namespace

Status CheckSameNetworkAndData(const checkpoint::Manifest& manifest, const JobSpec& spec,
                               const Experiment& now) {
  const std::string name = "checkpoint " + manifest.name();
  if (manifest.fingerprint() != spec.layout.fingerprint()) {
    ParameterLayout then;
    std::string difference = "the tensors' names, shapes or order differ";
    if (HasTensors(manifest)) {
      KUMO_ASSIGN_OR_RETURN(then, LayoutOf(manifest));
      difference = WithoutFactors(then).FirstDifference(WithoutFactors(spec.layout));
    }
    if (!difference.empty()) {
      return FailedPrecondition(name + " is of another network: " + difference +
                                "; bring back the network file that it was trained with, or train "
                                "the new network in another output.directory");
    }
    if (now.checkpoint.continues) {
      KUMO_RETURN_IF_ERROR(CheckUnfrozen(manifest, then, spec.layout, now));
      KUMO_RETURN_IF_ERROR(CheckOwnWeights(manifest, then, spec, now));
    }
  }
  if (manifest.train_samples() == 0) return OkStatus();  // 0.1 did not say
  if (now.checkpoint.continues) return CheckPlaces(manifest, spec, now);
  constexpr char kOr[] =
      ", or accept the change from here on with kumo launch --continue (checkpoint.continue = "
      "true)";
  for (const SetThenAndNow& set : SetsOf(manifest, spec)) {
    if (set.samples_then == set.samples_now) continue;
    return FailedPrecondition(name + " was trained on other data: it had " +
                              std::to_string(set.samples_then) + " " + set.name +
                              " samples, there are " + std::to_string(set.samples_now) +
                              "; bring back the files that it was trained on" + kOr);
  }
  if (const auto changes = ChangesOfNetwork(manifest, spec); !changes.empty()) {
    return FailedPrecondition(
        name + " is of another network, of the same tensors: " + DescribeChanges(changes) +
        "; bring back the network file that it was trained with" + kOr);
  }
  if (const auto changes = ChangesOfData(manifest, spec); !changes.empty()) {
    return FailedPrecondition(
        name + " was trained on other data: equal number of samples, different contents: " +
        DescribeChanges(changes) + "; bring back the files that it was trained on" + kOr);
  }
  return OkStatus();
}

std::vector<SettingChange> ChangesOfNetworkAndData(const checkpoint::Manifest& manifest,
                                                   const JobSpec& spec) {
  std::vector<SettingChange> changes = ChangesOfNetwork(manifest, spec);
  for (SettingChange& change : ChangesOfData(manifest, spec)) changes.push_back(std::move(change));
  return changes;
}

void NoteChangesOfNetworkAndData(const checkpoint::Manifest& from, const JobSpec& spec,
                                 const JobPlan& plan, checkpoint::Manifest* manifest) {
  const std::vector<SettingChange> changes = ChangesOfNetworkAndData(from, spec);
  if (changes.empty()) return;
  const int count = manifest->continuations_size();
  const bool said = count > 0 && manifest->continuations(count - 1).version() == from.version();
  checkpoint::Continuation* const continuation =
      said ? manifest->mutable_continuations(count - 1) : manifest->add_continuations();
  if (!said) {
    continuation->set_version(from.version());
    continuation->set_samples(plan.SamplesAt(from.version()));
    const bool over = from.version() == plan.rounds();
    continuation->set_epoch(over ? plan.settings().epochs : plan.Round(from.version()).epoch + 1);
  }
  for (const SettingChange& change : changes) {
    checkpoint::Continuation::Change* const one = continuation->add_changes();
    one->set_setting(change.key);
    one->set_then(change.then);
    one->set_now(change.now);
  }
}

}  // namespace kumo
