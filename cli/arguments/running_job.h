// Running job: finds server 0 of the job that a user names by its address, experiment or output
// folder, and talks to it.
//
// Owned by a command, used by its main thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "cli/arguments/environment.h"
#include "common/base/status.h"
#include "common/settings/command_line.h"
#include "common/transport/message.h"
#include "common/transport/zmq_transport.h"

namespace kumo {

struct JobAddress {
  std::string address;  // of server 0
  std::string keys;     // cluster.keys; "": none
};

// A client's connection to server 0 of a running job. One thread.
class ServerConnection {
 public:
  // job: Header.job of the messages; 0: unknown, then only public requests are answered.
  // InvalidArgument for an invalid address; the errors of ReadKeys.
  static Result<std::unique_ptr<ServerConnection>> Open(const JobAddress& to, uint64_t job = 0);

  // Repeats the question until an answer of that type arrives. Unavailable, naming the address,
  // after timeout_ms.
  Result<Message> Ask(wire::Type question, wire::Type answer, int timeout_ms);

  // Best effort: the message is lost while there is no connection.
  void Say(Message message) { (void)transport_->Send(ServerPeer(0), std::move(message)); }
  // Waits at most timeout_us for messages and passes them on.
  void Listen(TimeUs timeout_us, const std::function<void(Message)>& on_message);

 private:
  ServerConnection(JobAddress to, std::unique_ptr<ZmqTransport> transport)
      : to_(std::move(to)), transport_(std::move(transport)) {}

  const JobAddress to_;
  const std::unique_ptr<ZmqTransport> transport_;
};

// Arguments JOB and --keys of the commands that talk to a running job.
class NamedJob {
 public:
  // environment must outlive this object.
  explicit NamedJob(const CliEnvironment& environment) : environment_(environment) {}
  void AddTo(CommandLine* line);

  // InvalidArgument if JOB is none of the three.
  Status Check() const;
  // The address of server 0. The errors of reading an experiment; Unavailable if no job runs with
  // that output folder, FailedPrecondition if the running one has not written its address.
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
