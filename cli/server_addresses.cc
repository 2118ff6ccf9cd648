#include "cli/server_addresses.h"

#include <unistd.h>

#include "common/base/file.h"
#include "common/job/transport/address.h"

namespace kumo {

Result<std::vector<std::string>> PickServers(int servers) {
  // All are held until all are known, so they differ.
  std::vector<Listener> listeners;
  std::vector<std::string> addresses;
  Status status;
  for (int i = 0; i < servers && status.ok(); ++i) {
    Result<Listener> listener = ListenTcp({Address::Kind::kTcp, "127.0.0.1", 0, ""}, false);
    status = listener.status();
    if (!listener.ok()) break;
    addresses.push_back(listener->address.ToString());
    listeners.push_back(*listener);
  }
  for (const Listener& listener : listeners) close(listener.fd);
  if (!status.ok()) return status.WithContext("picking ports for the servers");
  return addresses;
}

Result<std::string> PickHttpAddress() {
  KUMO_ASSIGN_OR_RETURN(const std::vector<std::string> picked, PickServers(1));
  return picked.front().substr(std::string_view("tcp://").size());
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
