// Which checkpoint a job goes on from, by its checkpoint.resume setting.
#pragma once

#include <optional>

#include "common/file.h"
#include "common/options/experiment.h"
#include "common/status.h"
#include "proto/checkpoint.pb.h"

namespace kumo {

// The verified manifest, or none when the job starts from the beginning. A damaged newest
// checkpoint or one of another experiment is refused by name (FailedPrecondition), with the last
// good one offered; never silently passed over. Blocks while it reads the checkpoint.
Result<std::optional<checkpoint::Manifest>> FindCheckpointToResume(FileSystem& files,
                                                                   const Experiment& experiment);

}  // namespace kumo
