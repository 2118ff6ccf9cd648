// The version at which a job stops before its end, when it was told to.
//
// It is settled with a round that starts, and travels with that round's directive, so every process
// stops at the same version.
//
// Owned by Ending; one thread.
#pragma once

#include <cstdint>

namespace kumo {

class StopPoint {
 public:
  // Stop at the end of the next round.
  void Request() { requested_ = true; }
  bool requested() const { return requested_; }
  // -1: the job does not stop, or it is not settled yet where.
  int64_t version() const { return version_; }
  // The job is to stop, and does not with `version`.
  bool IsAheadOf(int64_t version) const {
    return requested_ && (version_ < 0 || version_ != version);
  }
  bool IsReachedBy(int64_t version) const { return version_ >= 0 && version >= version_; }
  // What a job of so many rounds ends with.
  int64_t LastOf(int64_t rounds) const { return version_ >= 0 ? version_ : rounds; }

  // A round that is to make `next` starts: whether the job is to stop then.
  bool Direct(int64_t next, int64_t rounds) {
    if (!requested_ || version_ >= 0 || next >= rounds) return false;
    version_ = next;
    return true;
  }
  // As a former coordinator has said.
  void StopAt(int64_t version) { version_ = version; }
  // The job goes back, or has come to its end all the same.
  void Forget() { version_ = -1; }

 private:
  bool requested_ = false;
  int64_t version_ = -1;
};

}  // namespace kumo
