// Hosts of a job: host lists in the notations of users, mpirun and Slurm, and the placement of
// processes on hosts.
//
// Pure functions, except for ReadHostFile.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace kumo {

struct Host {
  std::string name;  // for ssh: "alpha", "me@alpha", "10.0.0.3"
  int slots = 1;     // workers before any host gets more than its slots

  bool operator==(const Host&) const = default;
};

// The name without the user, for addresses.
std::string AddressOf(const Host& host);

// Parses "alpha,me@beta:2,node[01-04,07]": names, slots after a colon, and ranges as in Slurm's
// $SLURM_JOB_NODELIST. InvalidArgument, with the faulty part, for other text, repeated names, more
// than 4096 hosts, and no hosts.
Result<std::vector<Host>> ParseHosts(std::string_view text);

// Reads mpirun's host file: one host per line, "alpha slots=4"; "#" begins a comment. The errors of
// ParseHosts, with file and line, and of reading a file.
Result<std::vector<Host>> ReadHostFile(const std::string& path);

// Placement of a job's processes on hosts.
struct HostPlacement {
  std::vector<std::string> servers;  // host name of each server
  std::vector<std::string> workers;
  // Listening address of each server: its port on all interfaces; the server's own address if that
  // is a loopback address, which other machines shall not reach.
  std::vector<std::string> binds;
};

// "tcp://alpha:7700", "tcp://beta:7700", "tcp://alpha:7701": servers in rotation over the hosts,
// with ports from `port` on.
std::vector<std::string> ServerAddresses(const std::vector<Host>& hosts, int servers, int port);

// Places servers by their addresses, and workers in rotation over the hosts with free slots; once
// all slots are taken, the rotation starts again. FailedPrecondition if an address belongs to none
// of the hosts, or is a loopback address, which processes on another host would take for their own.
Result<HostPlacement> Place(const std::vector<Host>& hosts, const std::vector<std::string>& servers,
                            int workers);

}  // namespace kumo
