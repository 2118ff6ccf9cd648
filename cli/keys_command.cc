// kumo keys: the keys with which a job's connections are encrypted, and its processes known.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "cli/command.h"
#include "common/base/file.h"
#include "common/base/process/exit_report.h"
#include "common/job/shard_map.h"
#include "common/transport/key_files.h"

namespace kumo {
namespace {

struct Arguments {
  std::string folder;
  int servers = 1;
  int workers = 0;
  bool shared_worker_key = false;
};

CommandLine MakeCommandLine(Arguments* args) {
  CommandLine line(
      "kumo keys",
      "Makes the keys of a job's servers, workers and clients in the folder DIR, and "
      "the allow\nlist that says whose they are. What is there already is kept: say it "
      "again with larger\nnumbers to add to it. cluster.keys = DIR uses them.");
  line.AddPositional("DIR", "The folder; it is made where it is not there", /*required=*/true,
                     &args->folder);
  line.AddOption("servers", "M", {.min = 1, .max = kMaxServers}, "Keys for servers 0 to M - 1",
                 &args->servers);
  line.AddOption("workers", "N", {.min = 0, .max = kMostKeyHolders},
                 "Keys for the workers named worker-0 to worker-(N - 1)", &args->workers);
  line.AddFlag("shared-worker-key", "One key for all workers, whatever their names",
               &args->shared_worker_key);
  line.AddNote(
      "Whoever can read a key can speak as its holder: give each host the allow-list and the keys "
      "of its\nown processes. Exit codes: 0 done, 64 wrong command line, 75 the disk is full, 78 "
      "DIR cannot be\nused, or what is in it is wrong.");
  return line;
}

bool HasWorker(const std::string& folder) {
  const Result<AllowList> list = ReadAllowList(folder);
  return list.ok() && std::ranges::any_of(list->entries(), [](const auto& entry) {
           return entry.first.role == KeyHolder::Role::kWorker;
         });
}

Status CheckArguments(const Arguments& args) {
  if (args.folder.empty()) return InvalidArgument("DIR is missing");
  if (args.workers > 0 || args.shared_worker_key || HasWorker(args.folder)) return OkStatus();
  return InvalidArgument(
      "no worker would have a key: say --workers N, for keys of their own, or "
      "--shared-worker-key, for one that all have");
}

std::vector<KeyHolder> Holders(const Arguments& args) {
  std::vector<KeyHolder> holders;
  for (int i = 0; i < args.servers; ++i) holders.push_back(ServerKey(i));
  for (int i = 0; i < args.workers; ++i) holders.push_back(WorkerKey(i));
  if (args.shared_worker_key) holders.push_back(kSharedWorkerKey);
  holders.push_back(kClientKey);
  return holders;
}

Status MakeKeys(const CliEnvironment& environment, const Arguments& args) {
  KUMO_ASSIGN_OR_RETURN(const std::vector<KeyHolder> made, AddKeys(args.folder, Holders(args)));
  for (const KeyHolder& holder : made) {
    std::printf("%s  the key of %s\n", JoinPath(args.folder, holder.FileName()).c_str(),
                holder.ToString().c_str());
  }
  if (made.empty()) std::printf("all of them have keys already: nothing was made\n");
  Print(environment, "\nkumo launch EXPERIMENT --set cluster.keys=" + args.folder +
                         "\nkumo status JOB --keys " + args.folder + "\n");
  return OkStatus();
}

}  // namespace

int RunKeys(const CliEnvironment& environment, std::span<const std::string> args) {
  const ExitReporter exit_reporter = environment.ExitReporterOf("kumo keys");
  Arguments arguments;
  CommandLine line = MakeCommandLine(&arguments);
  if (const auto end = ParseOrEnd(environment, exit_reporter, args, &line,
                                  [&] { return CheckArguments(arguments); }))
    return *end;
  const Status status = MakeKeys(environment, arguments);
  return status.ok() ? 0 : exit_reporter.Report(status);
}

}  // namespace kumo
