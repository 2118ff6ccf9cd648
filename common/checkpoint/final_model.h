// The model that a job leaves where output.final_model says: a copy of its last checkpoint, in the
// layout of checkpoint.h, so that whatever reads checkpoints reads it.
//
//   <to>/round-000000001200/    the checkpoint's files, and as the last one its MANIFEST
//
// A folder is for one job: what another job has left in it is not touched. Functions; nothing is
// kept between two calls.
#pragma once

#include <string>

#include "common/base/file.h"
#include "common/base/status.h"

namespace kumo {

// Whether the job may leave its model in the folder `to`, which need not be there.
// FailedPrecondition where another job's is in it, and what CheckWritable says.
Status CheckFinalModelFolder(FileSystem& files, const std::string& to, const std::string& job);

// Copies the checkpoint `name` of `folder` to `to` and reads the copy again; one that is there
// already stays. Returns its path. A copy that was left halfway has no manifest, so it is no
// checkpoint; the next call goes on with it. The errors of CheckFinalModelFolder, of reading
// the checkpoint and of writing.
Result<std::string> PutFinalModel(FileSystem& files, const std::string& folder,
                                  const std::string& name, const std::string& to);

}  // namespace kumo
