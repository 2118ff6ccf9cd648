// Fleet: a coordinator under test, and the processes that it believes to exist.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "server/coordinator/coordinator.h"
#include "tests/common/job/loss_and_accuracy.h"
#include "tests/server/shard/shard_harness.h"

namespace kumo::test {

struct Fleet {
  Fleet(const Job& small, int number_of_servers,
        std::optional<checkpoint::Manifest> restored = std::nullopt, TimeUs start = 1000 * kSecond,
        bool finished = false)
      : job(small), servers(number_of_servers), now(start), plan(job.plan()) {
    for (int s = 0; s < servers; ++s) {
      job.experiment.cluster.servers.push_back("ipc://server-" + std::to_string(s));
    }
    const uint32_t generation = restored ? restored->generation() + 1 : 1;
    coordinator.emplace(CoordinatorStart{.experiment = job.experiment,
                                         .identity = IdentityOf(job.experiment),
                                         .host = "here",
                                         .generation = generation,
                                         .finished = finished},
                        std::move(restored), now);
  }

  // Makes one call, and takes the actions that it returns.
  template <typename Call>
  auto Do(Call call) {
    StepContext context{now, {}};
    auto result = call(&context);
    Take(std::move(context.actions));
    return result;
  }
  Status Hello(const PeerName& from, const wire::Hello& hello) {
    return Do(
        [&](StepContext* context) { return coordinator->OnHello(from, hello, context).status(); });
  }
  Status Send(const PeerName& from, const wire::Header& header) {
    return Do([&](StepContext* context) { return coordinator->OnMessage(from, header, context); });
  }

