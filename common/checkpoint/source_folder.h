// The checkpoint that a person means by a folder: the folder itself, or the newest good one of the
// job whose output (or whose checkpoints) it holds.
#pragma once

#include <string>

#include "common/base/file.h"
#include "common/base/status.h"

namespace kumo {

struct CheckpointFolder {
  std::string parent;  // as `folder` of checkpoint.h
  std::string name;

  std::string path() const { return JoinPath(parent, name); }
};

// Reads whole checkpoints where there are several to choose from. NotFound says where it looked.
Result<CheckpointFolder> FindCheckpointAt(FileSystem& files, const std::string& path);

}  // namespace kumo
