#include "cli/server_addresses.h"

#include <unistd.h>

#include <utility>

#include "common/base/address.h"
#include "common/base/file.h"

namespace kumo {

Result<std::vector<ReservedPort>> ReservePorts(int count) {
  std::vector<ReservedPort> ports;
  for (int i = 0; i < count; ++i) {
    KUMO_ASSIGN_OR_RETURN(ReservedPort port, ReservedPort::Take());
    ports.push_back(std::move(port));
  }
  return ports;
}

Status TryAddress(const std::string& text, bool may_be_open) {
  KUMO_ASSIGN_OR_RETURN(const Address address, ParseAddress(text));
  if (address.kind == Address::Kind::kIpc) {
    KUMO_RETURN_IF_ERROR(CheckIpcFree(address));
    if (address.path.front() == '@') return OkStatus();
    PosixFileSystem files;
    return files.CheckWritable(DirectoryOf(address.path));
  }
  KUMO_ASSIGN_OR_RETURN(const Listener listener, ListenTcp(address, may_be_open));
  close(listener.fd);
  return OkStatus();
}

Status IsForOneMachine(const Experiment& experiment) {
  for (const std::string& text : experiment.cluster.servers) {
    KUMO_ASSIGN_OR_RETURN(const Address address, ParseAddress(text));
    if (address.kind == Address::Kind::kIpc || IsLoopbackHost(address.host)) continue;
    return FailedPrecondition("cluster.servers names " + text +
                              ", which is not this machine: kumo launch --hosts starts "
                              "processes on others, and --set cluster.servers= trains on this "
                              "machine alone");
  }
  return OkStatus();
}

}  // namespace kumo
