// In what two networks differ: layer by layer, for people.
//
// A pure function; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "common/job/options/setting_changes.h"

namespace kumo {

// What a network is compared for: training it further, or using what was trained, where dropout and
// losses do nothing.
enum class NetworkUse { kTraining, kUse };

// Networks as text protobuf (JobSpec::network). Of a layer "layer conv1" with its fields; then
// inputs and the layers' order. Names of networks, outputs and how tensors start do not count. None
// where they are the same, or where a text is empty: nobody knows.
std::vector<SettingChange> NetworkChanges(const std::string& then, const std::string& now,
                                          NetworkUse use = NetworkUse::kTraining);

}  // namespace kumo