  // The first worker's hello brought the spec; every server is there.
  void Learn() {
    const ShardMap map(job.spec.layout, servers, job.experiment.cluster.chunk_kib * 1024);
    coordinator->OnSpec(plan, map, job.spec);
    for (int s = 1; s < servers; ++s) {
      wire::Hello hello;
      hello.set_role(wire::Hello::SERVER);
      hello.set_server_index(s);
      hello.set_incarnation(1);
      hello.set_host("host-" + std::to_string(s));
      ASSERT_TRUE(Hello(ServerPeer(s), hello).ok());
    }
    Report(coordinator->generation().start_version);
  }
  void Report(int64_t version) {
    wire::ServerReport report;
    report.set_ready(true);
    report.set_version(version);
    for (int s = 0; s < servers; ++s) Report(s, report);
  }
  void Report(int server, const wire::ServerReport& report) {
    wire::Header header;
    header.set_type(wire::HEARTBEAT);
    *header.mutable_server_report() = report;
    ASSERT_TRUE(Send(ServerPeer(server), header).ok());
  }
  PeerName Join(const std::string& name, uint64_t incarnation = 1, int64_t started_ms = 0) {
    const PeerName peer = "worker/" + name + "/" + std::to_string(incarnation);
    wire::Hello hello;
    hello.set_role(wire::Hello::WORKER);
    hello.set_name(name);
    hello.set_incarnation(incarnation);
    hello.set_boot("boot");
    hello.set_started_ms(started_ms);
    hello.set_host("host of " + name);
    EXPECT_TRUE(Hello(peer, hello).ok());
    return peer;
  }
  // Of a worker that begins to compute.
  wire::Header Heartbeat(const PeerName& peer, int64_t samples = 0, double samples_at_s = 0,
                         bool leaving = false, double compute_ms = 0) {
    wire::Header header;
    header.set_type(wire::HEARTBEAT);
    header.mutable_worker_report()->set_compute_ms(compute_ms);
    header.mutable_worker_report()->set_computing_s(0);
    header.mutable_worker_report()->set_leaving(leaving);
    header.mutable_worker_report()->set_samples(samples);
    header.mutable_worker_report()->set_samples_at_s(samples_at_s);
    return Do([&](StepContext* context) {
      EXPECT_TRUE(coordinator->OnMessage(peer, header, context).ok());
      return std::get<SendAction>(context->actions.back()).message.header;
    });
  }
  void Bye(const PeerName& peer, StatusCode code = StatusCode::kOk, const char* failure = "",
           bool handed_over = false) {
    wire::Header header;
    header.set_type(wire::BYE);
    header.mutable_worker_report()->set_handed_over(handed_over);
    header.mutable_worker_report()->set_failure(failure);
    header.mutable_worker_report()->set_failure_code(static_cast<uint32_t>(code));
    ASSERT_TRUE(Send(peer, header).ok());
  }
  void RequestStop() {
    StepContext context{now, {}};
    coordinator->RequestStop(ShardStatus(), &context);
    Take(std::move(context.actions));
  }
  void Tick(TimeUs later = 100 * kMillisecond) {
    now += later;
    Do([&](StepContext* context) { return coordinator->Tick(ShardStatus(), context); });
  }
  // Time passes, with heartbeats of `alive` only.
  void Wait(int seconds, const std::vector<PeerName>& alive = {}) {
    for (int i = 0; i < seconds && !exit; ++i) {
      for (const PeerName& peer : alive) Heartbeat(peer);
      Tick(kSecond);
    }
  }
  void Chosen(const std::optional<checkpoint::Manifest>& manifest) {
    StepContext context{now, {}};
    coordinator->OnDiskAnswer(CheckpointChosen{manifest}, &context);
    Take(std::move(context.actions));
  }
  // Chunk 0 reaches a version.
  Directive Reach(int64_t version) {
    MetricSums metrics;
    if (version > coordinator->generation().start_version) {
      const int64_t samples = plan.Round(version - 1).samples.size();
      metrics = test::SumsOf(samples, static_cast<double>(samples), 0);
    }
    const Directive directive =
        Do([&](StepContext* context) { return coordinator->OnVersion(version, metrics, context); });
    Report(version);
    return directive;
  }
  Status Saved(int server, int64_t version, const char* failure = "", int attempt = 0) {
    wire::Header header;
    header.set_type(wire::SAVED);
    header.set_round(version);
    header.set_attempt(attempt);
    header.mutable_saved_file()->set_bytes(100 + server);
    header.mutable_saved_file()->set_crc32c(7 + server);
    header.mutable_saved_file()->set_failure(failure);
    return Send(ServerPeer(server), header);
  }
  void Committed(int64_t version, const Status& status = OkStatus()) {
    StepContext context{now, {}};
    coordinator->OnDiskAnswer(CheckpointCommitted{version, status}, &context);
    Take(std::move(context.actions));
  }
  void Collected() {
    StepContext context{now, {}};
    coordinator->OnDiskAnswer(FilesCollected(), &context);
    Take(std::move(context.actions));
  }
  void Begun(const Status& status) {
    StepContext context{now, {}};
    coordinator->OnDiskAnswer(RunBegun{status}, &context);
    Take(std::move(context.actions));
  }
  void Kept() {
    StepContext context{now, {}};
    coordinator->OnDiskAnswer(EvaluationKept(), &context);
    Take(std::move(context.actions));
  }
  Status Evaluated(const PeerName& from, int64_t version, int partition, double loss = 1,
                   uint64_t request = 0, const std::string& picture = "") {
    wire::Header header;
    header.set_type(wire::EVALUATED);
    header.set_picture(picture);
    header.set_request(request);
    header.set_round(version);
    header.set_partition(partition);
    header.mutable_metrics()->set_samples(plan.EvaluationSamples(10, partition).size());
    test::SetLossSum(loss, header.mutable_metrics());
    return Send(from, header);
  }
  void Take(ServerActions actions) {
    for (ServerAction& action : actions) {
      if (auto* send = std::get_if<SendAction>(&action)) {
        if (send->message.header.type() == wire::HEARTBEAT_REPLY) {
          orders[send->to] = send->message.header;
        }
        if (send->message.header.type() == wire::ACK) {
          ++acknowledgements;
          acknowledged = send->message.header;
        }
      }
      if (auto* commit = std::get_if<CommitAction>(&action)) commits.push_back(commit->manifest);
      if (auto* keep = std::get_if<KeepEvaluationAction>(&action)) {
        evaluations.push_back(*keep);
        if (keeps) Kept();
      }
      if (auto* health = std::get_if<SavingHealthAction>(&action)) saving.push_back(*health);
      if (auto* drop = std::get_if<DropCheckpointAction>(&action)) dropped.push_back(drop->version);
      begun += std::holds_alternative<BeginRunAction>(action) ? 1 : 0;
      if (auto* started = std::get_if<StartedFromAction>(&action)) {
        origins.push_back(started->origin);
      }
      if (auto* point = std::get_if<CurvePointAction>(&action)) points.push_back(*point);
      if (auto* epoch = std::get_if<EpochEvaluatedAction>(&action)) epochs.push_back(*epoch);
      if (auto* picture = std::get_if<EvaluationPictureAction>(&action)) {
        pictures.push_back(*picture);
      }
      if (auto* left = std::get_if<ExitAction>(&action)) exit = left->status;
      if (auto* c = std::get_if<ChooseCheckpointAction>(&action)) choose = *c;
      if (auto* back = std::get_if<WentBackAction>(&action)) {
        went_back_to = back->version;
        went_back_to_samples = back->samples;
      }
      if (auto* on = std::get_if<WentOnAction>(&action)) went_on_from = on->version;
      if (auto* lost = std::get_if<WorkerLostAction>(&action)) lost_workers.push_back(lost->what);
    }
  }
  std::string phase() const { return coordinator->Describe(now).phase(); }

