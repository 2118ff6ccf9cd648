// Lifecycle of a job: from the wait for its processes to its end, and back to a checkpoint if
// something is lost.
//
//   from       to         cause
//   (start)    kWaiting
//   (start)    kFinished  the job was done before this process was started (CoordinatorStart)
//   kWaiting   kTraining  all processes are there (StartGate)
//   kWaiting   kTraining  this process is a restarted server 0, and the other servers have the
//                         job's versions (Recovery::Decide)
//   kWaiting   kFailed    too few processes came in time, or the job was told to stop (StartGate);
//                         no checkpoint is good (Recovery::OnChosen); a process reports an error
//                         that no retry can cure (MemberEvent)
//   kTraining  kWaiting   something is lost: the job goes back to a checkpoint (Recovery::GoBack)
//   kTraining  kFinished  the job is done, or has stopped (Ending::HasEnded)
//   kTraining  kFailed    the job cannot go on (Ending), or a process reports such an error
//
// Recovery has the generation and its start, StartGate the processes that the job waits for,
// StopPoint the version at which it was told to stop, Ending the end and the last checkpoint, and
// Shutdown the news of the end to all members. The Coordinator has the phase, and owns all but the
// stop point. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/job/job_plan.h"
#include "common/job/phase.h"
#include "common/settings/experiment.h"
#include "proto/checkpoint.pb.h"
#include "proto/wire.pb.h"
#include "server/coordinator/effects.h"
#include "server/coordinator/membership.h"
#include "server/coordinator/saving.h"
#include "server/protocol/actions.h"
#include "server/protocol/directive.h"

namespace kumo {

// Recovery: the generation of the job, and the checkpoint that it starts from.
//
// - Weights are lost, or states of partitions with cluster.recovery=exact: the job goes back. The
//   generation is raised, so all earlier messages are refused; all servers load the newest good
//   checkpoint, and training begins there.
// - A server was started again, and versions are kept twice (cluster.replicas): it fetches its
//   shard from the next server. The generation is raised too, but the other processes go on where
//   they are.
// - Server 0 was started again, and versions are kept twice: it does not know whether the other
//   servers still have the job's versions, until all of them have joined (Decide).
// No process uses a generation before its number is durable.
class Recovery {
 public:
  // generation: a number that no process of this job has used before. may_be_further: the other
  // servers may have later versions than any checkpoint. restored: the checkpoint that the job goes
  // on from, if any.
  Recovery(uint32_t generation, bool may_be_further, std::optional<checkpoint::Manifest> restored);

  const Generation& generation() const { return generation_; }
  // The checkpoint that the generation starts from.
  const std::optional<checkpoint::Manifest>& restored() const { return restored_; }
  // It is not known yet whether the other servers have the job's versions.
  bool undecided() const { return undecided_; }
  // The job has gone back since this process was started.
  bool went_back() const { return !went_back_why_.empty(); }

  // Decides, when all servers are there. True if they have the job's versions and go on.
  bool Decide(const std::vector<ServerMember>& servers, StepContext* context);
  // The job goes back to a checkpoint that is not newer than `newest`: asks the disk for one.
  void GoBack(const std::string& why, int64_t newest, StepContext* context);
  // A server fetches its shard, and the others go on: asks the disk to make the number durable.
  void GoOn(StepContext* context);
  void OnReserved() { generation_.choosing = false; }
  // The answer to GoBack: the generation starts from this checkpoint. The error, with its context,
  // if no checkpoint is good. Requires generation().choosing.
  Status OnChosen(const Result<std::optional<checkpoint::Manifest>>& chosen, StepContext* context);
  // The reason for the wait while generation().choosing.
  std::string WaitsFor() const;

 private:
  void StartFrom(std::optional<checkpoint::Manifest> restored);

