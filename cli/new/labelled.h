// Labelled samples: the parts that experiments and networks for a label of images and of numbers
// share.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "cli/new/described_data.h"
#include "cli/new/experiment_lines.h"

namespace kumo {

int64_t EpochsOfLabelled(int64_t samples);
// The sections from [sync] on. Blocks and a warm-up in proportion to the number of samples.
void SetLabelledTraining(const DescribedData& data, int64_t epochs, ExperimentLines* lines);

// A layer's line in a network file. layer: kind and settings.
std::string LayerLine(const std::string& name, const std::string& layer);
// The input's line; field: that it takes, size: "extents: 4".
std::string InputLine(const std::string& field, const std::string& size);
// "name: ..." of a network file.
std::string NameLine(const std::string& name);

inline constexpr int64_t kHiddenRoot = 8;  // square root of the units of a hidden layer
inline constexpr int64_t kHiddenUnits = kHiddenRoot * kHiddenRoot;

// The last layer, and the loss. Outputs that are numbers begin with the labels' mean and with about
// their deviation, since small steps would not bring them there.
std::string LabelLayers(const DescribedData& data);

}  // namespace kumo
