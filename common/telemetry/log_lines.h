// Log lines: the complete lines of a log.jsonl, for those who read it and those who write on in it.
// A crash may leave half a line at its end, and a foreign file lines of any length.
//
// Stateless; thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "common/base/file.h"
#include "common/base/status.h"

namespace kumo {

// Longer than any line of a log.
inline constexpr size_t kLongestLogLine = 64 << 10;

// Calls `visit` for each line that ends with a line end, without it; leaves longer ones out. The
// errors of Read, and the first one of `visit`.
Status ForEachLogLine(ReadableFile* log, const std::function<Status(const std::string&)>& visit);

}  // namespace kumo
