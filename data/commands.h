// The commands of kumo-data. Each takes the arguments behind its name and returns the exit code;
// last words are said.
#pragma once

#include <span>
#include <string>

namespace kumo {

// Draws a data set.
int RunDigits(std::span<const std::string> args);
// Shows what an experiment's data are; `kumo data` calls it.
int RunShow(std::span<const std::string> args);

}  // namespace kumo
