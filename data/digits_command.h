// kumo-data digits: draws a data set.
#pragma once

#include <string>
#include <vector>

namespace kumo {

// args: all of the program's. The exit code; last words are said.
int RunDigits(std::vector<std::string> args);

}  // namespace kumo
