#include "tests/fuzz/server_job.h"

#include <iterator>
#include <utility>

#include "common/job/protocol.h"
#include "tests/sim/forger.h"

namespace kumo::fuzz {
namespace {

class Recorder : public sim::Interference {
 public:
  std::vector<Message> FromWorker(int worker, int server, Message message) override {
    arrivals[server].push_back({static_cast<uint8_t>(worker), message});
    return {std::move(message)};
  }
  void BetweenServers(int from, int to, const Message& message) override {
    arrivals[to].push_back({static_cast<uint8_t>(2 + from), message});
  }
  std::vector<Arrival> arrivals[2];
};

std::vector<ServerCase> Recorded() {
  std::vector<ServerCase> cases;
  for (const bool replicas : {false, true}) {
    Recorder recorder;
    sim::SimSettings job = sim::JobWithAForger(replicas);
    job.interference = &recorder;
    (void)sim::Cluster(job, nullptr).Run();
    job.experiment.cluster.servers.assign(2, "ipc://sim");
    for (int server = 0; server < 2; ++server) {
      ServerCase one;
      one.settings.index = server;
      one.settings.identity = IdentityOf(job.experiment);
      one.settings.experiment = job.experiment;
      one.settings.process.incarnation = 1;
      one.settings.folder = 1;  // the simulation's, too
      one.framing.job = one.settings.identity.JobId();
      one.arrivals = std::move(recorder.arrivals[server]);
      for (Arrival& arrival : one.arrivals) {
        arrival.message.header.set_protocol(kProtocolVersion);
        arrival.message.header.set_job(one.framing.job);
      }
      cases.push_back(std::move(one));
    }
  }
  return cases;
}

}  // namespace

const std::vector<ServerCase>& ServerCases() {
  static const std::vector<ServerCase> cases = Recorded();
  return cases;
}

}  // namespace kumo::fuzz
