#include "cli/preflight.h"

#include <unistd.h>

#include <cstdio>

#include "common/transport/address.h"

namespace kumo {
namespace {

// Slots of every rule and optimiser: momentum has one, Adam two.
constexpr int64_t kMostSlots = 2;

// For logs, curves and a small network where its size is not known.
constexpr int64_t kLeastFreeBytes = int64_t{64} << 20;

std::string Mebibytes(uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  return text;
}

// FailedPrecondition tells a name or number that is not this machine's.
Status TryAddress(const Address& address, bool insecure) {
  if (address.kind == Address::Kind::kIpc) {
    KUMO_RETURN_IF_ERROR(CheckIpcFree(address));
    if (address.path.front() == '@') return OkStatus();
    PosixFileSystem files;
    return files.CheckWritable(DirectoryOf(address.path));
  }
  KUMO_ASSIGN_OR_RETURN(const Listener listener, ListenTcp(address, insecure));
  close(listener.fd);
  return OkStatus();
}

}  // namespace

void CheckAddresses(const Experiment& experiment, Preflight* result) {
  const std::vector<std::string>& servers = experiment.cluster.servers;
  if (servers.empty()) {
    result->passed.push_back("ports: kumo launch will pick free ones on 127.0.0.1");
  }
  for (size_t i = 0; i < servers.size(); ++i) {
    const std::string server = "server " + std::to_string(i) + " at " + servers[i];
    const Result<Address> address = ParseAddress(servers[i]);
    if (!address.ok()) {
      result->problems.push_back("cluster.servers: " + address.status().message());
      continue;
    }
    const Status status = TryAddress(*address, experiment.cluster.insecure);
    const bool elsewhere = address->kind == Address::Kind::kTcp && !IsLoopbackHost(address->host) &&
                           status.code() == StatusCode::kFailedPrecondition;
    if (status.ok()) {
      result->passed.push_back(server + ": the address is free");
    } else if (elsewhere) {
      result->passed.push_back(server + ": not checked, another machine's (" + status.message() +
                               ")");
    } else {
      result->problems.push_back("cluster.servers: " + status.message());
    }
  }
}

int64_t CheckpointBytes(const Experiment& experiment, int64_t parameters) {
  const int64_t arrays =
      2 + kMostSlots + static_cast<int64_t>(experiment.sync.partitions) * (1 + kMostSlots);
  return parameters * arrays * static_cast<int64_t>(sizeof(float));
}

void CheckOutput(const Experiment& experiment, int64_t parameters, FileSystem* files,
                 Preflight* result) {
  const std::string& directory = experiment.output.directory;
  const Status writable = files->CheckWritable(directory);
  if (!writable.ok()) {
    result->problems.push_back("output.directory = " + directory + ": cannot be written: " +
                               writable.message() + "; set output.directory to a folder that can");
    return;
  }
  result->passed.push_back("output " + directory + ": can be written");
  const Result<uint64_t> free = files->FreeBytes(directory);
  if (!free.ok()) {
    result->problems.push_back("output.directory = " + directory + ": " + free.status().message());
    return;
  }
  const uint64_t needed =
      kLeastFreeBytes + CheckpointBytes(experiment, parameters) * (experiment.checkpoint.keep + 1);
  const std::string numbers = Mebibytes(*free) + " free, " + Mebibytes(needed) + " needed for " +
                              std::to_string(experiment.checkpoint.keep) +
                              " checkpoints kept, one being written, and logs";
  if (*free < needed) {
    result->problems.push_back("output.directory = " + directory + ": the disk is too full: " +
                               numbers + "; free some, lower checkpoint.keep, or set another");
  } else {
    result->passed.push_back("disk: " + numbers);
  }
}

}  // namespace kumo
