// Differences of two networks, layer by layer, for people.
//
// A pure function; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "common/settings/experiment_text.h"
#include "proto/model.pb.h"

namespace kumo {

// Purpose of a comparison. kJob: a new job, for which everything counts. kTraining: further
// training, for which initialisers do not count. kUse: use of trained weights, for which dropout
// and losses do not count either.
enum class NetworkUse { kJob, kTraining, kUse };

// Networks are text protobufs (JobSpec::network). A change of a layer is named "layer conv1" with
// its fields; inputs and the order of layers follow. Names of networks and outputs do not count.
// None if the networks are equal, or if a text is empty (unknown).
std::vector<SettingChange> NetworkChanges(const std::string& then, const std::string& now,
                                          NetworkUse use);

// Removes the settings of training that trained weights do not depend on: trainable, and all
// factors. Whether biases and scales decay stays, since decayed tensors lie together
// (ParameterLayout).
void ClearFactors(model::Network* network);

}  // namespace kumo
