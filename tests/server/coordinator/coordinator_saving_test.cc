#include "server/coordinator/coordinator.h"

#include <glog/logging.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/manifest.h"
#include "tests/server/coordinator/coordinator_harness.h"

namespace kumo {
namespace {

using test::Fleet;
using test::Job;
using test::Leases;
using test::ManifestAt;
using test::SmallJob;
using test::StartServerAgain;
using test::Training;
using testing::HasSubstr;

// --- When to save, and stopping.

TEST(Coordinator, SavesEveryFewRoundsAndAtTheEnd) {
  Job job = SmallJob();
  job.experiment.checkpoint.every_rounds = 3;
  Fleet fleet = Training(job, 1, 1);
  EXPECT_FALSE(fleet.Reach(0).save);
  for (int64_t version = 1; version < fleet.plan.rounds(); ++version) {
    const Directive directive = fleet.Reach(version);
    const int64_t next = version + 1;
    EXPECT_EQ(directive.save, next % 3 == 0 || next == fleet.plan.rounds()) << version;
    EXPECT_FALSE(directive.stop);
  }
  const Directive end = fleet.Reach(fleet.plan.rounds());
  EXPECT_FALSE(end.save || end.stop);
}

// Keeps the warnings that are logged while it lives.
struct Warnings : google::LogSink {
  Warnings() { google::AddLogSink(this); }
  ~Warnings() override { google::RemoveLogSink(this); }
  void send(google::LogSeverity severity, const char*, const char*, int,
            const google::LogMessageTime&, const char* text, size_t length) override {
    if (severity == google::GLOG_WARNING) texts.emplace_back(text, length);
  }
  std::vector<std::string> texts;
};

TEST(Coordinator, ADiskThatIsBehindIsNoWarningInRoundsThatAreNotToBeSaved) {
  Job job = SmallJob();
  job.spec.train_samples = 144;
  job.experiment.job.epochs = 1;
  job.experiment.checkpoint.every_rounds = 2;
  Fleet fleet = Training(job, 1, 1);
  ASSERT_EQ(fleet.plan.rounds(), 6);
  const Warnings warnings;
  for (int64_t version = 1; version < 6; ++version) {
    EXPECT_EQ(fleet.Reach(version).save, version % 2 == 1) << "round 4 is still being written";
  }
  EXPECT_THAT(warnings.texts, testing::IsEmpty());
}

TEST(Coordinator, ItsStatusTellsWhyCurvesCannotBeWritten) {
  Fleet fleet = Training(SmallJob(), 1, 1);
  for (const char* failure : {"the disk is full", ""}) {
    fleet.Do([&](StepContext* context) {
      fleet.coordinator->OnDiskAnswer(CurvesHealth{failure}, context);
      return true;
    });
    EXPECT_EQ(fleet.coordinator->Describe(fleet.now).curves_failure(), failure);
  }
}

TEST(Coordinator, SavesTheEndsOfEpochs) {
  Job job = SmallJob();  // 4 rounds an epoch
  job.experiment.job.epochs = 5;
  job.experiment.checkpoint.every_epochs = 2;
  Fleet fleet = Training(job, 1, 1);
  for (int64_t version = 1; version < fleet.plan.rounds(); ++version) {
    const int64_t next = version + 1;
    EXPECT_EQ(fleet.Reach(version).save, next % 8 == 0 || next == fleet.plan.rounds()) << version;
    ASSERT_TRUE(fleet.Saved(0, version).ok());
    fleet.Committed(version);
  }
}

TEST(Coordinator, ACheckpointThatFailedIsToldOnceRemovedAndMadeUpForAfterAPause) {
  Job job = SmallJob();
  job.experiment.job.epochs = 9;
  job.experiment.checkpoint.every_rounds = 10;
  Fleet fleet = Training(job, 1, 1);
  for (int64_t version = 1; version < 9; ++version) fleet.Reach(version);
  EXPECT_TRUE(fleet.Reach(9).save);
  fleet.Reach(10);
  for (const char* again : {"the disk is full", "the disk is full"}) {
    ASSERT_TRUE(fleet.Saved(0, 10, again).ok());
  }
  ASSERT_EQ(fleet.saving.size(), 1u);
  EXPECT_EQ(fleet.saving[0].version, 10);
  EXPECT_THAT(fleet.saving[0].why, HasSubstr("the disk is full"));
  EXPECT_EQ(fleet.dropped, std::vector<int64_t>{10});
  EXPECT_EQ(fleet.coordinator->Describe(fleet.now).checkpoint_failures(), 1);
  EXPECT_FALSE(fleet.Reach(11).save);
  fleet.now += 30 * kSecond;
  EXPECT_TRUE(fleet.Reach(12).save) << "not due before round 20";
  fleet.Reach(13);
  ASSERT_TRUE(fleet.Saved(0, 13).ok());
  fleet.Committed(13);
  ASSERT_EQ(fleet.saving.size(), 2u);
  EXPECT_EQ(fleet.saving[1].why, "");
  EXPECT_EQ(fleet.coordinator->Describe(fleet.now).checkpoint_failures(), 0);
}

// No checkpoint may be saved before those of the earlier run are moved.
TEST(Coordinator, ARunThatStartsAnewTrainsWhenTheEarlierOneIsSetAside) {
  for (const bool fails : {false, true}) {
    Job job = SmallJob();
    job.experiment.checkpoint.resume.kind = ResumeFrom::Kind::kNever;
    job.experiment.cluster.workers = 1;
    Fleet fleet(job, 1);
    fleet.Learn();
    fleet.Join("a");
    for (int tick = 0; tick < 3; ++tick) fleet.Tick();
    EXPECT_EQ(fleet.phase(), "waiting");
    EXPECT_EQ(fleet.begun, 1);
    fleet.Begun(fails ? Unavailable("the disk is full") : OkStatus());
    fleet.Tick();
    EXPECT_EQ(fleet.phase(), fails ? "failed" : "training");
    EXPECT_EQ(fleet.begun, 1);
  }
  EXPECT_EQ(Training(SmallJob(), 1, 1).phase(), "training");
}

// Which epoch is the best is known when it has been evaluated: then it must have been saved.
TEST(Coordinator, WhereTheBestIsKeptEachEpochThatIsEvaluatedIsSaved) {
  Job job = SmallJob();
  job.experiment.job.epochs = 5;
  job.experiment.evaluation.every_epochs = 2;
  job.experiment.checkpoint.best = "loss";
  Fleet fleet = Training(job, 1, 1);
  for (int64_t version = 1; version < fleet.plan.rounds(); ++version) {
    const int64_t next = version + 1;
    EXPECT_EQ(fleet.Reach(version).save, fleet.plan.EvaluatedEpoch(next) >= 0) << version;
    ASSERT_TRUE(fleet.Saved(0, version).ok());
    fleet.Committed(version);
  }
}

TEST(Coordinator, AManifestSaysWhatTheNetworkAndTheDataAreAndWhetherItIsToBeEvaluated) {
  Job job = SmallJob();
  job.experiment.checkpoint.every_rounds = 1;
  job.spec.train.hash = 11;
  job.spec.validation.hash = 12;
  Fleet fleet = Training(job, 1, 1);
  for (int64_t version = 1; version <= 4; ++version) {
    fleet.Reach(version);
    ASSERT_TRUE(fleet.Saved(0, version).ok());
    fleet.Committed(version);
  }
  ASSERT_EQ(fleet.commits.size(), 4u);
  for (const checkpoint::Manifest& manifest : fleet.commits) {
    EXPECT_EQ(LayoutOf(manifest)->tensors(), job.spec.layout.tensors());
    EXPECT_EQ(manifest.train_samples(), 80);
    EXPECT_EQ(manifest.validation_samples(), 10);
    EXPECT_EQ(manifest.train_hash(), 11u);
    EXPECT_EQ(manifest.validation_hash(), 12u);
    EXPECT_EQ(manifest.has_evaluation(), manifest.version() == 4);
  }
  EXPECT_EQ(fleet.commits.back().evaluation().epoch(), 1);
  EXPECT_EQ(fleet.commits.back().evaluation().sums().samples(), 0);
  for (const int partition : {0, 1, 2}) {
    ASSERT_TRUE(fleet.Evaluated("worker/a/1", 4, partition).ok());
  }
  ASSERT_EQ(fleet.evaluations.size(), 1u);
  EXPECT_EQ(fleet.evaluations[0].version, 4);
  EXPECT_EQ(fleet.evaluations[0].since, 1u);
  EXPECT_EQ(fleet.evaluations[0].evaluation.sums().samples(), 10);
  EXPECT_EQ(fleet.evaluations[0].evaluation.sums().sums(0), 3);
}

TEST(Coordinator, WhereTheInitialWeightsCameFromIsToldOnceAndStandsInEveryManifest) {
  Job job = SmallJob();
  job.experiment.checkpoint.every_rounds = 1;
  Fleet fleet = Training(job, 1, 1);
  const auto bring = [&](const char* from) {
    wire::Header header;
    header.set_type(wire::INITIALISE);
    header.mutable_origin()->set_checkpoint(from);
    header.mutable_origin()->add_left("a\nb");
    ASSERT_TRUE(fleet.Send("worker/a/1", header).ok());
  };
  bring("x");
  bring("y");  // another worker's, which came later
  ASSERT_EQ(fleet.origins.size(), 1u);
  EXPECT_EQ(fleet.origins[0].checkpoint(), "x");
  EXPECT_EQ(fleet.origins[0].left(0), "a?b");
  fleet.Reach(1);
  ASSERT_TRUE(fleet.Saved(0, 1).ok());
  ASSERT_EQ(fleet.commits.size(), 1u);
  EXPECT_EQ(fleet.commits[0].origin().checkpoint(), "x");

  // A resumed job knows it from there, and nobody brings weights.
  checkpoint::Manifest restored = ManifestAt(job, 5);
  *restored.mutable_origin() = fleet.commits[0].origin();
  job.experiment.cluster.workers = 1;
  Fleet resumed(job, 1, restored);
  resumed.Learn();
  resumed.Reach(5);
  resumed.Join("a");
  resumed.Tick();
  resumed.Reach(6);
  ASSERT_TRUE(resumed.Saved(0, 6).ok());
  ASSERT_EQ(resumed.commits.size(), 1u);
  EXPECT_EQ(resumed.commits[0].origin().checkpoint(), "x");
}

// Whoever has not said hello as a server is nobody, and what a file is called is not for the wire
// to say.
TEST(Coordinator, OnlyServersThatHaveJoinedVouchForTheirFiles) {
  Job job = SmallJob();
  job.experiment.checkpoint.every_rounds = 1;
  job.experiment.cluster.workers = 1;
  Fleet fleet(job, 2);
  const ShardMap map(job.spec.layout, 2, job.experiment.cluster.chunk_kib * 1024);
  fleet.coordinator->OnSpec(fleet.plan, map, job.spec);
  const PeerName worker = fleet.Join("a");
  fleet.Reach(0);
  fleet.Reach(1);
  const auto saved = [&](const PeerName& from) {
    wire::Header header;
    header.set_type(wire::SAVED);
    header.set_round(1);
    // The field that was the name.
    header.mutable_saved_file()
        ->GetReflection()
        ->MutableUnknownFields(header.mutable_saved_file())
        ->AddLengthDelimited(1, "../../x");
    ASSERT_TRUE(fleet.Send(from, header).ok());
  };
  saved(ServerPeer(0));
  for (const PeerName& nobody : {ServerPeer(1), ServerPeer(2), ServerPeer(-1), worker, PeerName(),
                                 PeerName("client/1"), PeerName("server/01")}) {
    saved(nobody);
  }
  EXPECT_TRUE(fleet.commits.empty());
  fleet.Learn();  // now server 1 says hello
  saved(ServerPeer(1));
  ASSERT_EQ(fleet.commits.size(), 1u);
  EXPECT_EQ(fleet.commits[0].files(0).name(), ShardFileName(0, 2, 1));
  EXPECT_EQ(fleet.commits[0].files(1).name(), ShardFileName(1, 2, 1));
}

TEST(Coordinator, AServerThatHoldsNothingHasNoFile) {
  Job job = SmallJob();
  job.experiment.checkpoint.every_rounds = 1;
  const ShardMap map(job.spec.layout, 64, job.experiment.cluster.chunk_kib * 1024);
  Fleet fleet = Training(job, 64, 1);
  fleet.Reach(1);
  int holders = 0;
  for (int s = 63; s >= 0; --s) {
    ASSERT_TRUE(fleet.Saved(s, 1).ok());
    holders += map.FirstChunk(s) < map.FirstChunk(s + 1);
  }
  ASSERT_LT(holders, 64);
  ASSERT_EQ(fleet.commits.size(), 1u);
  EXPECT_EQ(fleet.commits[0].files_size(), holders);
  for (const checkpoint::File& file : fleet.commits[0].files()) {
    bool holds = false;
    for (int s = 0; s < 64; ++s) {
      holds |= file.name() == ShardFileName(s, 64, 1) && map.FirstChunk(s) < map.FirstChunk(s + 1);
    }
    EXPECT_TRUE(holds) << file.name();
  }
}

TEST(Coordinator, FiguresThatAreKnownBeforeTheFilesAreDurableStandInTheManifest) {
  Job job = SmallJob();
  job.experiment.checkpoint.best = "accuracy";
  Fleet fleet = Training(job, 1, 1);
  for (int64_t version = 1; version <= 4; ++version) fleet.Reach(version);
  for (const int partition : {0, 1, 2}) {
    ASSERT_TRUE(fleet.Evaluated("worker/a/1", 4, partition).ok());
  }
  ASSERT_TRUE(fleet.Saved(0, 4).ok());
  ASSERT_EQ(fleet.commits.size(), 1u);
  EXPECT_EQ(fleet.commits[0].evaluation().epoch(), 1);
  EXPECT_EQ(fleet.commits[0].evaluation().sums().samples(), 10);
}

TEST(Coordinator, SavesByTheClock) {
  Job job = SmallJob();
  job.experiment.checkpoint.every_minutes = 2;
  job.experiment.job.epochs = 50;
  Fleet fleet = Training(job, 1, 1);
  TimeUs last = fleet.now;
  for (int64_t version = 1; version < 40; ++version) {
    fleet.now += 35 * kSecond;
    const bool due = fleet.now - last >= 120 * kSecond;
    EXPECT_EQ(fleet.Reach(version).save, due) << version;
    ASSERT_TRUE(fleet.Saved(0, version).ok());
    fleet.Committed(version);
    if (due) last = fleet.now;
  }
}

TEST(Coordinator, AResumedJobIsTheNextGenerationFromTheCheckpointsVersion) {
  Job job = SmallJob();
  job.experiment.checkpoint.every_minutes = 10;
  job.experiment.cluster.workers = 1;
  Fleet fleet(job, 1, ManifestAt(job, 5));
  EXPECT_EQ(fleet.coordinator->generation().number, 5u);
  EXPECT_EQ(fleet.coordinator->generation().start_version, 5);
  EXPECT_EQ(fleet.coordinator->generation().restore, "round-5");
  fleet.Learn();
  // The machine may have been up for days: that is no reason to save at once.
  EXPECT_FALSE(fleet.Reach(5).save);
  fleet.Join("a");
  fleet.Tick();
  EXPECT_EQ(Leases(fleet.orders["worker/a/1"]).at(0), 5);
  const wire::JobStatus status = fleet.coordinator->Describe(fleet.now);
  EXPECT_EQ(status.last_checkpoint(), 5);
  EXPECT_GE(status.elapsed_seconds(), 1000);
}

TEST(Coordinator, AStopSavesTheRoundUnderWayAndEndsThere) {
  Fleet fleet = Training(SmallJob(), 2, 2);
  fleet.Reach(1);
  fleet.RequestStop();
  const Directive directive = fleet.Reach(2);
  EXPECT_TRUE(directive.save && directive.stop);
  // Version 2 says it; as long as it is not there, a server 0 that dies takes the stop along.
  EXPECT_EQ(fleet.Heartbeat("worker/a/1").orders().stop_at(), 0);
  fleet.Reach(3);
  EXPECT_EQ(fleet.Heartbeat("worker/a/1").orders().stop_at(), 3);
  ASSERT_TRUE(fleet.Saved(0, 3).ok());
  ASSERT_TRUE(fleet.Saved(1, 3).ok());
  ASSERT_EQ(fleet.commits.size(), 1u);
  EXPECT_FALSE(fleet.orders["worker/a/1"].orders().finished());  // not before it is durable
  fleet.Committed(3);
  for (const PeerName& peer : {PeerName("worker/a/1"), PeerName("worker/b/1"), ServerPeer(1)}) {
    EXPECT_TRUE(fleet.orders[peer].orders().finished()) << peer;
    EXPECT_TRUE(fleet.orders[peer].orders().stopped()) << peer;
  }
  fleet.Bye("worker/a/1");
  fleet.Bye("worker/b/1");
  EXPECT_FALSE(fleet.exit);  // server 1 may not have heard it
  fleet.Bye(ServerPeer(1));
  ASSERT_TRUE(fleet.exit);
  EXPECT_EQ(fleet.exit->code(), StatusCode::kUnavailable);
  EXPECT_THAT(fleet.exit->message(), HasSubstr("round 3"));
}

// A heartbeat may have been on its way when the job ended, and the answer may be lost.
TEST(Coordinator, ItTellsOfTheEndUntilEverybodyHasSaidGoodbye) {
  Fleet fleet = Training(SmallJob(), 3, 2);
  fleet.Bye("worker/a/1", StatusCode::kFailedPrecondition, "no");
  fleet.Heartbeat("worker/b/1");
  fleet.Report(0);
  fleet.Bye(ServerPeer(1));
  fleet.orders.clear();
  fleet.Tick();
  EXPECT_FALSE(fleet.exit);
  EXPECT_TRUE(fleet.orders["worker/b/1"].has_refusal());
  EXPECT_TRUE(fleet.orders[ServerPeer(2)].has_refusal());
  EXPECT_FALSE(fleet.orders.contains(ServerPeer(1))) << "it has left";
  fleet.Bye(ServerPeer(2));
  EXPECT_FALSE(fleet.exit);
  fleet.Bye("worker/b/1");
  EXPECT_TRUE(fleet.exit);
}

TEST(Coordinator, ItLeavesEvenWhenSomebodyNeverSaysGoodbye) {
  Fleet fleet = Training(SmallJob(), 1, 2);
  fleet.Bye("worker/a/1", StatusCode::kFailedPrecondition, "no");
  for (int i = 0; i < 100 && !fleet.exit; ++i) fleet.Tick();
  EXPECT_TRUE(fleet.exit);
}

// --- Checkpoints and evaluations.

TEST(Coordinator, AManifestNamesTheFilesOfAllServersOnce) {
  Job job = SmallJob();
  job.experiment.checkpoint.every_rounds = 2;
  Fleet fleet = Training(job, 3, 1);
  fleet.Reach(1);
  ASSERT_TRUE(fleet.Saved(2, 2).ok());  // may be faster than chunk 0
  fleet.Reach(2);
  ASSERT_TRUE(fleet.Saved(2, 2).ok());  // repeated
  ASSERT_TRUE(fleet.Saved(0, 2).ok());
  EXPECT_TRUE(fleet.commits.empty());
  ASSERT_TRUE(fleet.Saved(1, 2).ok());
  ASSERT_TRUE(fleet.Saved(1, 2).ok());
  ASSERT_EQ(fleet.commits.size(), 1u);
  EXPECT_EQ(fleet.acknowledgements, 4);  // server 0 needs none
  const checkpoint::Manifest& manifest = fleet.commits[0];
  EXPECT_EQ(manifest.version(), 2);
  EXPECT_EQ(manifest.generation(), 1u);
  EXPECT_EQ(manifest.fingerprint(), job.spec.layout.fingerprint());
  ASSERT_EQ(manifest.files_size(), 3);
  for (int s = 0; s < 3; ++s) {
    EXPECT_EQ(manifest.files(s).name(), ShardFileName(s, 3, 1));
    EXPECT_EQ(manifest.files(s).bytes(), 100u + s);
    EXPECT_EQ(manifest.files(s).crc32c(), 7u + s);
  }
  const int64_t seen = fleet.plan.Round(0).samples.size() + fleet.plan.Round(1).samples.size();
  EXPECT_EQ(manifest.progress().epoch().samples(), seen);
  fleet.Committed(2);
  EXPECT_EQ(fleet.coordinator->Describe(fleet.now).last_checkpoint(), 2);
}

TEST(Coordinator, AFileThatCannotBeSavedDoesNotStopTheTraining) {
  Job job = SmallJob();
  job.experiment.checkpoint.every_rounds = 2;
  Fleet fleet = Training(job, 2, 1);
  fleet.Reach(1);
  fleet.Reach(2);
  ASSERT_TRUE(fleet.Saved(1, 2, "the disk is full").ok());
  ASSERT_TRUE(fleet.Saved(0, 2).ok());
  EXPECT_TRUE(fleet.commits.empty());
  fleet.Reach(3);
  fleet.Reach(4);
  ASSERT_TRUE(fleet.Saved(0, 4).ok());
  ASSERT_TRUE(fleet.Saved(1, 4).ok());
  ASSERT_EQ(fleet.commits.size(), 1u);
  fleet.Committed(4, Unavailable("the disk is full"));
  EXPECT_EQ(fleet.phase(), "training");
  EXPECT_EQ(fleet.coordinator->Describe(fleet.now).last_checkpoint(), -1);
}

TEST(Coordinator, TheLastFileThatCannotBeSavedIsTriedAgainAndThenFailsTheJob) {
  for (const bool commit : {false, true}) {
    Fleet fleet = Training(SmallJob(), 1, 1);
    const int64_t rounds = fleet.plan.rounds();
    for (int64_t version = 1; version <= rounds; ++version) fleet.Reach(version);
    for (int attempt = 0; !fleet.exit && attempt < 1000; ++attempt) {
      EXPECT_EQ(fleet.coordinator->save_order().attempt, attempt);
      ASSERT_TRUE(fleet.Saved(0, rounds, commit ? "" : "the disk is full", attempt).ok());
      if (commit) fleet.Committed(rounds, Unavailable("the disk is full"));
      fleet.Wait(6, {"worker/a/1"});
    }
    ASSERT_TRUE(fleet.exit);
    EXPECT_GE(fleet.coordinator->save_order().attempt, 90);
    EXPECT_THAT(fleet.exit->message(), HasSubstr("disk is full"));
  }
}

// An attempt's files are written over by the next one's: no manifest may name both.
TEST(Coordinator, AManifestNamesFilesOfOneAttempt) {
  Fleet fleet = Training(SmallJob(), 2, 1);
  const int64_t rounds = fleet.plan.rounds();
  for (int64_t version = 1; version <= rounds; ++version) fleet.Reach(version);
  ASSERT_TRUE(fleet.Saved(0, rounds, "the disk is full").ok());
  fleet.Wait(6, {"worker/a/1"});
  const wire::Orders order = fleet.orders[ServerPeer(1)].orders();
  ASSERT_EQ(order.save_version(), rounds);
  ASSERT_EQ(order.save_attempt(), 1);
  ASSERT_TRUE(fleet.Saved(1, rounds).ok());                      // of the round's end, late
  ASSERT_TRUE(fleet.Saved(0, rounds, "the disk is full").ok());  // repeated
  ASSERT_TRUE(fleet.Saved(0, rounds, "", 1).ok());
  EXPECT_TRUE(fleet.commits.empty());
  ASSERT_TRUE(fleet.Saved(1, rounds, "", 1).ok());
  EXPECT_EQ(fleet.commits.size(), 1u);
}

TEST(Coordinator, ASlowDiskGetsNoMoreThanTwoCheckpointsAtATime) {
  Job job = SmallJob();
  job.experiment.checkpoint.every_rounds = 1;
  Fleet fleet = Training(job, 1, 1);  // version 1 is on its way
  EXPECT_TRUE(fleet.Reach(1).save);
  EXPECT_FALSE(fleet.Reach(2).save);
  ASSERT_TRUE(fleet.Saved(0, 1).ok());
  fleet.Committed(1);
  EXPECT_TRUE(fleet.Reach(3).save);
}

// With private disks files are fetched before the manifest is written, which may take longer than
// the shards need to save the next version.
TEST(Coordinator, AManifestThatIsBeingWrittenCountsAsACheckpointUnderWay) {
  Job job = SmallJob();
  job.experiment.checkpoint.every_rounds = 1;
  Fleet fleet = Training(job, 1, 1);
  EXPECT_TRUE(fleet.Reach(1).save);
  ASSERT_TRUE(fleet.Saved(0, 1).ok());
  EXPECT_FALSE(fleet.Reach(2).save);
  ASSERT_TRUE(fleet.Saved(0, 2).ok());
  EXPECT_FALSE(fleet.Reach(3).save) << "two manifests are being written";
  fleet.Committed(1);
  EXPECT_TRUE(fleet.Reach(4).save);
}

TEST(Coordinator, AServerThatIsToldToLeaveMayWhenARoundIsSaved) {
  Fleet fleet = Training(SmallJob(), 2, 1);
  wire::ServerReport report;
  report.set_ready(true);
  report.set_leaving(true);
  const auto released = [&] {
    fleet.Report(1, report);
    return fleet.orders[ServerPeer(1)].orders().released();
  };
  EXPECT_FALSE(released());
  StepContext context{fleet.now, {}};
  EXPECT_TRUE(fleet.coordinator->OnVersion(1, MetricSums(), &context).save);
  EXPECT_FALSE(fleet.coordinator->OnVersion(2, MetricSums(), &context).save);
  EXPECT_FALSE(released());
  ASSERT_TRUE(fleet.Saved(0, 2).ok());
  ASSERT_TRUE(fleet.Saved(1, 2).ok());
  fleet.Committed(2);
  EXPECT_TRUE(released());

  // Its successor is told to leave too.
  ASSERT_TRUE(StartServerAgain(&fleet, 2).ok());
  fleet.Chosen(std::nullopt);
  fleet.Report(0);
  fleet.Tick();
  ASSERT_EQ(fleet.phase(), "training");
  EXPECT_FALSE(released());
  EXPECT_TRUE(fleet.Reach(1).save);
  ASSERT_TRUE(fleet.Saved(0, 2, "the disk is full").ok());
  EXPECT_FALSE(released());
  EXPECT_TRUE(fleet.Reach(2).save) << "what failed is ordered again";
}

}  // namespace
}  // namespace kumo
