// Source checkpoint: the checkpoint in a folder that a user names. The folder is a checkpoint's, or
// a job's output (or checkpoints) folder, whose newest valid checkpoint is taken.
#pragma once

#include <string>
#include <vector>

#include "common/base/file.h"
#include "common/base/status.h"
#include "proto/checkpoint.pb.h"

namespace kumo {

struct CheckpointFolder {
  std::string parent;  // `folder` in checkpoint.h
  std::string name;

  std::string path() const { return JoinPath(parent, name); }
};

// Verifies whole checkpoints if there are several. NotFound names the folders searched.
Result<CheckpointFolder> FindCheckpointAt(FileSystem& files, const std::string& path);

// Origin of initial weights that another job trained, for people. Pure functions.
// Shortens an origin to printable texts and as many entries as a person reads; the last entry tells
// how many were dropped. Idempotent. Origins from peers must pass through it.
checkpoint::Origin Excerpt(const checkpoint::Origin& origin);

// "starts with 6 of 8 tensors from DIR", and one line per tensor that is initialised as usual, and
// per unused tensor of the source.
std::vector<std::string> LinesOf(const checkpoint::Origin& origin);

}  // namespace kumo
