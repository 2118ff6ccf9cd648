// What is made of a command line's description: its --help, a man page, and the words that a shell
// completes. The build asks each program for the last two (cmake/pages.cmake).
//
// Pure functions; thread-safe.
#pragma once

#include <string>

namespace kumo {

class CommandLine;

// For a person to read.
std::string HelpOf(const CommandLine& line);

std::string ManPageOf(const CommandLine& line);

// A line "[kumo launch]", then one for each positional argument, "FILE", and for each option,
// "--name PLACEHOLDER VALUE ...": without a placeholder where it is a flag, and with values where
// only these are allowed.
std::string CompletionWordsOf(const CommandLine& line);

}  // namespace kumo
