// Admission: conditions under which a process may join the job. CommonLevel compares the workers'
// instruction sets, SharedFolder the servers' output folders.
//
// One thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "common/base/instruction_set.h"
#include "common/base/status.h"
#include "common/transport/message.h"
#include "proto/wire.pb.h"
#include "server/protocol/actions.h"

namespace kumo {

// Common level: checks that all workers on CPUs compute with one instruction-set level, unless the
// experiment allows a mixture (network.instruction_set): otherwise the weights would depend on
// which worker computes what. The first worker decides; also workers that have left count, as
// their contributions do.
//
// Owned by the Coordinator.
class CommonLevel {
 public:
  explicit CommonLevel(InstructionSet setting) : may_differ_(setting == InstructionSet::kMixed) {}

  // FailedPrecondition, with both workers and their levels, if the sender of a hello may not join.
  Status Admits(const wire::Hello& hello) const;
  void OnJoined(const wire::Hello& hello);

 private:
  bool may_differ_;
  wire::Hello::Level level_ = wire::Hello::LEVEL_UNSPECIFIED;  // no worker on a CPU has joined
  std::string worker_;                                         // that decided
};

// Shared folder: checks that a server that joins has the output folder of server 0; or, if servers
// have disks of their own (checkpoint.disks), that it has another one.
//
// Each server saves its part of a checkpoint in its output folder, and a job that resumes reads all
// parts: with two folders every checkpoint would be useless. Server 0 writes a token into its
// folder before any process can join, and a server's hello says which token it finds. A server that
// looked before the token was there is asked to look again.
//
// Immutable; owned by the Coordinator.
class SharedFolder {
 public:
  // token: of server 0, on `host`, in `directory`; 0: there is none, and every server is admitted.
  SharedFolder(uint64_t token, std::string directory, std::string host, bool private_disks = false)
      : token_(token),
        directory_(std::move(directory)),
        host_(std::move(host)),
        private_disks_(private_disks) {}

  // Whether the sender of a hello may join; false if it was asked to look first. FailedPrecondition
  // if a server has looked since `generation` asked, and has the wrong folder.
  Result<bool> Admits(const PeerName& from, const wire::Hello& hello, uint32_t generation,
                      StepContext* context) const;

 private:
  uint64_t token_;
  std::string directory_;
  std::string host_;
  bool private_disks_;
};

}  // namespace kumo
