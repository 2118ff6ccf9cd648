// Source files of a staging: the files of a data set. The functions block while they read folders.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace kumo {

struct SourceFile {
  std::string path;         // relative to the source: "train/0001.jpg"
  uint64_t size = 0;        // bytes
  int64_t modified_ns = 0;  // since 1970

  bool operator==(const SourceFile&) const = default;
};

struct Source {
  std::string folder;             // root of the paths
  std::vector<SourceFile> files;  // sorted by path
};

// Lists the regular files of `source`, a folder or one file, following links. Skips names that
// begin with "..", where Kubernetes keeps the versions of a volume, and the folder of an earlier
// staging. NotFound if there is nothing; FailedPrecondition, naming it, for special files, dangling
// links, links to a folder above, names with control characters, and folders without files.
Result<Source> ListSource(const std::string& source);

// The current state of a file; the same errors.
Result<SourceFile> LookAtSourceFile(const std::string& folder, const std::string& path);

// The folder in the destination with the staging's record, lock and partial files.
inline constexpr char kStagingFolder[] = ".kumo-stage";

}  // namespace kumo
