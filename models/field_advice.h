// Advice for an unknown field of a network file: the likely field, by spelling and by the names in
// other programs ("Dense" is fully_connected here, "units" is outputs).
//
// Pure functions; thread-safe.
#pragma once

#include <string>
#include <string_view>

#include <google/protobuf/descriptor.h>

namespace kumo {

// "; did you mean fully_connected?", or else "; it has name, fully_connected, ...".
std::string FieldAdvice(const google::protobuf::Descriptor& message, std::string_view field);

// An error of the text format's parser in plain words; for an unknown field, "Layer
// has no field Dense; did you mean fully_connected?", and for a layer that Kumo lacks the nearest
// way to express it (missing_layers.h).
std::string Explained(const std::string& error);

}  // namespace kumo
