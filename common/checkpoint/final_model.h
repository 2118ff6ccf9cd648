// Final model (output.final_model): a copy of a job's last checkpoint in the layout of
// checkpoint.h, for all readers of checkpoints.
//
//   <to>/round-000000001200/    the checkpoint's files, and as the last one its MANIFEST
//
// A folder is for one job: another job's model is never overwritten. Stateless functions.
#pragma once

#include <string>

#include "common/base/file.h"
#include "common/base/status.h"

namespace kumo {

// Checks that the job may put its model into the folder `to`, which need not exist.
// FailedPrecondition if it holds another job's model; the errors of CheckWritable.
Status CheckFinalModelFolder(FileSystem& files, const std::string& to, const std::string& job);

// Copies the checkpoint `name` of `folder` to `to`, verifies the copy and returns its path; an
// existing copy stays. An incomplete copy has no manifest and so is no checkpoint; the next call
// completes it. The errors of CheckFinalModelFolder, of reading the checkpoint and of writing.
Result<std::string> PutFinalModel(FileSystem& files, const std::string& folder,
                                  const std::string& name, const std::string& to);

}  // namespace kumo
