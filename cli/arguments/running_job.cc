#include "cli/arguments/running_job.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <random>
#include <system_error>
#include <utility>

#include "common/base/address.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/process/output_lock.h"
#include "common/checkpoint/source_checkpoint.h"
#include "common/settings/installed_experiments.h"
#include "common/settings/parser.h"
#include "common/transport/key_files.h"

namespace kumo {

void NamedJob::AddTo(CommandLine* line) {
  line->AddPositional("JOB",
                      "Output folder or experiment of the job, or the address of its server 0, as "
                      "printed by kumo launch: tcp://host:port or ipc://path",
                      /*required=*/true, &job_);
  line->AddOption("keys", "DIR", Allowed(),
                  "Folder of the job's keys (cluster.keys), with client.key and allow-list", &keys_,
                  "from the experiment, or none");
}

Status NamedJob::Check() const {
  if (IsAddress()) return ParseAddress(job_).status();
  std::error_code error;
  const bool there = std::filesystem::is_directory(job_, error) ||
                     std::filesystem::exists(ExperimentFile(), error);
  if (there) return OkStatus();
  return InvalidArgument("'" + job_ +
                         "' is neither an address (tcp://host:port or ipc://path) nor an existing "
                         "folder or experiment");
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
  const LockHolder holder = OutputLock::ReadHolder(files, folder);
  // If the holder has no kernel lock, only an answer tells whether it lives.
  if (!holder.unlocked) {
    const Status free = OutputLock::Probe(folder);
    if (free.ok()) {
      const Result<CheckpointFolder> last = FindCheckpointAt(files, folder);
      return Unavailable("no job is running with output.directory " + folder +
                         " on a disk that this machine sees" +
                         (last.ok() ? "; its last checkpoint is " + last->name : "") +
                         "; for a job on other hosts give the address that kumo launch printed");
    }
    if (free.code() != StatusCode::kUnavailable) return free;
  }
  const std::string& address = holder.address;
  if (address.empty()) {
    return FailedPrecondition("the job that runs with output.directory " + folder +
                              " has not written its address there; give the address that kumo "
                              "launch printed");
  }
  KUMO_RETURN_IF_ERROR(ParseAddress(address).status().WithContext(folder));
  return JobAddress{address, keys_};
}

namespace {

// Interval of repeated questions, in case a message was lost with its connection.
constexpr TimeUs kAskAgain = kSecond;

}  // namespace

Result<std::unique_ptr<ServerConnection>> ServerConnection::Open(const JobAddress& to,
                                                                 uint64_t job) {
  KUMO_RETURN_IF_ERROR(ParseAddress(to.address).status());
  ZmqTransportOptions options;
  options.name = "client/" + std::to_string(std::random_device()());
  options.framing.job = job;
  options.linger_ms = 0;
  KUMO_ASSIGN_OR_RETURN(options.keys, ReadKeys(to.keys, kClientKey));
  KUMO_ASSIGN_OR_RETURN(std::unique_ptr<ZmqTransport> transport,
                        ZmqTransport::Make(std::move(options)));
  KUMO_RETURN_IF_ERROR(transport->Connect(ServerPeer(0), to.address));
  return std::unique_ptr<ServerConnection>(new ServerConnection(to, std::move(transport)));
}

Result<Message> ServerConnection::Ask(wire::Type question, wire::Type answer, int timeout_ms) {
  const SteadyClock clock;
  const TimeUs limit = clock.NowUs() + timeout_ms * kMillisecond;
  TimeUs ask_at = clock.NowUs();
  bool connected = false;
  transport_->OnConnected([&](const PeerName&) {
    connected = true;
    ask_at = clock.NowUs();
  });
  std::optional<Message> answered;
  for (TimeUs now = clock.NowUs(); !answered && now < limit; now = clock.NowUs()) {
    if (now >= ask_at) {
      Message asked;
      asked.header.set_type(question);
      Say(std::move(asked));  // until the connection exists, OnConnected asks
      ask_at = now + kAskAgain;
    }
    Listen(std::min(ask_at, limit) - now, [&](Message message) {
      if (message.header.type() == answer) answered = std::move(message);
    });
  }
  transport_->OnConnected(nullptr);
  if (answered) return *std::move(answered);
  const std::string waited = " within " + std::to_string(timeout_ms) + " ms";
  if (!connected && to_.keys.empty()) {
    return Unavailable("no answer from " + to_.address + waited +
                       "; check that the job is running and that this is its server 0; a job with "
                       "keys answers only with --keys DIR");
  }
  if (!connected) {
    return Unavailable("no process with the key of server 0 in " + to_.keys + " answers at " +
                       to_.address + waited + "; check that the job is running with these keys");
  }
  return Unavailable(to_.address + " accepts connections but has not answered" + waited +
                     "; check that it is server 0 of a kumo job");
}

void ServerConnection::Listen(TimeUs timeout_us, const std::function<void(Message)>& on_message) {
  transport_->Poll(timeout_us,
                   [&](const PeerName&, Message message) { on_message(std::move(message)); });
}

}  // namespace kumo