  Generation generation_;
  std::optional<checkpoint::Manifest> restored_;
  bool undecided_;
  std::string went_back_why_;  // "" in the first generation of this process
};

// Start gate: the processes that a job waits for before it trains, and for how long.
//
// When cluster.join_timeout_s has passed, the job begins with the present workers if they are
// enough (cluster.min_workers). It fails when there have not been enough for that long without a
// break: a worker that is silent for a moment at the limit does not end the job.
//
// A job that is told to stop fails here, unless this process may have taken the place of a server 0
// that died (Recovery::undecided): the other servers may have rounds that no checkpoint has. Then
// it waits for them, and the job stops when the next round is saved.
class StartGate {
 public:
  // grace: time limit from the order to stop to the exit.
  StartGate(const Experiment::Cluster& cluster, TimeUs grace, TimeUs now);

  // The workers that a new job waits for.
  int workers() const { return workers_; }
  // The wait begins.
  void Begin(TimeUs now) { since_ = enough_at_ = now; }
  // The processes that the job waits for, in any phase; "" if all that it needs are there.
  // knows_spec: servers can have their shards.
  std::string WaitsFor(JobPhase phase, const Recovery& recovery,
                       const MembershipTracker& membership, bool knows_spec, TimeUs now) const;
  // In kWaiting: nullopt while the job waits, ok when training begins, an error if it never will.
  // stop: the job was told to stop.
  std::optional<Status> Tick(const Recovery& recovery, const MembershipTracker& membership,
                             bool knows_spec, bool stop, TimeUs now);

 private:
  // The job was told to stop: whether the other servers may still come with the job's versions.
  bool MayGoOn(const Recovery& recovery, TimeUs now);

  int workers_;  // at the start
  int min_workers_;
  TimeUs join_timeout_;
  TimeUs stall_timeout_;
  TimeUs grace_;
  TimeUs since_;
  TimeUs enough_at_;  // the last time with enough workers to train; since_ if there was none
  std::optional<TimeUs> stop_at_;  // the time of the order to stop, if it has to wait
};

// Stop point: the version at which a job stops before its end, if it was told to, or with which it
// ends early (job.patience).
//
// It is settled when a round starts, and travels with that round's directive, so that every process
// stops at the same version.
class StopPoint {
 public:
  // Stop at the end of the next round.
  void Request() { requested_ = true; }
  bool requested() const { return requested_; }
  // -1: the job does not stop, or the version is not settled yet.
  int64_t version() const { return version_; }
  // The job is to stop, and not with `version`.
  bool IsAheadOf(int64_t version) const {
    return requested_ && (version_ < 0 || version_ != version);
  }
  bool IsReachedBy(int64_t version) const { return version_ >= 0 && version >= version_; }
  // The job ends early with a version, as done; 0: it does not.
  void FinishAt(int64_t version) { finish_at_ = version; }
  // The stop is the end of the job.
  bool finishes() const { return version_ >= 0 && version_ == finish_at_; }
  // The version that a job of so many rounds ends with.
  int64_t LastOf(int64_t rounds) const { return version_ >= 0 ? version_ : rounds; }

  // A round that makes `next` starts: returns whether the job stops then.
  bool Direct(int64_t next, int64_t rounds) {
    if (version_ >= 0 || next >= rounds || !(requested_ || next == finish_at_)) return false;
    version_ = next;
    return true;
  }
  // The decision of a former coordinator.
  void StopAt(int64_t version) { version_ = version; }
  // The job goes back, or has come to its end all the same.
  void Forget() { version_ = -1; }

 private:
  bool requested_ = false;
  int64_t version_ = -1;
  int64_t finish_at_ = 0;
};

// Ending: when a job ends, and which version is saved before: at its last round, at its stop point,
// or when it cannot go on.
//
// The last version of a job that ends or stops is saved with retries (LastSave). A job that cannot
// go on first saves the rounds since its last checkpoint, and tries that for checkpoint.grace_s.
class Ending {
 public:
  // Limits for saving: of a job that stops or cannot go on, and of a job at its end.
  Ending(TimeUs grace, TimeUs stall_timeout) : grace_(grace), stall_timeout_(stall_timeout) {}

