// The weights that a worker has: which version of each chunk is installed, what has been pulled and
// is to be installed, and what is still to be pulled.
//
// What is pulled is kept until its version is the one that is computed from: one version at a time
// is installed, when the block before has ended.
//
// Owned by a Rounds; one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "common/transport/message.h"
#include "worker/session/job_shape.h"
#include "worker/session/step_context.h"

namespace kumo {

class Weights {
 public:
  // shape is borrowed for life.
  explicit Weights(const JobShape* shape);

  // The answer to a pull that is open (asked). False for what is not what was asked for, or no code
  // of the chunk, which is logged: the pull stays open, and is repeated in time.
  bool OnChunk(const wire::Header& asked, const Message& message);

  struct Reached {
    bool complete = false;  // all chunks are installed
    // Chunk 0 was installed just now, and says that the job stops, or that leases move, after the
    // round that starts from this version.
    bool stop = false, move = false;
  };
  // Installs what has come of a version, and asks for the rest, where that is not asked for
  // already.
  Reached Reach(wire::Vector vector, int64_t version, WorkerStepContext* context);
  // A pull is not open any more, and was not answered with weights: Reach is to ask for whatever is
  // missing.
  void AskAgain();
  // The round that starts from the installed version ends with a checkpoint.
  bool save() const { return save_; }

  // A generation, or a membership, is over: its versions are others.
  void Forget();

 private:
  // Of one vector. What a message does costs no more where there are many chunks.
  struct Side {
    std::vector<int64_t> installed;  // by chunk: version, or -1
    std::vector<Message> arrived;    // not installed yet
    int64_t asked = -1;              // the version whose missing chunks are asked for
    int missing = 0;                 // chunks that are not installed at that
  };
  void Install(const Message& message, Side* side, Reached* reached, WorkerStepContext* context);
  void AskFor(wire::Vector vector, int64_t version, WorkerStepContext* context);

  const JobShape* shape_;
  Side sides_[2];  // by vector
  bool save_ = false;
};

}  // namespace kumo
