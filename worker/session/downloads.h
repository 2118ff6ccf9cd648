// Weight download: the installed version of each chunk, the pulled chunks that are not installed
// yet, and the chunks still to be pulled.
//
// Pulled chunks are kept until their version is the one to compute from; one version at a time is
// installed, after the block before has ended.
//
// Owned by a Rounds; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "common/transport/message.h"
#include "worker/session/job_shape.h"
#include "worker/session/leases.h"
#include "worker/session/step_context.h"

namespace kumo {

class WeightDownload {
 public:
  // shape must outlive this object.
  explicit WeightDownload(const JobShape* shape);

  // Stores the answer to an open pull (asked). Returns false, and logs, if the answer is of another
  // chunk or version or is no code of the chunk: the pull then stays open and is repeated.
  bool OnChunk(const wire::Header& asked, const Message& message);

  struct Reached {
    bool complete = false;  // all chunks are installed
    // From chunk 0, if it was installed in this call: the job stops, or leases move, after the last
    // round that starts from this version.
    bool stop = false, move = false;
  };
  // Installs the chunks of a version that have arrived, and pulls the missing ones unless they are
  // already asked for.
  // whole: the version itself, and not older weights that a round may start from on arrival.
  Reached Reach(wire::Vector vector, int64_t version, bool whole, WorkerStepContext* context);
  // Pulls a version that will be reached next, while a block is computed from the installed one.
  void AskAhead(wire::Vector vector, int64_t version, WorkerStepContext* context);
  // A pull was closed without weights: Reach must pull the missing chunks again, and not by way of
  // versions before, which may be gone.
  void AskAgain();
  // By chunk: contributions that the installed start has, in async mode (Header.applied).
  const std::vector<int64_t>& applied() const { return sides_[wire::START].applied; }
  // True if the last round that starts from the installed version ends with a checkpoint.
  bool save() const { return save_; }

  // The generation or the membership has ended: its versions no longer count.
  void Forget();

 private:
  // State of one vector. Handling a message takes constant time, whatever the number of chunks.
  struct Side {
    std::vector<int64_t> installed;  // by chunk: version, or -1
    std::vector<int64_t> applied;    // by chunk, of the installed numbers
    int64_t whole = -1;              // the version at which all chunks are installed, or -1
    std::vector<Message> arrived;    // not installed yet
    int64_t asked = -1;              // the version whose missing chunks are pulled
    int missing = 0;                 // chunks not installed at that version
  };
  bool IsOf(const wire::Header& answer, const Chunk& chunk, size_t bytes) const;
  std::optional<Relay> RelayIn(const wire::Header& answer) const;
  bool SameNumbers(const wire::Header& asked, const Chunk& chunk) const;
  void Install(const Message& message, Side* side, Reached* reached, WorkerStepContext* context);
  void AskFor(wire::Vector vector, int64_t version, bool whole, WorkerStepContext* context);
  int64_t StepTowards(wire::Vector vector, int64_t version) const;

  const JobShape* shape_;
  Side sides_[2];  // by vector
  bool save_ = false;
};

// State download: the carried state of partitions, on its way from the servers to the worker that
// now computes them. Each array is requested from its shard, kept until all arrays of the partition
// have arrived, and then adopted.
//
// Owned by a Rounds; one thread.
class StateDownload {
 public:
  // shape must outlive this object.
  explicit StateDownload(const JobShape* shape) : shape_(shape) {}

  // Requests the arrays that have not arrived and are not requested yet; does nothing if the
  // partition carries no state.
  void AskFor(int partition, const Lease& lease, WorkerStepContext* context);
  // Stores the answer to a request. Returns false if its length is wrong; the request then stays
  // open.
  bool OnState(const wire::Header& asked, const Payload& payload);
  // Returns what has arrived, for the trainer. round: the next one of the partition.
  AdoptAction Take(int partition, int64_t round);
  // The open requests of the partition were dropped: AskFor must request its arrays again.
  void AskAgain(int partition) { asked_.erase(partition); }
  void Forget(int partition);
  void ForgetAll();

 private:
  const JobShape* shape_;
  std::set<int> asked_;                                  // partitions
  std::map<std::tuple<int, int, int>, Payload> states_;  // partition, chunk, array
};

}  // namespace kumo
