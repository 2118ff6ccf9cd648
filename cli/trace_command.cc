// kumo trace: records a timeline of a running job.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>

#include "cli/arguments/running_job.h"
#include "cli/chrome_trace.h"
#include "cli/command.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/process/exit_report.h"
#include "common/base/process/signals.h"

namespace kumo {
namespace {

constexpr TimeUs kWishInterval = kSecond;
constexpr TimeUs kPoll = 100 * kMillisecond;
constexpr int kTimeoutMs = 3000;

struct TraceArguments {
  explicit TraceArguments(const CliEnvironment& environment) : job(environment) {}

  NamedJob job;
  std::string output;
  double seconds = 10;
};

CommandLine MakeCommandLine(TraceArguments* args) {
  CommandLine line(
      "kumo trace",
      "Records a timeline of the servers and workers of a running job on a common "
      "clock, for chrome://tracing\nand ui.perfetto.dev: minibatches, coding, "
      "pushes, pulls, waiting, aggregation, checkpoints, each with its round,\npartition and "
      "chunk. Ctrl-C ends the recording early. The job is not disturbed.\n"
      "    kumo trace my.conf --seconds 20 > trace.json");
  args->job.AddTo(&line);
  line.AddOption("seconds", "SECONDS", {.min = 0, .max = 3600, .min_excluded = true}, "Duration",
                 &args->seconds);
  line.AddOption("output", "FILE", Allowed(), "Output file", &args->output, "standard output");
  line.AddNote(
      "Exit codes: 0 written, 64 wrong command line, 75 no answer, no job in the folder, another "
      "trace is\nrunning, or the disk is full, 78 no key in DIR, an invalid experiment or no "
      "folder for FILE.");
  return line;
}

// Listens until the time is over, a signal arrives or server 0 refuses.
Status Record(const std::string& address, double seconds, ServerConnection* connection,
              ChromeTrace* trace) {
  StopSignals signals;
  const SteadyClock clock;
  const TimeUs end = clock.NowUs() + FromSeconds(seconds);
  TimeUs wish_at = clock.NowUs();
  Status refused;
  const auto on_message = [&](Message message) {
    const wire::Header& header = message.header;
    if (header.type() == wire::REFUSED) {
      refused = Unavailable(address + ": " + header.refusal().reason());
    } else if (header.type() == wire::TRACE_REPORT) {
      trace->Add(header.trace_report(), message.payload.bytes.data(), message.payload.bytes.size());
    }
  };
  for (TimeUs now = clock.NowUs(); now < end && refused.ok(); now = clock.NowUs()) {
    if (now >= wish_at) {
      Message wish;
      wish.header.set_type(wire::TRACE);
      connection->Say(std::move(wish));
      wish_at = now + kWishInterval;
    }
    connection->Listen(std::min({end - now, wish_at - now, kPoll}), on_message);
    if (!signals.Take().empty()) break;
  }
  // Ends the trace, so that the next one need not wait for this one's timeout.
  Message done;
  done.header.set_type(wire::TRACE);
  done.header.mutable_trace_order()->set_valid_us(0);
  connection->Say(std::move(done));
  connection->Listen(kPoll, [](const Message&) {});
  return refused;
}

// Checked before the recording, which may take an hour.
Status CheckFolder(const std::string& output) {
  const std::string folder = DirectoryOf(output);
  std::error_code error;
  if (output.empty() || std::filesystem::is_directory(folder, error)) return OkStatus();
  return NotFound("--output " + output + ": there is no folder " + folder);
}

Status Write(const TraceArguments& args, const std::string& json) {
  PosixFileSystem files;
  if (!args.output.empty()) return WriteFileAtomically(files, args.output, json);
  std::fwrite(json.data(), 1, json.size(), stdout);  // main looks whether all was written
  return OkStatus();
}

Status Trace(const TraceArguments& args) {
  KUMO_RETURN_IF_ERROR(CheckFolder(args.output));
  KUMO_ASSIGN_OR_RETURN(const JobAddress address, args.job.Find());
  uint64_t job = 0;
  {
    KUMO_ASSIGN_OR_RETURN(const auto stranger, ServerConnection::Open(address));
    KUMO_ASSIGN_OR_RETURN(const Message status,
                          stranger->Ask(wire::STATUS, wire::STATUS_REPLY, kTimeoutMs));
    job = status.header.job();
  }
  KUMO_ASSIGN_OR_RETURN(const auto connection, ServerConnection::Open(address, job));
  // Answered once the connection exists.
  KUMO_RETURN_IF_ERROR(connection->Ask(wire::STATUS, wire::STATUS_REPLY, kTimeoutMs).status());
  ChromeTrace trace;
  KUMO_RETURN_IF_ERROR(Record(address.address, args.seconds, connection.get(), &trace));
  if (trace.processes() == 0) {
    return Unavailable(address.address + " has sent no reports; has the job ended?");
  }
  KUMO_RETURN_IF_ERROR(Write(args, trace.Json()));
  std::fprintf(stderr, "%s spans of %zu processes; their clocks agree to %s\n",
               std::to_string(trace.spans()).c_str(), trace.processes(),
               (std::to_string(trace.uncertainty()) + " us").c_str());
  if (trace.processes() == 1) {
    std::fprintf(
        stderr,
        "kumo trace: only server 0 has reported; other processes join within a second or two, so "
        "increase --seconds\n");
  }
  if (trace.lost() > 0) {
    std::fprintf(stderr,
                 "kumo trace: %s spans or reports are missing, because more was recorded than "
                 "could be sent\n",
                 std::to_string(trace.lost()).c_str());
  }
  return OkStatus();
}

}  // namespace

int RunTrace(const CliEnvironment& environment, std::span<const std::string> args) {
  const ExitReporter exit_reporter = environment.ExitReporterOf("kumo trace");
  TraceArguments arguments(environment);
  CommandLine line = MakeCommandLine(&arguments);
  if (const auto end = ParseOrEnd(environment, exit_reporter, args, &line,
                                  [&] { return arguments.job.Check(); })) {
    return *end;
  }
  return exit_reporter.Report(Trace(arguments));
}

}  // namespace kumo
