// kumo keys: makes the keys that encrypt a job's connections and identify its processes.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "cli/command.h"
#include "common/base/file.h"
#include "common/base/process/exit_report.h"
#include "common/base/shell_word.h"
#include "common/job/shard_map.h"
#include "common/transport/key_files.h"

namespace kumo {
namespace {

struct KeysArguments {
  std::string folder;
  int servers = 1;
  int workers = 0;
  bool shared_worker_key = false;
};

CommandLine MakeCommandLine(KeysArguments* args) {
  CommandLine line(
      "kumo keys",
      "Makes the keys of a job's servers, workers and clients, and the allow list of "
      "their public\nkeys, in the folder DIR. Existing keys are kept: run it again with "
      "larger numbers to add\nkeys. Use them with cluster.keys = DIR.");
  line.AddPositional("DIR", "Folder of the keys; created if necessary", /*required=*/true,
                     &args->folder);
  line.AddOption("servers", "M", {.min = 1, .max = kMaxServers}, "Keys for servers 0 to M - 1",
                 &args->servers);
  line.AddOption("workers", "N", {.min = 0, .max = kMostKeyHolders},
                 "Keys for the workers named worker-0 to worker-(N - 1)", &args->workers);
  line.AddFlag("shared-worker-key", "Make one key for all workers, independent of their names",
               &args->shared_worker_key);
  line.AddNote(
      "The reader of a key can act as its holder: give each host only the allow list and the keys "
      "of its\nown processes. Exit codes: 0 done, 64 wrong command line, 75 the disk is full, 78 "
      "DIR is unusable\nor its contents are invalid.");
  return line;
}

bool HasWorker(const std::string& folder) {
  const Result<AllowList> list = ReadAllowList(folder);
  return list.ok() && std::ranges::any_of(list->entries(), [](const auto& entry) {
           return entry.first.role == KeyHolder::Role::kWorker;
         });
}

Status ValidateArguments(const KeysArguments& args) {
  if (args.folder.empty()) return InvalidArgument("DIR is missing");
  if (args.workers > 0 || args.shared_worker_key || HasWorker(args.folder)) return OkStatus();
  return InvalidArgument(
      "no worker would have a key: add --workers N for individual keys, or --shared-worker-key for "
      "one common key");
}

std::vector<KeyHolder> Holders(const KeysArguments& args) {
  std::vector<KeyHolder> holders;
  for (int i = 0; i < args.servers; ++i) holders.push_back(ServerKey(i));
  for (int i = 0; i < args.workers; ++i) holders.push_back(WorkerKey(i));
  if (args.shared_worker_key) holders.push_back(kSharedWorkerKey);
  holders.push_back(kClientKey);
  return holders;
}

Status MakeKeys(const CliEnvironment& environment, const KeysArguments& args) {
  KUMO_ASSIGN_OR_RETURN(const std::vector<KeyHolder> made, AddKeys(args.folder, Holders(args)));
  for (const KeyHolder& holder : made) {
    std::printf("%s  the key of %s\n", JoinPath(args.folder, holder.FileName()).c_str(),
                holder.ToString().c_str());
  }
  if (made.empty()) std::printf("all keys exist already; nothing was made\n");
  Print(environment, "\nkumo launch EXPERIMENT --set " + ShellWord("cluster.keys=" + args.folder) +
                         "\nkumo status JOB --keys " + ShellWord(args.folder) + "\n");
  return OkStatus();
}

}  // namespace

int RunKeys(const CliEnvironment& environment, std::span<const std::string> args) {
  const ExitReporter exit_reporter = environment.ExitReporterOf("kumo keys");
  KeysArguments arguments;
  CommandLine line = MakeCommandLine(&arguments);
  if (const auto end = ParseOrEnd(environment, exit_reporter, args, &line,
                                  [&] { return ValidateArguments(arguments); }))
    return *end;
  const Status status = MakeKeys(environment, arguments);
  return status.ok() ? 0 : exit_reporter.Report(status);
}

}  // namespace kumo
