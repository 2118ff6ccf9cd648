// A job's checkpoints as the coordinator sees them: those that are being saved, with the servers'
// files of each that are durable, and the newest that is complete.
//
// A version is complete when every server that holds chunks has saved its file; then the older ones
// that are still on their way are given up: were one committed late, it would pass for the newest.
//
// Owned by Saving; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "proto/checkpoint.pb.h"
#include "server/protocol/directive.h"

namespace kumo {

class Checkpoints {
 public:
  // last: the version that the job goes on from; -1: none.
  explicit Checkpoints(int64_t last) : last_(last) {}

  // The newest checkpoint's version, of those that are complete; -1: there is none.
  int64_t last() const { return last_; }
  const SaveOrder& order() const { return order_; }
  bool Has(int64_t version) const { return under_way_.contains(version); }

  // The job goes back to `last`: what was on its way counts no more.
  void GoBack(int64_t last);
  // The snapshots that the disk has not taken yet lie in memory: while there are two, only the last
  // version is saved.
  bool IsBehind(int64_t version) const;
  // The round that ends with `version` is to be saved.
  void Begin(int64_t version) { under_way_[version]; }
  // Where the job stood at `version`; does nothing when it is not being saved.
  void SetProgress(int64_t version, const checkpoint::Progress& progress);
  // What the validation set says of a version: its manifest will have it, unless that is made
  // already.
  void SetEvaluation(int64_t version, const checkpoint::Evaluation& evaluation);
  // Orders what the shards hold now to be saved, and remembers that.
  void OrderNow(int64_t version, bool partial, const checkpoint::Progress& progress);

  // Whether an attempt to save a version is the one under way. 0: at its round's end.
  bool Awaits(int64_t version, int attempt) const;
  // A server's file is durable. When it is the last one of `wanted`: a manifest with the version,
  // the files in the order of their servers, the progress, and the evaluation where it is known.
  std::optional<checkpoint::Manifest> Add(int64_t version, int server, const checkpoint::File& file,
                                          int wanted);
  void Committed(int64_t version);
  void Failed(int64_t version) { under_way_.erase(version); }
  // Snapshots are lost.
  void FailAll();

 private:
  struct UnderWay {
    int attempt = 0;                        // files of another one are written over
    std::map<int, checkpoint::File> files;  // by server
    checkpoint::Progress progress;
    bool committing = false;
  };

  int64_t last_ = -1;
  std::map<int64_t, UnderWay> under_way_;  // by version
  // By version: of those under way, and of the newest that was evaluated.
  std::map<int64_t, checkpoint::Evaluation> evaluations_;
  SaveOrder order_;
};

}  // namespace kumo
