// The experiment file that `kumo new` writes: every setting with what it does, those of the
// experiment that it is made of set, the others as comments at their defaults.
//
// Pure functions; thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "common/settings/parser.h"

namespace kumo {

// The comment that an experiment file begins with, without '#', "" where there is none; a paragraph
// is one line. Lines that begin with a blank stay lines of their own.
std::string LeadingComment(std::string_view text);
// What it says first: up to the end of a sentence or to a colon.
std::string TitleOf(std::string_view leading_comment);

// name: of the new experiment, which has its network in NAME.pbtxt beside it. from: without
// problems; origin: what it is called; about: its LeadingComment. The name and the output folder
// are not taken over: the new one has its own.
std::string NewExperimentText(const std::string& name, const LoadedExperiment& from,
                              const std::string& origin, const std::string& about);

}  // namespace kumo
