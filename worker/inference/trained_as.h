// Whether a checkpoint is used as it was trained: an experiment file may have changed since, or a
// --set of the training be forgotten, and what comes out would be wrong without a word.
//
// Pure functions; thread-safe.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/settings/experiment.h"
#include "proto/checkpoint.pb.h"

namespace kumo {

// FailedPrecondition where the network, as text protobuf, is another one of the same tensors, in
// what counts for its use; names the layers. Not where `sets`, "section.key=value" of the command
// line, say network.file.
Status CheckSameNetwork(const checkpoint::Manifest& manifest, const std::string& network,
                        const std::vector<std::string>& sets);

// FailedPrecondition where samples would become other inputs (data.scale, data.mean, ...) by a
// setting that `sets` do not say; names what it was.
Status CheckSameInputs(const checkpoint::Manifest& manifest, const Experiment& experiment,
                       const std::vector<std::string>& sets);

// FailedPrecondition where the data call a class otherwise than the checkpoint does: an image
// folder that has got another class, a text with other characters. Fine where one says nothing.
Status CheckSameClasses(const checkpoint::Manifest& manifest, std::span<const std::string> names);

}  // namespace kumo
