// kumo status: one question to server 0 of a running job.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <random>
#include <utility>

#include "cli/command.h"
#include "cli/job_json.h"
#include "cli/job_table.h"
#include "common/base/clock.h"
#include "common/base/process/exit_code.h"
#include "common/job/transport/address.h"
#include "common/job/transport/zmq_transport.h"

namespace kumo {
namespace {

// The question again, in case the first was lost with a connection.
constexpr TimeUs kAskAgain = kSecond;

// Unavailable, naming the address, when no answer comes within timeout_ms.
Result<wire::JobStatus> AskStatus(const std::string& address, int timeout_ms) {
  KUMO_RETURN_IF_ERROR(ParseAddress(address).status());
  ZmqTransportOptions options;
  options.name = "client/" + std::to_string(std::random_device()());
  options.linger_ms = 0;
  KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<ZmqTransport> transport,
                        ZmqTransport::Make(std::move(options)));
  const PeerName server = ServerPeer(0);
  KUMO_RETURN_IF_ERROR(transport->Connect(server, address));
  const SteadyClock clock;
  const TimeUs limit = clock.NowUs() + timeout_ms * kMillisecond;
  TimeUs ask_at = clock.NowUs();
  bool connected = false;
  transport->OnConnected([&](const PeerName&) {
    connected = true;
    ask_at = clock.NowUs();
  });
  bool answered = false;
  wire::JobStatus status;
  const auto on_message = [&](const PeerName&, Message message) {
    if (message.header.type() != wire::STATUS_REPLY) return;
    answered = true;
    status = std::move(*message.header.mutable_job_status());
  };
  for (TimeUs now = clock.NowUs(); !answered && now < limit; now = clock.NowUs()) {
    if (now >= ask_at) {
      Message question;
      question.header.set_type(wire::STATUS);
      // Unavailable while the connection is being made: OnConnected says when to ask.
      (void)transport->Send(server, std::move(question));
      ask_at = now + kAskAgain;
    }
    transport->Poll(std::min(ask_at, limit) - now, on_message);
  }
  if (answered) return status;
  const std::string waited = " within " + std::to_string(timeout_ms) + " ms";
  if (!connected) {
    return Unavailable("nothing answers at " + address + waited +
                       "; is the job running, and is this its server 0?");
  }
  return Unavailable(address + " takes connections but has not answered" + waited +
                     "; is it server 0 of a kumo job?");
}

}  // namespace

int RunStatus(const CliEnvironment& environment, std::span<const std::string> args) {
  const LastWords last_words = environment.LastWordsOf("kumo status");
  std::string address;
  bool json = false;
  int timeout_ms = 3000;
  CommandLine line(
      "kumo status",
      "Asks server 0 of a running job: round, workers and what they compute, bytes of\n"
      "each shard.");
  line.AddPositional("ADDRESS", "Server 0, as kumo launch prints it: tcp://host:port or ipc://path",
                     /*required=*/true, &address);
  line.AddFlag("json", "Print JSON", &json);
  line.AddOption("timeout-ms", "MILLISECONDS", {.min = 1, .max = 3600000},
                 "Limit of waiting for the answer", &timeout_ms);
  line.AddNote("Exit codes: 0 answered, 64 wrong command line, 75 no answer.");
  const Status usage = line.Parse(args);
  if (!usage.ok()) return last_words.Say(ExitCode::kUsage, usage.message());
  if (line.help_asked()) {
    Print(environment, line.Help());
    return 0;
  }
  const Result<wire::JobStatus> status = AskStatus(address, timeout_ms);
  if (status.ok()) {
    std::fputs((json ? JobJson(*status) + "\n" : JobTable(*status, environment.columns)).c_str(),
               stdout);
    return 0;
  }
  // A malformed address is the command line's fault.
  if (status.status().code() == StatusCode::kInvalidArgument) {
    return last_words.Say(ExitCode::kUsage, status.status().message());
  }
  return last_words.Say(status.status());
}

}  // namespace kumo
