// The running job that a person means: by its address, its experiment or its output folder.
#pragma once

#include <string>

#include "cli/command.h"
#include "cli/server_connection.h"
#include "common/base/status.h"
#include "common/settings/command_line.h"

namespace kumo {

// JOB and --keys, which all commands take that ask a running job.
class NamedJob {
 public:
  // environment is borrowed for life.
  explicit NamedJob(const CliEnvironment& environment) : environment_(environment) {}
  void AddTo(CommandLine* line);

  // InvalidArgument where JOB is nothing of the three.
  Status Check() const;
  // Where its server 0 is. The errors of an experiment; Unavailable where no job runs with that
  // output folder, FailedPrecondition where the one that does has not written down where it is.
  Result<JobAddress> Find() const;

 private:
  bool IsAddress() const { return job_.find("://") != std::string::npos; }
  std::string ExperimentFile() const;
  Result<JobAddress> OfFolder(const std::string& folder) const;

  const CliEnvironment& environment_;
  std::string job_;
  std::string keys_;
};

}  // namespace kumo
