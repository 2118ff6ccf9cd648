// A job's checkpoints as the coordinator sees them: when one is taken, which servers' files of it
// are durable, and what is done where the disk does not take one.
//
// A version is complete when every server that holds chunks has saved its file; then the older ones
// that are still on their way are given up: were one committed late, it would pass for the newest.
// One that fails is let go, and training goes on; but the version that the job ends with is ordered
// again and again until the disk takes it or a limit is over.
//
// Owned by the Coordinator; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "common/base/clock.h"
#include "common/job/job_plan.h"
#include "common/job/options/experiment.h"
#include "proto/checkpoint.pb.h"

namespace kumo {

class Checkpoints {
 public:
  // An order to the servers: to save a version without waiting for a round's end.
  struct Order {
    int64_t version = -1;
    int attempt = 0;       // counts the orders; 0: none yet
    bool partial = false;  // even where what partitions carry is not there
  };

  // last: the version that the job goes on from; -1: none.
  Checkpoints(const Experiment::CheckpointOptions& options, int64_t last, TimeUs now)
      : options_(options), last_(last), began_at_(now) {}

  // The newest checkpoint's version, of those that are complete; -1: there is none.
  int64_t last() const { return last_; }
  const Order& order() const { return order_; }
  bool Has(int64_t version) const { return under_way_.contains(version); }

  // The job goes back to `last`: what was on its way counts no more.
  void GoBack(int64_t last, TimeUs now);
  // Training starts: checkpoint.every_minutes counts from now.
  void CountFrom(TimeUs now) { began_at_ = now; }
  // Whether the settings ask for a checkpoint at a version, which is not 0.
  bool IsDue(const JobPlan& plan, int64_t version, TimeUs now) const;
  // The snapshots that the disk has not taken yet lie in memory: while there are two, only the last
  // version is saved.
  bool IsBehind(int64_t version) const;
  // The round that ends with `version` is to be saved.
  void Begin(int64_t version, TimeUs now);
  // Where the job stood at `version`; does nothing when it is not being saved.
  void SetProgress(int64_t version, const checkpoint::Progress& progress);
  // What the validation set says of a version: its manifest will have it, unless that is made
  // already.
  void SetEvaluation(int64_t version, const checkpoint::Evaluation& evaluation);
  // Orders what the shards hold now to be saved, and remembers that.
  void OrderNow(int64_t version, bool partial, const checkpoint::Progress& progress, TimeUs now);

  // Whether an attempt to save a version is the one under way. 0: at its round's end.
  bool Awaits(int64_t version, int attempt) const;
  // A server's file is durable. When it is the last one of `wanted`: a manifest with the version,
  // the files in the order of their servers, the progress, and the evaluation where it is known.
  std::optional<checkpoint::Manifest> Add(int64_t version, int server, const checkpoint::File& file,
                                          int wanted);
  void Committed(int64_t version);
  void Failed(int64_t version) { under_way_.erase(version); }
  void FailAll();

  // The version that the job ends with is to be ordered once it is there, and for `limit` from then
  // on.
  void OrderLater(int64_t version, TimeUs limit);
  // It could not be saved, and is to be ordered again after a pause. False when it was tried for
  // `limit`.
  bool TryAgain(int64_t version, TimeUs limit, TimeUs now);
  // A version is ordered until it is saved, or hopeless.
  bool Insists(int64_t version) const { return unsaved_ >= 0 && unsaved_ == version; }
  // Whether the version is to be ordered again now: not before the pause after a failure is over.
  bool IsDueAgain(int64_t version, TimeUs now) const;
  // Tried for longer than the limit, without an answer.
  bool IsHopeless(TimeUs now) const;

 private:
  struct UnderWay {
    int attempt = 0;                        // files of another one are written over
    std::map<int, checkpoint::File> files;  // by server
    checkpoint::Progress progress;
    bool committing = false;
  };

  Experiment::CheckpointOptions options_;
  int64_t last_ = -1;
  TimeUs began_at_ = 0;                    // the last one
  std::map<int64_t, UnderWay> under_way_;  // by version
  // By version: of those under way, and of the newest that was evaluated.
  std::map<int64_t, checkpoint::Evaluation> evaluations_;
  Order order_;
  int64_t unsaved_ = -1;  // what is ordered again and again
  TimeUs limit_ = 0;
  TimeUs again_at_ = 0;    // 0: it is ordered
  TimeUs give_up_at_ = 0;  // 0: was not ordered yet
};

}  // namespace kumo
