// Which process of a job runs on which host.
//
// Pure functions.
#pragma once

#include <string>
#include <vector>

#include "cli/launch/host_list.h"
#include "common/base/status.h"

namespace kumo {

struct HostPlacement {
  std::vector<std::string> servers;  // the name of each server's host
  std::vector<std::string> workers;
  std::vector<std::string> binds;  // what each server listens at
};

// "tcp://alpha:7700", "tcp://beta:7700", "tcp://alpha:7701": one server a host, and from the first
// again; ports from `port` on.
std::vector<std::string> ServerAddresses(const std::vector<Host>& hosts, int servers, int port);

// Servers go where their addresses say; workers are dealt out one a host as long as the host has
// slots, and when all have as many as they have slots once more from the first. FailedPrecondition
// where an address is of no host of these.
Result<HostPlacement> Place(const std::vector<Host>& hosts, const std::vector<std::string>& servers,
                            int workers);

}  // namespace kumo
