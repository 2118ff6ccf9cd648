// CPU affinity: pins a process to the cores near its GPU, that is, to the GPU's NUMA node. Pages
// are allocated on the node of their first touch, so its pinned memory lies on that node too, and
// copies to the GPU do not cross the link between sockets, which several GPUs would share.
//
// The kernel lists those cores in <sysfs>/bus/pci/devices/<bus id>/local_cpulist. Threads inherit
// the affinity, so pin before any thread is started.
//
// Stateless functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace kumo {

// Core numbers, ascending and unique.
using Cores = std::vector<int>;

// Core lists in the kernel's syntax: "0-3,8,10-11"; "" and "\n" are empty. InvalidArgument, with
// the text, for other text, reversed ranges and numbers above kHighestCore.
constexpr int kHighestCore = 65535;
Result<Cores> ParseCores(std::string_view text);
std::string FormatCores(const Cores& cores);

// The cores near a PCI device with a bus id such as "0000:1b:00.0" (case-insensitive). NotFound if
// the kernel does not tell (virtual machine, another system), FailedPrecondition if its list is
// invalid.
Result<Cores> CoresNear(std::string_view pci_bus_id, const std::string& sysfs = "/sys");

// The placement of a thread that may run on `allowed` next to a device near `near`: the cores to
// pin to, or none to leave it alone. An existing restriction (taskset, container) is respected: the
// thread never gets more cores than it had, and keeps all of them if none is near.
struct Placement {
  Cores cores;
  std::string reason;  // for the log: "pinned", or the reason why not
};
Placement PlaceNear(const Cores& near, const Cores& allowed);

// The cores that the calling thread may run on. Internal, with the system's reason.
Result<Cores> CoresOfThisThread();
Status RunThisThreadOn(const Cores& cores);

// Pins the calling thread near a device and returns a line for the log: "cuda:1 is on NUMA node
// cores 16-31: pinned". `device` is only used in that line.
Result<std::string> PinNear(const std::string& device, std::string_view pci_bus_id,
                            const std::string& sysfs = "/sys");

}  // namespace kumo
