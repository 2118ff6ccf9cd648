// Commands of kumo-data. Each takes the arguments after its name, reports errors and returns the
// exit code.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "common/base/json.h"
#include "common/base/status.h"
#include "common/settings/command_line.h"

namespace kumo {

// Draws a data set.
int RunDigits(std::span<const std::string> args);
// Draws pictures with masks and several labels.
int RunScenes(std::span<const std::string> args);
// Shows an experiment's data (`kumo data`).
int RunShow(std::span<const std::string> args);
// Reads all samples of an experiment and prints what is wrong with them as JSON (`kumo check
// --data`).
int RunSurvey(std::span<const std::string> args);
// Recognises a data set and prints the settings to read it, its figures and its form as JSON (`kumo
// new --data`).
int RunDescribe(std::span<const std::string> args);

// Reads the arguments and runs the command, unless they ask for its help. Logs to stderr. program:
// for messages, "kumo data".
int RunCommand(const char* program, std::span<const std::string> args, CommandLine* line,
               const std::function<Status()>& command);
// Likewise for a command that another program started: the JSON object of its report, or of its
// error in the field "error", is its only output.
int RunForProgram(const char* program, std::span<const std::string> args, CommandLine* line,
                  const std::function<Result<JsonFields>()>& report_of);

}  // namespace kumo
