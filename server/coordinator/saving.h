// Saving: which versions of a job become checkpoints, and what happens if the disk does not take
// one.
//
// Saving is the whole. Its parts: Checkpoints has the versions that are being saved, LastSave the
// version that the job ends with. Manifests fills in the description of the job in each manifest.
//
// A checkpoint comes about in four steps. (1) The settings, a stop, a move of leases or a leaving
// server asks for the version that a round makes which is about to start (Direct). (2) When the
// round closes, each shard saves its file and says so (OnSaved). (3) When all files are durable,
// the driver writes the manifest (CommitAction). (4) The checkpoint is complete (Committed).
//
// Invariants:
// - While two checkpoints are under way, the disk is behind: since their snapshots take memory, no
//   other version is saved than the one that the job stops at or ends with, and a version that is
//   ordered at once (OrderNow).
// - When a version has all its files, older versions that are still under way are given up: a
//   manifest that was written late would pass for the newest.
// - A failed checkpoint is given up, and training goes on. A later version is saved in its place
//   after a pause, whatever the settings say. Only the version that the job ends with is ordered
//   again, until it is saved or a limit is over.
// - Files count by attempt: a repeated order writes over the files of an earlier one.
//
// State machines without I/O, owned by the Coordinator; one thread.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/job/job_identity.h"
#include "common/job/job_plan.h"
#include "common/job/shard_map.h"
#include "common/settings/experiment.h"
#include "proto/checkpoint.pb.h"
#include "proto/wire.pb.h"
#include "server/coordinator/membership.h"
#include "server/coordinator/progress.h"
#include "server/protocol/actions.h"
#include "server/protocol/directive.h"

namespace kumo {

// Whether the settings ask for a checkpoint after `rounds`. Only the last of them can be saved.
// since: time of the last checkpoint, or of the start of training (checkpoint.every_minutes).
bool IsSaveDue(const Experiment::CheckpointOptions& options, const JobPlan& plan, Range rounds,
               TimeUs since, TimeUs now);

// Checkpoints that are under way, with the files that are durable, and the newest complete one.
//
// Owned by Saving; one thread.
class Checkpoints {
 public:
  // last: the version that the job goes on from; -1: none.
  explicit Checkpoints(int64_t last) : last_(last) {}

  // Version of the newest complete checkpoint; -1: there is none.
  int64_t last() const { return last_; }
  const SaveOrder& order() const { return order_; }
  // Whether a version is under way.
  bool Has(int64_t version) const { return under_way_.contains(version); }
  // Whether a version, or a later one, is complete, or the version is under way.
  bool Secures(int64_t version) const { return last_ >= version || Has(version); }

  // The job goes back to `last`: drops all checkpoints under way.
  void GoBack(int64_t last);
  // Checkpoints that are under way.
  int64_t count() const { return std::ssize(under_way_); }
  // The round that makes `version` is to be saved.
  void Begin(int64_t version) { under_way_[version]; }
  // Progress of the job at `version`; without effect unless the version is under way.
  void SetProgress(int64_t version, const checkpoint::Progress& progress);
  // Evaluation of a version, for its manifest if that is not made yet.
  void SetEvaluation(int64_t version, const checkpoint::Evaluation& evaluation);
  // Orders the shards to save the version that they hold now.
  void OrderNow(int64_t version, bool partial, const checkpoint::Progress& progress);

  // Whether files of this attempt to save a version are expected. attempt 0: at the round's end.
  bool Awaits(int64_t version, int attempt) const;
  // A server's file is durable. With the last one of `wanted` files: a manifest with the version,
  // the files in the order of their servers, the progress, and the evaluation if it is known.
  std::optional<checkpoint::Manifest> Add(int64_t version, int server, const checkpoint::File& file,
                                          int wanted);
  void Committed(int64_t version);
  void Failed(int64_t version) { under_way_.erase(version); }
  // All snapshots are lost.
  void FailAll();

 private:
  struct UnderWay {
    int attempt = 0;
    std::map<int, checkpoint::File> files;  // by server
    checkpoint::Progress progress;
    bool committing = false;  // the manifest is being written
  };

  int64_t last_ = -1;
  std::map<int64_t, UnderWay> under_way_;  // by version
  // By version: of those under way, and of the newest that was evaluated.
  std::map<int64_t, checkpoint::Evaluation> evaluations_;
  SaveOrder order_;
};

// Last save: the retries of the version that the job ends with.
//
// Owned by Saving; one thread.
class LastSave {
 public:
  // The version is to be ordered once chunk 0 has reached it, and retried for `limit` from then on.
  void OrderLater(int64_t version, TimeUs limit);
  // The version could not be saved: orders it again after a pause. False if it was retried for
  // `limit`.
  bool TryAgain(int64_t version, TimeUs limit, TimeUs now);
  // A version was ordered.
  void OnOrdered(int64_t version, TimeUs now);
  void OnSaved(int64_t version);
  // The job goes back.
  void Forget();

  // Whether this version is retried until it is saved or hopeless.
  bool Insists(int64_t version) const { return version_ >= 0 && version_ == version; }
  // Whether the version is to be ordered now: the pause after a failure is over.
  bool IsDueAgain(int64_t version, TimeUs now) const;
  // Retried for longer than the limit without an answer.
  bool IsHopeless(TimeUs now) const;

 private:
  int64_t version_ = -1;
  TimeUs limit_ = 0;
  TimeUs again_at_ = 0;    // 0: an order is under way
  TimeUs give_up_at_ = 0;  // 0: not ordered yet
};

// Manifests: the description of the job in each manifest: its settings, network and data, and the
// origin of its weights.
//
// Owned by the Coordinator; one thread.
class Manifests {
 public:
  // private_disks: files name the range of the flat vector that they contain.
  explicit Manifests(const JobIdentity& identity, bool private_disks = false)
      : identity_(identity), private_disks_(private_disks) {}

