#include "common/base/process/exit_code.h"

namespace kumo {

ExitCode ExitCodeOf(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return ExitCode::kDone;
    case StatusCode::kUnavailable:
    case StatusCode::kAborted:
    case StatusCode::kResourceExhausted:
      return ExitCode::kUnavailable;
    case StatusCode::kInternal:
      return ExitCode::kCrashed;
    case StatusCode::kInvalidArgument:
    case StatusCode::kFailedPrecondition:
    case StatusCode::kNotFound:
    case StatusCode::kDataLoss:
      return ExitCode::kBadConfiguration;
  }
  return ExitCode::kCrashed;
}

std::string ExitCodeText(int code) {
  const std::string number = std::to_string(code);
  switch (static_cast<ExitCode>(code)) {
    case ExitCode::kDone:
      return number + " (done)";
    case ExitCode::kCrashed:
      return number + " (crashed)";
    case ExitCode::kUsage:
      return number + " (usage)";
    case ExitCode::kUnavailable:
      return number + " (unavailable: start it again)";
    case ExitCode::kBadConfiguration:
      return number + " (bad configuration)";
  }
  return number;
}

}  // namespace kumo
