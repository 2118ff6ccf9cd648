#include "common/base/process/cpu_affinity.h"

#include <sched.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>

#include "common/base/text.h"

namespace kumo {
namespace {

// Removes and returns a number at the start of *text.
std::optional<int> TakeCore(std::string_view* text) {
  const std::optional<int> core = TakeNumber<int>(text);
  return core && *core >= 0 && *core <= kHighestCore ? core : std::nullopt;
}

bool TakeCharacter(char expected, std::string_view* text) {
  if (!text->starts_with(expected)) return false;
  text->remove_prefix(1);
  return true;
}

}  // namespace

Result<Cores> ParseCores(std::string_view text) {
  const Status bad = InvalidArgument("'" + std::string(text) + "' is no core list like 0-3,8");
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) {
    text.remove_suffix(1);
  }
  std::vector<bool> named;
  while (!text.empty()) {
    const std::optional<int> first = TakeCore(&text);
    const std::optional<int> last = TakeCharacter('-', &text) ? TakeCore(&text) : first;
    if (!first || !last || *last < *first) return bad;
    if (std::ssize(named) <= *last) named.resize(*last + 1);
    std::fill(named.begin() + *first, named.begin() + *last + 1, true);
    if (!text.empty() && (!TakeCharacter(',', &text) || text.empty())) return bad;
  }
  Cores cores;
  for (int core = 0; core < std::ssize(named); ++core) {
    if (named[core]) cores.push_back(core);
  }
  return cores;
}

std::string FormatCores(const Cores& cores) {
  std::string text;
  for (size_t begin = 0; begin < cores.size();) {
    size_t end = begin + 1;
    while (end < cores.size() && cores[end] == cores[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text += std::to_string(cores[begin]);
    if (end - begin > 1) text += '-' + std::to_string(cores[end - 1]);
    begin = end;
  }
  return text;
}

Result<Cores> CoresNear(std::string_view pci_bus_id, const std::string& sysfs) {
  const std::string path = sysfs + "/bus/pci/devices/" + LowerCase(pci_bus_id) + "/local_cpulist";
  // FileSystem cannot read such files, because they report no length.
  std::ifstream file(path);
  std::string line;
  if (!file) return NotFound(path + " does not exist");
  std::getline(file, line);
  const Result<Cores> cores = ParseCores(line);
  if (!cores.ok()) return FailedPrecondition(path + ": " + cores.status().message());
  return *cores;
}

Placement PlaceNear(const Cores& near, const Cores& allowed) {
  Cores both;
  std::set_intersection(near.begin(), near.end(), allowed.begin(), allowed.end(),
                        std::back_inserter(both));
  if (near.empty()) return {{}, "not pinned: the kernel lists no core"};
  if (both == allowed) return {{}, "not pinned: this process already runs only on these cores"};
  if (both.empty()) {
    return {{}, "not pinned: this process was restricted to cores " + FormatCores(allowed)};
  }
  if (both != near) return {both, "pinned to " + FormatCores(both) + ", the allowed ones of them"};
  return {both, "pinned"};
}

Result<Cores> CoresOfThisThread() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) {
    return Internal(std::string("sched_getaffinity: ") + std::strerror(errno));
  }
  Cores cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

Status RunThisThreadOn(const Cores& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) {
    if (core < CPU_SETSIZE) CPU_SET(core, &set);
  }
  if (sched_setaffinity(0, sizeof(set), &set) == 0) return OkStatus();
  return Internal("sched_setaffinity to cores " + FormatCores(cores) + ": " + std::strerror(errno));
}

Result<std::string> PinNear(const std::string& device, std::string_view pci_bus_id,
                            const std::string& sysfs) {
  KUMO_ASSIGN_OR_RETURN(const Cores near, CoresNear(pci_bus_id, sysfs));
  KUMO_ASSIGN_OR_RETURN(const Cores allowed, CoresOfThisThread());
  const Placement placement = PlaceNear(near, allowed);
  if (!placement.cores.empty()) KUMO_RETURN_IF_ERROR(RunThisThreadOn(placement.cores));
  return device + " is on NUMA node cores " + FormatCores(near) + ": " + placement.reason;
}

}  // namespace kumo
