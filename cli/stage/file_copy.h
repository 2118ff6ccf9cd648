// One file, copied or read.
//
// Functions; they block. Thread-safe, as long as no two write one file.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "common/base/file.h"
#include "common/base/status.h"

namespace kumo {

// Is told of bytes that have been read; false ends it.
using OnBytes = std::function<bool(uint64_t bytes)>;

// The CRC-32C of a file's first `size` bytes. DataLoss where it is shorter; Aborted where
// `on_bytes` says no.
Result<uint32_t> ChecksumOf(FileSystem& files, const std::string& path, uint64_t size,
                            const OnBytes& on_bytes);

// Copies the `size` bytes of `from` to `to`, which has them all and durably, or is left as it was.
// Until then they are in `part`, in which a copy goes on that was ended. Returns their CRC-32C,
// for which what is in `part` is read. `on_bytes` as above; Aborted likewise. The errors of reading
// and of writing files.
Result<uint32_t> CopyFile(FileSystem& files, const std::string& from, uint64_t size,
                          const std::string& part, const std::string& to, const OnBytes& on_bytes);

}  // namespace kumo
