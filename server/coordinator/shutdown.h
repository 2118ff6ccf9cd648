// The end of a job as it is told to everybody.
//
// When it is over, server 0 leaves when everybody has said goodbye, which they do when they know of
// the end; whoever has not is told again. Who has died, or whose goodbye is lost, is waited for in
// vain, for a while. A server 0 that is started again when the job is done says so to the others,
// which may have been started again with it.
//
// Owned by the Coordinator; one thread.
#pragma once

#include <cstdint>
#include <utility>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "proto/wire.pb.h"
#include "server/coordinator/member_table.h"
#include "server/coordinator/phase.h"
#include "server/coordinator/stop_point.h"

namespace kumo {

class Shutdown {
 public:
  static constexpr TimeUs kLimit = 3 * kSecond;
  // limit: so long the others are told that the job is over before it ends without their goodbye.
  explicit Shutdown(TimeUs limit = kLimit) : limit_(limit) {}

  void OnFinished(TimeUs now);
  // The job was done before this process was started: so many others may come to hear of it, until
  // then.
  void WaitFor(int others, TimeUs until);
  void OnFailed(Status failure) { failure_ = std::move(failure); }
  // The job is over, and somebody has said goodbye.
  void OnBye();
  // Nobody is left to be told.
  bool AllKnow(const MemberTable& members) const { return others_ == 0 && members.AllHaveLeft(); }
  // A tick while the job is over: whether all know, or it has been told for long enough.
  bool IsOver(const MemberTable& members, TimeUs now);

  // What this process ends with.
  Status Outcome(Phase phase, const StopPoint& stop) const;
  // What members are told of the end, when chunk 0 is at `version`.
  void FillIn(Phase phase, const StopPoint& stop, int64_t version, wire::Header* header) const;

 private:
  TimeUs limit_;
  Status failure_;
  int others_ = 0;    // that are still to come
  TimeUs until_ = 0;  // 0: the job is not over
};

}  // namespace kumo
