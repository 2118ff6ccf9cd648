// `kumo` as a whole: its commands, as --help, as a man page, and as words that a shell completes.
#pragma once

#include <string>

#include "cli/command.h"

namespace kumo {

// format: "--help", "-h", "help", "--help=man" or "--help=words", of which the last also has the
// words of each command. Prints to stdout; false for any other.
bool PrintOverview(const CliEnvironment& environment, const std::string& format);

}  // namespace kumo
