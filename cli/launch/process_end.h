// The processes that `kumo launch` starts, and how one of them ended.
//
// Values.
#pragma once

#include <compare>
#include <string>

namespace kumo {

struct ProcessId {
  enum class Role { kServer, kWorker };
  Role role = Role::kServer;
  int index = 0;

  std::string Name() const;  // "server-0", "worker-3"
  auto operator<=>(const ProcessId&) const = default;
};
// The one that coordinates.
inline constexpr ProcessId kServer0{ProcessId::Role::kServer, 0};

struct ProcessEnd {
  int code = 0;            // exit code; meaningless when signal is not 0
  int signal = 0;          // that killed it, or 0
  std::string exit_reporter;  // why, in its own words; may be ""
  std::string host{};      // where it ran; "": on this machine

  bool ok() const { return code == 0 && signal == 0; }
};

// "worker-1 ended with exit code 78 (bad configuration): its last words", "... was killed by
// SIGSEGV".
std::string Describe(const ProcessId& process, const ProcessEnd& end);

}  // namespace kumo