  Job job;
  int servers;
  TimeUs now;
  JobPlan plan;
  std::optional<Coordinator> coordinator;
  std::map<PeerName, wire::Header> orders;  // the last that each was sent unasked
  std::vector<checkpoint::Manifest> commits;
  std::vector<KeepEvaluationAction> evaluations;
  bool keeps = true;  // they are kept at once
  std::vector<SavingHealthAction> saving;
  std::vector<int64_t> dropped;
  int begun = 0;
  std::vector<checkpoint::Origin> origins;
  std::vector<CurvePointAction> points;
  std::vector<EpochEvaluatedAction> epochs;
  std::vector<EvaluationPictureAction> pictures;
  std::optional<Status> exit;
  std::optional<ChooseCheckpointAction> choose;
  int64_t went_back_to = -1;
  int64_t went_back_to_samples = -1;
  int64_t went_on_from = -1;
  std::vector<std::string> lost_workers;
  int acknowledgements = 0;
  wire::Header acknowledged;  // the last
};

// A job in training, at version 0, on workers a, b, ...
inline Fleet Training(Job job, int servers, int workers) {
  job.experiment.cluster.workers = workers;
  Fleet fleet(job, servers);
  fleet.Learn();
  for (int w = 0; w < workers; ++w) fleet.Join(std::string(1, static_cast<char>('a' + w)));
  fleet.Tick();
  EXPECT_EQ(fleet.phase(), "training");
  fleet.Reach(0);
  return fleet;
}

inline std::map<int, int64_t> Leases(const wire::Header& header) {
  std::map<int, int64_t> leases;
  for (const auto& lease : header.orders().leases()) {
    EXPECT_TRUE(leases.emplace(lease.partition(), lease.from()).second);
  }
  return leases;
}

// A job whose partitions carry residuals.
inline Job Carrying() {
  Job job = SmallJob();
  job.experiment.sync.push_codec = CodecId::kOneBit;
  return job;
}

inline Status StartServerAgain(Fleet* fleet, uint64_t incarnation, int64_t started_ms = 0) {
  wire::Hello hello;
  hello.set_role(wire::Hello::SERVER);
  hello.set_server_index(1);
  hello.set_incarnation(incarnation);
  hello.set_host("host-1");
  hello.set_boot("boot");
  hello.set_started_ms(started_ms);
  return fleet->Hello(ServerPeer(1), hello);
}

inline checkpoint::Manifest ManifestAt(const Job& job, int64_t version) {
  checkpoint::Manifest manifest;
  manifest.set_name("round-" + std::to_string(version));
  manifest.set_generation(4);
  manifest.set_version(version);
  manifest.set_fingerprint(job.spec.layout.fingerprint());
  manifest.mutable_progress()->set_elapsed_seconds(1000);
  return manifest;
}

}  // namespace kumo::test
