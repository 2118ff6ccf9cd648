// New experiment file (`kumo new`): every setting with its description; the settings of the source
// experiment are set, the others are comments with their defaults.
//
// Pure functions; thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "common/settings/parser.h"

namespace kumo {

// The comment at the start of an experiment file, without '#', "" if there is none; each paragraph
// becomes one line. Lines that begin with a blank stay separate.
std::string LeadingComment(std::string_view text);
// Its first statement: up to the end of a sentence or to a colon.
std::string TitleOf(std::string_view leading_comment);

// name: of the new experiment, whose network is NAME.pbtxt beside it. from: without problems;
// origin: its name; about: its LeadingComment. Job name and output folder are not copied.
std::string NewExperimentText(const std::string& name, const LoadedExperiment& from,
                              const std::string& origin, const std::string& about);

}  // namespace kumo
