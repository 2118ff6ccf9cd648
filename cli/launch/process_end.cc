#include "cli/launch/process_end.h"

#include "common/base/process/exit_report.h"
#include "common/base/process/signals.h"

namespace kumo {

std::string ProcessId::Name() const {
  return (role == Role::kServer ? "server-" : "worker-") + std::to_string(index);
}

std::string Describe(const ProcessId& process, const ProcessEnd& end) {
  std::string text = process.Name();
  if (!end.host.empty()) text += " on " + end.host;
  if (end.signal != 0) {
    text += std::string(" was killed by ") + SignalName(end.signal) + " (signal " +
            std::to_string(end.signal) + ")";
  } else {
    text += " ended with exit code " + ExitCodeText(end.code);
  }
  return end.exit_reporter.empty() ? text : text + ": " + end.exit_reporter;
}

}  // namespace kumo
