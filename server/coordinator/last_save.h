// The version that a job ends with is ordered to be saved again and again, until the disk takes it
// or a limit is over: only that one is worth waiting for.
//
// Owned by Saving; one thread.
#pragma once

#include <cstdint>

#include "common/base/clock.h"

namespace kumo {

class LastSave {
 public:
  // The version is to be ordered once it is there, and for `limit` from then on.
  void OrderLater(int64_t version, TimeUs limit);
  // It could not be saved, and is to be ordered again after a pause. False when it was tried for
  // `limit`.
  bool TryAgain(int64_t version, TimeUs limit, TimeUs now);
  // Some version was ordered.
  void OnOrdered(int64_t version, TimeUs now);
  void OnSaved(int64_t version);
  // The job goes back.
  void Forget();

  // A version is ordered until it is saved, or hopeless.
  bool Insists(int64_t version) const { return version_ >= 0 && version_ == version; }
  // Whether the version is to be ordered again now: not before the pause after a failure is over.
  bool IsDueAgain(int64_t version, TimeUs now) const;
  // Tried for longer than the limit, without an answer.
  bool IsHopeless(TimeUs now) const;

 private:
  int64_t version_ = -1;  // what is ordered again and again
  TimeUs limit_ = 0;
  TimeUs again_at_ = 0;    // 0: it is ordered
  TimeUs give_up_at_ = 0;  // 0: was not ordered yet
};

}  // namespace kumo
