// New experiment for a data set (`kumo new --data`): a short file and a network that learns there.
//
// Pure functions; thread-safe.
#pragma once

#include <string>

#include "cli/new/described_data.h"

namespace kumo {

// "1200 training samples of 3x64x64, 133 validation samples"
std::string SizesText(const DescribedData& data);

// The experiment file NAME.conf: about 25 settings, with the reason of each that follows from the
// data.
std::string ExperimentFor(const std::string& name, const DescribedData& data);

// Name of the installed experiment whose network such data get, with the number of tokens or
// classes of the data: of a text and of images with objects or masks. Empty: NetworkFor writes one.
std::string ModelFor(const DescribedData& data);

// The network file NAME.pbtxt. model: the network of ModelFor.
std::string NetworkFor(const std::string& name, const DescribedData& data,
                       const std::string& model);

}  // namespace kumo
