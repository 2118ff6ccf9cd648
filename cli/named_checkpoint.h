// The checkpoint that a person means: best, latest, a name, or a folder.
#pragma once

#include <string>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/settings/experiment.h"

namespace kumo {

// Its folder. text: "latest", "best" (by checkpoint.best), the name of one below
// output.directory/checkpoints or its round's number, or a folder anywhere, of a checkpoint or with
// checkpoints in it (the newest good one). NotFound says what there is instead, FailedPrecondition
// that there is no best one.
Result<std::string> FindNamedCheckpoint(FileSystem& files, const Experiment& experiment,
                                        const std::string& text);

}  // namespace kumo
