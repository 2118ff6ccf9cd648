// In what two networks differ: layer by layer, for people.
//
// A pure function; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "common/settings/experiment_text.h"

namespace kumo {

// What a network is compared for: a job that begins; training further, where it does not matter how
// tensors start; or using what was trained, where dropout and losses do nothing either.
enum class NetworkUse { kJob, kTraining, kUse };

// Networks as text protobuf (JobSpec::network). Of a layer "layer conv1" with its fields; then
// inputs and the layers' order. Names of networks and outputs do not count. None where they are the
// same, or where a text is empty: nobody knows.
std::vector<SettingChange> NetworkChanges(const std::string& then, const std::string& now,
                                          NetworkUse use);

}  // namespace kumo