  void RequestStop() { stop_.Request(); }
  // Early stopping: the job ends with a version; 0: it does not.
  void FinishAt(int64_t version) { stop_.FinishAt(version); }
  const StopPoint& stop() const { return stop_; }
  // Why the job fails once its state is saved; nullopt: the job goes on.
  const std::optional<Status>& why() const { return why_; }

  // Rounds start from `version`: fills in save and stop of the directive, whose `move` is set
  // already.
  void Direct(int64_t version, const JobPlan& plan, Directive* directive, Saving* saving,
              MembershipTracker* membership, TimeUs now);
  // Answers of the disk. rounds: of the job.
  Effects OnSaveFailed(int64_t version, const std::string& why, int64_t rounds, Saving* saving,
                       TimeUs now);
  Effects OnCommitted(int64_t version, const Status& status, int64_t rounds, Saving* saving,
                      TimeUs now);
  // The job cannot go on. Saves the rounds since the last checkpoint first, up to `version`, unless
  // the state is `incomplete`.
  Effects Begin(Status why, int64_t version, bool incomplete, const Checkpoints& checkpoints,
                TimeUs now);
  // nullopt unless the last version is being waited for. version: of chunk 0.
  std::optional<Effects> Tick(int64_t version, const Saving& saving, TimeUs now) const;
  // Whether the job is done or has stopped. A job that is done has not stopped, even if it was told
  // to. evaluated: no epoch waits for its evaluation.
  bool HasEnded(int64_t version, int64_t rounds, bool evaluated, const Checkpoints& checkpoints);

  // The job goes on from the decisions of a former coordinator, made with `version`.
  void TakeOver(int64_t version, const wire::CoordinatorState& state, int64_t rounds,
                Saving* saving);
  // A server's snapshots are lost, and the other servers' belong to a generation that is over.
  void LoseSnapshots(int64_t rounds, Saving* saving);
  void GoBack() { stop_.Forget(); }

 private:
  TimeUs SaveLimit(int64_t version) const;

  TimeUs grace_;
  TimeUs stall_timeout_;
  StopPoint stop_;
  std::optional<Status> why_;
  TimeUs by_ = 0;             // limit for saving before the failure
  TimeUs save_again_at_ = 0;  // no new order to save before
};

// Shutdown: tells all members of the job's end, and decides when server 0 leaves.
//
// Members say goodbye when they know of the end; server 0 leaves when all have, or after a limit,
// in case a member has died or its goodbye is lost. Until then it repeats the news. A server 0 that
// is started again after the job was done tells the other processes, which may have been started
// again with it.
class Shutdown {
 public:
  static constexpr TimeUs kLimit = 3 * kSecond;
  // limit: time for goodbyes.
  explicit Shutdown(TimeUs limit = kLimit) : limit_(limit) {}

  void OnFinished(TimeUs now);
  // The job was done before this process was started: expects up to `others` processes, until then.
  void WaitFor(int others, TimeUs until);
  void OnFailed(Status failure) { failure_ = std::move(failure); }
  // The job is over, and a process has said goodbye.
  void OnBye();
  // No process has to be told any more.
  bool AllKnow(const MemberTable& members) const { return others_ == 0 && members.AllHaveLeft(); }
  // A tick while the job is over: whether all know, or the limit is over.
  bool IsOver(const MemberTable& members, TimeUs now);

  // The exit status of this process.
  Status Outcome(JobPhase phase, const StopPoint& stop) const;
  // Orders of a member: the end. version: of chunk 0.
  void FillIn(JobPhase phase, const StopPoint& stop, int64_t version, wire::Header* header) const;

 private:
  TimeUs limit_;
  Status failure_;
  int others_ = 0;    // processes that are still to come
  TimeUs until_ = 0;  // 0: the job is not over
};

}  // namespace kumo
