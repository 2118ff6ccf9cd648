// kumo stage: copies a data set from a slow or shared disk to a local disk.
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>

#include "cli/command.h"
#include "cli/stage/source_files.h"
#include "cli/stage/staging.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/printable.h"
#include "common/base/process/exit_report.h"
#include "common/base/process/output_lock.h"
#include "common/base/process/signals.h"
#include "common/telemetry/console.h"

namespace kumo {
namespace {

constexpr int kMostJobs = 64;
constexpr int kLockIntervalMs = 200;
constexpr TimeUs kLineInterval = 10 * kSecond;  // between progress lines without a terminal

struct StageArguments {
  std::string source, destination;
  StagingOptions options;
};

CommandLine MakeCommandLine(StageArguments* args) {
  CommandLine line(
      "kumo stage",
      "Copies a data set to a disk of this machine, with checksums. A repeated call keeps intact "
      "files and\nresumes where the last call ended. Concurrent calls with one DST wait for each "
      "other: one copies, the others\nfind all files there.");
  line.AddPositional("SRC",
                     std::string("Data set: a folder or a file, for example of a mounted bucket"),
                     /*required=*/true, &args->source);
  line.AddPositional("DST", std::string("Destination folder: new, empty, or staged before"),
                     /*required=*/true, &args->destination);
  line.AddOption("jobs", "N", {.min = 1, .max = kMostJobs},
                 "Number of files at a time; more hide the latency of a network file system",
                 &args->options.jobs);
  line.AddFlag("quick", "Compare staged files by size and time only, without reading them",
               &args->options.quick);
  line.AddNote(
      "Exit codes: 0 all files are staged, 64 wrong command line, 75 stopped, the disk is full, or "
      "a "
      "file\nchanged while it was copied (run it again), 78 SRC or DST cannot be used.");
  return line;
}

// Foreign files must be neither mixed with the data set nor removed like staged files.
Status CheckDestination(FileSystem& files, const StageArguments& args) {
  std::error_code error;
  const auto source = std::filesystem::weakly_canonical(args.source, error);
  const auto destination = std::filesystem::weakly_canonical(args.destination, error);
  const auto inside = [](const std::filesystem::path& inner, const std::filesystem::path& outer) {
    return (inner / "").string().starts_with((outer / "").string());
  };
  if (inside(destination, source) || inside(source, destination)) {
    return FailedPrecondition("SRC and DST must be different folders, none inside the other");
  }
  if (!std::filesystem::exists(destination, error)) return OkStatus();
  KUMO_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(args.destination));
  for (const std::string& name : names) {
    if (name == kStagingFolder) return OkStatus();
  }
  if (names.empty()) return OkStatus();
  return FailedPrecondition(args.destination + " has files that were not staged (" + names.front() +
                            "); choose a new folder");
}

// Differs between two boots of the machine; "" if the system does not tell.
std::string BootId() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

Status Stopped(const std::vector<int>& signals) {
  return Aborted(std::string("stopped by ") + SignalName(signals.front()) +
                 "; call it again to resume");
}

// Waits while another process stages into `folder`.
Result<std::unique_ptr<OutputLock>> TakeLock(const std::string& folder, const StageArguments& args,
                                             StopSignals* signals) {
  for (bool told = false;;) {
    auto lock = OutputLock::Take(folder);
    if (lock.ok() || lock.status().code() != StatusCode::kUnavailable) return lock;
    if (!told) std::printf("waits for another kumo stage into %s\n", args.destination.c_str());
    told = true;
    std::fflush(stdout);
    pollfd readable{signals->fd(), POLLIN, 0};
    poll(&readable, 1, kLockIntervalMs);
    if (const auto came = signals->Take(); !came.empty()) return Stopped(came);
  }
}

std::string ResultText(const StagingProgress& progress, const std::string& destination,
                       double seconds) {
  std::string text = destination + ": " + std::to_string(progress.files) + " files, " +
                     HumanBytes(progress.bytes) + "; copied " +
                     std::to_string(progress.copied_files) + " of them";
  if (progress.copied_files > 0) text += " in " + HumanDuration(seconds);
  if (progress.removed_files > 0) {
    text += ", removed " + std::to_string(progress.removed_files) + " that SRC no longer has";
  }
  return text;
}

Status CheckSource(const std::string& source) {
  if (source.find("://") == std::string::npos) return OkStatus();
  return InvalidArgument(source +
                         " is a URL, but SRC must be a folder or file of this machine; mount the "
                         "bucket and stage from the mount");
}

Status Stage(const StageArguments& args) {
  StopSignals signals;
  PosixFileSystem files;
  KUMO_ASSIGN_OR_RETURN(Source source, ListSource(args.source));
  KUMO_RETURN_IF_ERROR(CheckDestination(files, args));
  const std::string folder = JoinPath(args.destination, kStagingFolder);
  KUMO_RETURN_IF_ERROR(files.CreateDirectories(folder));
  KUMO_ASSIGN_OR_RETURN(const auto lock, TakeLock(folder, args, &signals));
  KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<Staging> staging,
                        Staging::Plan(&files, std::move(source), args.destination, args.options));

  FdConsole console(STDOUT_FILENO);
  ProgressView view(&console);
  const SteadyClock clock;
  const TimeUs began = clock.NowUs();
  const auto seconds = [&] { return static_cast<double>(clock.NowUs() - began) / kSecond; };
  TimeUs next_line = began + kLineInterval;
  std::vector<int> came;
  const auto tick = [&](const StagingProgress& progress) {
    const std::string text = ProgressText(progress, seconds());
    if (console.Width() > 0) {
      view.ShowBar(text.substr(0, console.Width() - 1));
    } else if (clock.NowUs() >= next_line) {
      view.ShowLine(text);
      next_line = clock.NowUs() + kLineInterval;
    }
    if (came.empty()) came = signals.Take();
    return came.empty();
  };
  const Status done = staging->Run(tick);
  view.RemoveBar();
  console.Finish();
  const StagingProgress progress = staging->progress();
  for (const std::string& path : progress.damaged) {
    std::fprintf(stderr, "kumo stage: %s had changed since it was staged; copied it again\n",
                 JoinPath(args.destination, path).c_str());
  }
  if (!came.empty()) return Stopped(came);
  KUMO_RETURN_IF_ERROR(done);
  std::printf("%s\n", ResultText(progress, args.destination, seconds()).c_str());
  return OkStatus();
}

}  // namespace

int RunStage(const CliEnvironment& environment, std::span<const std::string> args) {
  const ExitReporter exit_reporter = environment.ExitReporterOf("kumo stage");
  StageArguments arguments;
  CommandLine line = MakeCommandLine(&arguments);
  if (const auto end = ParseOrEnd(environment, exit_reporter, args, &line,
                                  [&] { return CheckSource(arguments.source); }))
    return *end;
  arguments.options.boot = BootId();
  return exit_reporter.Report(Stage(arguments));
}

}  // namespace kumo
