// Texts that people write: experiments and networks.
//
// Functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/status.h"

namespace kumo {

// A whole file, without the byte order mark that some editors put before it. The messages of errors
// do not name the path: NotFound where it cannot be opened or is a folder, InvalidArgument for what
// is no file (a pipe, which nobody may ever write to), for one of more than `most_mib` MiB, of
// which no more is read, and for bytes that are no text: a name with a 0 in it would be another
// file's.
Result<std::string> ReadTextFile(const std::string& path, uint64_t most_mib);

}  // namespace kumo
