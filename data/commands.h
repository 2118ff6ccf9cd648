// Commands of kumo-data. Each takes the arguments after its name, reports errors and returns the
// exit code.
#pragma once

#include <span>
#include <string>

namespace kumo {

// Draws a data set.
int RunDigits(std::span<const std::string> args);
// Shows an experiment's data (`kumo data`).
int RunShow(std::span<const std::string> args);
// Reads all samples of an experiment and prints what is wrong with them as JSON (`kumo check
// --data`).
int RunSurvey(std::span<const std::string> args);
// Recognises a data set and prints the settings to read it, its figures and its form as JSON (`kumo
// new --data`).
int RunDescribe(std::span<const std::string> args);

}  // namespace kumo
