// What there is to stage.
//
// Functions; they block while they read folders.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace kumo {

struct SourceFile {
  std::string path;         // below the source, as "train/0001.jpg"
  uint64_t size = 0;        // bytes
  int64_t modified_ns = 0;  // since 1970

  bool operator==(const SourceFile&) const = default;
};

struct Source {
  std::string folder;             // that the paths are below
  std::vector<SourceFile> files;  // by path
};

// The regular files of `source`, a folder or one file, with those that links lead to. Passed over
// are names that begin with "..", under which Kubernetes keeps the versions of a volume, and what a
// staging has left there. NotFound where there is nothing; FailedPrecondition, naming it, for what
// is neither file nor folder, a link that leads nowhere or in a circle, a name with a control
// character, and a folder without any file.
Result<Source> ListSource(const std::string& source);

// The file as it is now; the same errors.
Result<SourceFile> LookAtSourceFile(const std::string& folder, const std::string& path);

// The folder in a staged folder where a staging keeps its record, its lock and what is not whole
// yet.
inline constexpr char kStagingFolder[] = ".kumo-stage";

}  // namespace kumo
