#include "common/settings/worker_program.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>
#include <system_error>

#include "common/base/file.h"
#include "common/base/shell_word.h"

namespace kumo {
namespace {

// Path of a program; "" if it cannot be executed.
std::string FindProgram(const std::string& name, const std::string& path) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0 ? name : "";
  std::istringstream folders(path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string program = JoinPath(folder.empty() ? "." : folder, name);
    if (access(program.c_str(), X_OK) == 0) return program;
  }
  return "";
}

// For Python: the folder of Kumo's package before the others, and output that is written at once.
std::vector<std::pair<std::string, std::string>> PythonVariables(const std::string& share,
                                                                 const Variables& variables) {
  std::string folders = JoinPath(share, "python");
  if (const std::string others = ValueOf(variables, "PYTHONPATH"); !others.empty()) {
    folders += ":" + others;
  }
  return {{"PYTHONPATH", folders}, {"PYTHONUNBUFFERED", "1"}};
}

}  // namespace

Result<std::vector<std::string>> WorkerProgram(const Experiment& experiment,
                                               const Variables& variables) {
  KUMO_ASSIGN_OR_RETURN(std::vector<std::string> words, WordsOfCommand(experiment.worker.command));
  const std::string path = FindProgram(words.front(), ValueOf(variables, "PATH"));
  if (path.empty()) {
    const bool named = words.front().find('/') != std::string::npos;
    return FailedPrecondition("worker.command = " + experiment.worker.command + ": " +
                              words.front() +
                              (named ? " does not exist or cannot be executed"
                                     : " is in no folder of PATH; name it by its path"));
  }
  words.front() = path;
  return words;
}

Result<std::vector<std::string>> RemoteWorkerProgram(const Experiment& experiment,
                                                     const std::string& share,
                                                     const Variables& variables) {
  std::vector<std::string> words = {"/usr/bin/env"};
  for (const auto& [name, value] : PythonVariables(share, variables)) {
    words.push_back(name + "=" + value);
  }
  KUMO_ASSIGN_OR_RETURN(const std::vector<std::string> program,
                        WordsOfCommand(experiment.worker.command));
  words.insert(words.end(), program.begin(), program.end());
  return words;
}

std::vector<std::pair<std::string, std::string>> WorkerEnvironment(const ProgramPlace& place,
                                                                   const Variables& variables) {
  std::string lines;
  for (const std::string& set : place.sets) lines += set + "\n";
  auto environment = PythonVariables(place.share, variables);
  std::error_code error;  // without a working folder paths stay relative
  const std::filesystem::path file = std::filesystem::absolute(place.file, error);
  environment.emplace_back("KUMO_EXPERIMENT", error ? place.file : file.string());
  environment.emplace_back("KUMO_FOLDER", std::filesystem::current_path(error).string());
  environment.emplace_back("KUMO_SETTINGS", lines);
  environment.emplace_back("KUMO_WORKER_NAME", place.name);
  if (!place.device.empty()) environment.emplace_back("KUMO_DEVICE", place.device);
  if (!place.http.empty()) environment.emplace_back("KUMO_HTTP", place.http);
  return environment;
}

void SetIdleMark(const std::string& file) {
  if (file.empty()) return;
  const int fd = open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644);
  if (fd >= 0) close(fd);
}

void RemoveIdleMark(const std::string& file) {
  if (!file.empty()) unlink(file.c_str());
}

}  // namespace kumo
