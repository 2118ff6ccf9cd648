// kumo status: asks server 0 of a running job for its status.
#include <cstdio>
#include <utility>

#include "cli/arguments/running_job.h"
#include "cli/command.h"
#include "cli/job_table.h"
#include "common/base/process/exit_report.h"
#include "common/telemetry/job_json.h"

namespace kumo {
namespace {

Result<wire::JobStatus> AskStatus(const NamedJob& job, int timeout_ms) {
  KUMO_ASSIGN_OR_RETURN(const JobAddress address, job.Find());
  KUMO_ASSIGN_OR_RETURN(const auto connection, ServerConnection::Open(address));
  KUMO_ASSIGN_OR_RETURN(Message answer,
                        connection->Ask(wire::STATUS, wire::STATUS_REPLY, timeout_ms));
  return std::move(*answer.header.mutable_job_status());
}

}  // namespace

int RunStatus(const CliEnvironment& environment, std::span<const std::string> args) {
  const ExitReporter exit_reporter = environment.ExitReporterOf("kumo status");
  NamedJob job(environment);
  bool json = false;
  int timeout_ms = 3000;
  CommandLine line(
      "kumo status",
      "Shows the progress of a running job: round, workers and their partitions, traffic of\n"
      "each shard.");
  job.AddTo(&line);
  line.AddFlag("json", "Print JSON", &json);
  line.AddOption("timeout-ms", "MILLISECONDS", {.min = 1, .max = 3600000},
                 "Time limit for the answer", &timeout_ms);
  line.AddNote(
      "Exit codes: 0 answered, 64 wrong command line, 75 no answer or no job in the folder, 78 no "
      "key in DIR\nor an invalid experiment.");
  if (const auto end =
          ParseOrEnd(environment, exit_reporter, args, &line, [&] { return job.Check(); })) {
    return *end;
  }
  const Result<wire::JobStatus> status = AskStatus(job, timeout_ms);
  if (status.ok()) {
    std::fputs((json ? JobJson(*status) + "\n" : JobTable(*status, environment.columns)).c_str(),
               stdout);
    return 0;
  }
  return exit_reporter.Report(status.status());
}

}  // namespace kumo
