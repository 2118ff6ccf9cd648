// Unwraps a result; ends the process on an error, because a benchmark has no caller to report it
// to.
#pragma once

#include <cstdlib>
#include <iostream>
#include <string>
#include <utility>

#include "common/base/status.h"

namespace kumo {

[[noreturn]] inline void Fail(const std::string& why) {
  std::cerr << why << '\n';
  std::exit(1);
}
inline void Take(const Status& status) {
  if (!status.ok()) Fail(status.message());
}
template <typename T>
T Take(Result<T> result) {
  if (!result.ok()) Fail(result.status().message());
  return std::move(result).value();
}

}  // namespace kumo
