// Runs a process on the cores that are near its GPU: those of the NUMA node that the card hangs on.
// Its pinned memory then lies on that node too, since a page lies where it is touched first, and
// copies to the card do not cross the link between the sockets, which several cards would share.
//
// The kernel names those cores in <sysfs>/bus/pci/devices/<bus id>/local_cpulist. Threads inherit
// the cores of the one that starts them, so pin before any thread is started.
//
// Free functions without state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace kumo {

// Ascending, each once.
using Cores = std::vector<int>;

// The kernel's way to write them: "0-3,8,10-11"; "" and "\n" are none. InvalidArgument, with the
// text, for anything else: ranges that run backwards, numbers above kHighestCore.
constexpr int kHighestCore = 65535;
Result<Cores> ParseCores(std::string_view text);
std::string FormatCores(const Cores& cores);

// Near a PCI device, by a bus id as "0000:1b:00.0", in capitals too. NotFound where the kernel does
// not say (a virtual machine, another system), FailedPrecondition where what it says makes no
// sense.
Result<Cores> CoresNear(std::string_view pci_bus_id, const std::string& sysfs = "/sys");

// What is to be done for a thread that may run on `allowed`, near a device on `near`: the cores to
// run on, or none when it is to be left as it is. Whoever started the process (taskset, a
// container) may have restricted it: it never gets more cores than it had, and keeps them all where
// none is near.
struct Placement {
  Cores cores;
  std::string reason;  // for the log: "pinned", or why not
};
Placement PlaceNear(const Cores& near, const Cores& allowed);

// The cores that the calling thread may run on. Internal, with the system's words.
Result<Cores> CoresOfThisThread();
Status RunThisThreadOn(const Cores& cores);

// All of the above; returns the line for the log: "cuda:1 is on NUMA node cores 16-31: pinned".
// `device` is only for that line.
Result<std::string> PinNear(const std::string& device, std::string_view pci_bus_id,
                            const std::string& sysfs = "/sys");

}  // namespace kumo
