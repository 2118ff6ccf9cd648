// Source checkpoint: the checkpoint in a folder that a user names. The folder is a checkpoint's, or
// a job's output (or checkpoints) folder, whose newest valid checkpoint is taken.
#pragma once

#include <string>

#include "common/base/file.h"
#include "common/base/status.h"

namespace kumo {

struct CheckpointFolder {
  std::string parent;  // `folder` in checkpoint.h
  std::string name;

  std::string path() const { return JoinPath(parent, name); }
};

// The folder of one checkpoint. Links are followed, as a checkpoint must have its own name.
CheckpointFolder FolderOfCheckpoint(const std::string& path);

// Verifies whole checkpoints if there are several. NotFound names the folders searched.
Result<CheckpointFolder> FindCheckpointAt(FileSystem& files, const std::string& path);

// True for the ending of a format of another program that Kumo does not read ("net.pt").
bool HasUnreadEnding(const std::string& path);

}  // namespace kumo