  // The job's spec has become known.
  void OnSpec(const ShardMap& map, const JobSpec& spec);
  // The job goes on from a checkpoint, or from its beginning.
  void StartFrom(const std::optional<checkpoint::Manifest>& restored);
  // The job goes on from the state that a former coordinator has left.
  void TakeOver(const wire::CoordinatorState& state);
  // A worker has brought initial weights that come from another job in part; the first one counts.
  void OnOrigin(const checkpoint::Origin& origin, StepContext* context);

  // The job whose weights this one began with, if it is known.
  const std::optional<checkpoint::Origin>& origin() const { return origin_; }
  // Servers that hold chunks, and so have a file in each checkpoint.
  const std::set<int>& holders() const { return holders_; }
  // The entry of a server's file, from the size and checksum in its SAVED.
  checkpoint::File FileOf(int server, uint32_t generation, const wire::SavedFile& saved) const;
  // Fills in the description of the job. Requires OnSpec. restored: the checkpoint that the
  // generation started from.
  void Complete(uint32_t generation, const std::optional<checkpoint::Manifest>& restored,
                const JobPlan& plan, checkpoint::Manifest* manifest) const;

 private:
  JobIdentity identity_;
  JobSpec spec_;
  bool private_disks_;
  ShardMap map_;
  std::set<int> holders_;
  std::optional<checkpoint::Origin> origin_;
};

// Saving. Owned by the Coordinator; one thread.
class Saving {
 public:
  // last: the version that the job goes on from; -1: none.
  Saving(const Experiment::CheckpointOptions& options, int64_t last, TimeUs now)
      : options_(options), since_(now), checkpoints_(last) {}

  const Checkpoints& checkpoints() const { return checkpoints_; }
  const LastSave& last_save() const { return last_save_; }
  // Two or more checkpoints are being written: the disk has not caught up. Checkpoints of versions
  // that are not reached yet do not count.
  bool IsBehind() const;

  // Training starts: checkpoint.every_minutes counts from now.
  void CountFrom(TimeUs now) { since_ = now; }
  // The rounds that start from `version` are directed: returns whether the version that the last of
  // them makes is saved. wanted: it is needed, whatever the settings say and however far the disk
  // is behind. Servers that were told to leave may leave then.
  bool Direct(const JobPlan& plan, int64_t version, bool wanted, MembershipTracker* membership,
              TimeUs now);
  // The versions after chunk 0's that workers were told to save.
  const std::set<int64_t>& directed() const { return directed_; }
  // Chunk 0 has reached a version.
  void OnVersion(int64_t version) {
    directed_.erase(directed_.begin(), directed_.upper_bound(version));
  }
  // Versions that a former coordinator has directed to be saved.
  void TakeOver(std::set<int64_t> directed) { directed_ = std::move(directed); }
  // Progress of the job at `version`; without effect unless the version is being saved.
  void SetProgress(int64_t version, const checkpoint::Progress& progress) {
    checkpoints_.SetProgress(version, progress);
  }
  // Orders the shards to save the version that they hold now.
  void OrderNow(int64_t version, bool partial, const checkpoint::Progress& progress, TimeUs now);

  // A server has saved its file; or could not: then an error that names the server. With the last
  // file, commits the manifest. restored: the checkpoint that the generation started from. Requires
  // a plan once a checkpoint was begun.
  Status OnSaved(int server, const wire::Header& header, const Manifests& manifests,
                 const Generation& generation, const std::optional<checkpoint::Manifest>& restored,
                 const std::optional<JobPlan>& plan, StepContext* context);
  void Committed(int64_t version);
  void Failed(int64_t version, const std::string& why, TimeUs now);
  // Why the newest attempts failed; "": the newest attempt succeeded, or there was none.
  const std::string& failure() const { return failure_; }
  // An epoch that ended with `version` has been evaluated.
  void KeepEvaluation(const EpochLedger::Epoch& epoch, int64_t version,
                      const Generation& generation, StepContext* context);
  // The answer to a KeepEvaluationAction. While one is missing, a later process might not know all
  // evaluations.
  void OnKept() { --being_kept_; }
  bool keeps_evaluations() const { return being_kept_ > 0; }

  // As LastSave::TryAgain and LastSave::OrderLater, for the version that the job ends with.
  bool TryAgain(int64_t version, TimeUs limit, TimeUs now) {
    return last_save_.TryAgain(version, limit, now);
  }
  void OrderLater(int64_t version, TimeUs limit) { last_save_.OrderLater(version, limit); }
  // A server's snapshots are lost, and the other servers' belong to a generation that is
  // over. last: the version that the job ends with.
  void LoseSnapshots(int64_t last, TimeUs limit);
  // The job goes back to `last`: drops all checkpoints under way.
  void GoBack(int64_t last, TimeUs now);

  // Orders of a server.
  void FillIn(const ServerMember& server, wire::Orders* orders) const;
  // The newest checkpoint, and failures since.
  void Describe(wire::JobStatus* status) const;

 private:
  Experiment::CheckpointOptions options_;
  TimeUs since_;  // checkpoint.every_minutes counts from then
  Checkpoints checkpoints_;
  std::set<int64_t> directed_;
  LastSave last_save_;
  int being_kept_ = 0;  // evaluations that are being written into manifests
  std::string failure_;
  int failures_ = 0;     // since the newest complete checkpoint
  TimeUs retry_at_ = 0;  // while failures_ > 0: the next version is saved from then on
};

}  // namespace kumo
