// The addresses of a job's servers on this machine.
//
// Functions without state.
#pragma once

#include <string>
#include <vector>

#include "cli/launch/reserved_port.h"
#include "common/base/status.h"
#include "common/settings/experiment.h"

namespace kumo {

// Free ports of 127.0.0.1, all different.
Result<std::vector<ReservedPort>> ReservePorts(int count);

// Whether this process could listen at `address`. FailedPrecondition when it is not this machine's,
// or would be open to others where `may_be_open` is not set (there are no keys, nor is that
// wanted).
Status TryAddress(const std::string& address, bool may_be_open);

// FailedPrecondition where cluster.servers names another machine than this one: kumo launch starts
// the processes of one machine.
Status IsForOneMachine(const Experiment& experiment);

}  // namespace kumo
