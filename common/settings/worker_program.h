// Worker program: the program of worker.command, which is started in the place of kumo-worker, and
// the environment by which it finds the job (worker/library/kumo_worker.h).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/settings/config_file.h"
#include "common/settings/experiment.h"

namespace kumo {

// A program's place in a job.
struct ProgramPlace {
  std::string share;              // Installation::share of Kumo's programs
  std::string file;               // the experiment's
  std::vector<std::string> sets;  // "section.key=value", over the settings of the file
  std::string name;               // of the worker
  std::string device;             // "": none is chosen
  std::string http;               // address of its metrics; "": none
};

// The words of worker.command; the first one is the program's path, which is looked up in PATH if
// it contains no '/'. Requires experiment.worker.OwnsModel(). FailedPrecondition if there is no
// such program.
Result<std::vector<std::string>> WorkerProgram(const Experiment& experiment,
                                               const Variables& variables);

// The same on another host, whose own PATH counts: kumo remote passes the KUMO_ variables of
// WorkerEnvironment on, and `env` sets the others. share: as in ProgramPlace, on that host. The
// errors of WordsOfCommand.
Result<std::vector<std::string>> RemoteWorkerProgram(const Experiment& experiment,
                                                     const std::string& share,
                                                     const Variables& variables);

// Additions to the environment of such a process. The folder of Kumo's Python package is put before
// the others of PYTHONPATH. The program may change its working folder: the experiment's path is
// absolute, and KUMO_FOLDER is the present working folder.
std::vector<std::pair<std::string, std::string>> WorkerEnvironment(const ProgramPlace& place,
                                                                   const Variables& variables);

// Idle mark: a file that exists while such a process takes no part in a job that goes on. The
// environment variable has its path. `kumo launch` creates the file before it starts the process;
// the worker library removes it when the process becomes a worker, and creates it again if that
// worker is closed early, or was ended by an error, unless it was asked to leave. Errors are
// ignored: a file that is missing means that the process took part.
inline constexpr char kIdleMark[] = "KUMO_IDLE_MARK";
void SetIdleMark(const std::string& file);
void RemoveIdleMark(const std::string& file);

}  // namespace kumo
