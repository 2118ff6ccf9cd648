#include "common/job/process_need.h"

#include <algorithm>

#include "common/base/cores.h"

namespace kumo {
namespace {

// Descriptors of any process: standard streams, log, signals, ZeroMQ's threads, HTTP (a page with a
// few readers), a name look-up, and files that are open for a moment.
constexpr int64_t kDescriptors = 32;
// Descriptors for a connection to a server: socket, queue of its messages, and its monitor's two
// queues; one more while it reconnects.
constexpr int64_t kDescriptorsToServer = 5;
// Threads of any process: main, two of ZeroMQ, HTTP.
constexpr int64_t kThreads = 4;

int64_t ReadingThreads(const Experiment::Data& data) {
  if (data.threads > 0) return data.threads;
  // Files of images may be decoded when they are needed; other samples are in memory.
  return TraitsOf(data.reader).image_files ? ReadingThreadsFor(UsableCores()) : 1;
}

}  // namespace

ProcessNeed NeedOfServer(const Experiment& experiment, int servers) {
  ProcessNeed need;
  need.whose = "a server";
  // Each process connects to each server; a lost connection may still be open when the next one
  // comes.
  need.descriptors = kDescriptors + 2 * experiment.cluster.workers + servers +
                     kDescriptorsToServer * std::min(servers - 1, 2);
  need.threads = kThreads + experiment.cluster.server_threads + 1;  // one for the disk
  need.settings = "cluster.workers = " + std::to_string(experiment.cluster.workers) +
                  ", cluster.server_threads = " + std::to_string(experiment.cluster.server_threads);
  return need;
}

ProcessNeed NeedOfWorker(const Experiment& experiment, int servers) {
  const int64_t reading = ReadingThreads(experiment.data);
  ProcessNeed need;
  need.whose = "a worker";
  need.descriptors = kDescriptors + kDescriptorsToServer * servers + 2 * reading;
  // Computation, layers, and the threads that read the training and the validation set.
  need.threads = kThreads + experiment.network.threads + 2 * reading;
  need.settings = std::to_string(servers) + (servers == 1 ? " server" : " servers") +
                  ", network.threads = " + std::to_string(experiment.network.threads) +
                  ", data.threads = " + std::to_string(experiment.data.threads);
  return need;
}

}  // namespace kumo
