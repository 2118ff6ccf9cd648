#include "cli/named_job.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "common/base/address.h"
#include "common/base/file.h"
#include "common/base/process/output_lock.h"
#include "common/checkpoint/source_checkpoint.h"
#include "common/settings/installed_experiments.h"
#include "common/settings/parser.h"

namespace kumo {

void NamedJob::AddTo(CommandLine* line) {
  line->AddPositional("JOB",
                      "Its output folder, its experiment, or the address of its server 0, as kumo "
                      "launch prints it: tcp://host:port or ipc://path",
                      /*required=*/true, &job_);
  line->AddOption("keys", "DIR", Allowed(),
                  "The job's folder of keys (cluster.keys): client.key and allow-list are needed",
                  &keys_, "the experiment's, or none");
}

Status NamedJob::Check() const {
  if (IsAddress()) return ParseAddress(job_).status();
  std::error_code error;
  const bool there = std::filesystem::is_directory(job_, error) ||
                     std::filesystem::exists(ExperimentFile(), error);
  if (there) return OkStatus();
  return InvalidArgument("'" + job_ +
                         "' is no address (tcp://host:port or ipc://path), and there is no such "
                         "folder nor experiment");
}

std::string NamedJob::ExperimentFile() const { return FindExperiment(job_, environment_.share); }

Result<JobAddress> NamedJob::Find() const {
  if (IsAddress()) return JobAddress{job_, keys_};
  std::error_code error;
  if (std::filesystem::is_directory(job_, error)) return OfFolder(job_);
  KUMO_ASSIGN_OR_RETURN(const Experiment experiment,
                        ParseExperiment(ExperimentFile(), {}, environment_.variables));
  JobAddress found;
  if (experiment.cluster.servers.empty()) {
    KUMO_ASSIGN_OR_RETURN(found, OfFolder(experiment.output.directory));
  } else {
    found.address = experiment.cluster.servers.front();
  }
  found.keys = keys_.empty() ? experiment.cluster.keys : keys_;
  return found;
}

Result<JobAddress> NamedJob::OfFolder(const std::string& folder) const {
  PosixFileSystem files;
  const Status free = OutputLock::Probe(folder);
  if (free.ok()) {
    const Result<CheckpointFolder> last = FindCheckpointAt(files, folder);
    return Unavailable("no job is running with output.directory " + folder +
                       " on a disk that this machine sees" +
                       (last.ok() ? "; its last checkpoint is " + last->name : "") +
                       ". A job on other hosts is asked at the address that kumo launch printed");
  }
  if (free.code() != StatusCode::kUnavailable) return free;
  const std::string address = OutputLock::ReadHolder(files, folder).address;
  if (address.empty()) {
    return FailedPrecondition("the job that runs with output.directory " + folder +
                              " has not written its address there: name that, as kumo launch "
                              "printed it");
  }
  KUMO_RETURN_IF_ERROR(ParseAddress(address).status().WithContext(folder));
  return JobAddress{address, keys_};
}

}  // namespace kumo
