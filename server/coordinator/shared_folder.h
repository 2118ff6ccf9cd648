// Whether a server that joins has this one's output folder, as it must; or, where servers have
// disks of their own (checkpoint.disks), that it has another one.
//
// Each server saves its part of a checkpoint there, and a job that resumes reads them all: with two
// folders every checkpoint would be useless. Server 0 writes a token into its folder before anybody
// joins, and a server's hello says which one it finds. One that looked before server 0 was there is
// asked to look again.
//
// Owned by the Coordinator; one thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "common/base/status.h"
#include "common/transport/message.h"
#include "server/protocol/actions.h"

namespace kumo {

class SharedFolder {
 public:
  // token: what server 0, on `host`, has written into `directory`; 0: nothing, and nothing is
  // compared.
  SharedFolder(uint64_t token, std::string directory, std::string host, bool private_disks = false)
      : token_(token),
        directory_(std::move(directory)),
        host_(std::move(host)),
        private_disks_(private_disks) {}

  // Whether the sender of a hello may join; false: it is asked to look first. FailedPrecondition
  // where a server has looked since `generation` asked, and found something else.
  Result<bool> Admits(const PeerName& from, const wire::Hello& hello, uint32_t generation,
                      StepContext* context) const;

 private:
  uint64_t token_;
  std::string directory_;
  std::string host_;
  bool private_disks_;
};

}  // namespace kumo
