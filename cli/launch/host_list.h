// The hosts that a job is to run on, as a person, mpirun or Slurm writes them.
//
// Pure functions, but for ReadHostFile.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace kumo {

struct Host {
  std::string name;  // as ssh takes it: "alpha", "me@alpha", "10.0.0.3"
  int slots = 1;     // workers on it before any host gets one too many

  bool operator==(const Host&) const = default;
};

// The name without the user: where its servers are found.
std::string AddressOf(const Host& host);

// "alpha,me@beta:2,node[01-04,07]": names, slots behind a colon, and ranges as in Slurm's
// $SLURM_JOB_NODELIST. InvalidArgument, with the part that is wrong, for anything else, a name
// twice, more than 4096 hosts, and none.
Result<std::vector<Host>> ParseHosts(std::string_view text);

// mpirun's host file: a host a line, "alpha slots=4"; "#" begins a comment. The errors of
// ParseHosts, with file and line, and those of reading a file.
Result<std::vector<Host>> ReadHostFile(const std::string& path);

}  // namespace kumo
