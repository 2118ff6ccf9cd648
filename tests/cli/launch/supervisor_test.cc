#include "cli/launch/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <iterator>
#include <set>

#include "common/base/rng.h"

namespace kumo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr ProcessId kServer0{ProcessId::Role::kServer, 0};
constexpr ProcessId kServer1{ProcessId::Role::kServer, 1};
constexpr ProcessId kWorker0{ProcessId::Role::kWorker, 0};
constexpr ProcessId kWorker1{ProcessId::Role::kWorker, 1};

const ProcessEnd kOk;
ProcessEnd Code(int code, std::string words = "") { return {code, 0, std::move(words)}; }
ProcessEnd Killed(int signal) { return {0, signal, ""}; }

std::vector<std::string> Text(const Supervisor::Actions& actions) {
  std::vector<std::string> text;
  for (const SupervisorAction& action : actions) {
    text.push_back(action.kind == SupervisorAction::Kind::kStart
                       ? "start " + action.process.Name()
                       : "signal " + std::to_string(action.signal) + " " + action.process.Name());
  }
  return text;
}

// Two servers and two workers, started.
class SupervisorTest : public ::testing::Test {
 protected:
  SupervisorTest() : SupervisorTest(2, 2) {}
  SupervisorTest(int servers, int workers) : supervisor_({.servers = servers, .workers = workers}) {
    begin_ = supervisor_.Begin(now_);
  }
  std::vector<std::string> End(ProcessId id, ProcessEnd end) {
    return Text(supervisor_.OnEnd(id, end, now_));
  }
  void EndAll(std::initializer_list<ProcessId> ids, ProcessEnd end) {
    for (const ProcessId& id : ids) EXPECT_THAT(End(id, end), IsEmpty());
  }
  // Advances to the next deadline.
  std::vector<std::string> NextTime() {
    EXPECT_TRUE(supervisor_.NextDeadline().has_value());
    now_ = supervisor_.NextDeadline().value_or(now_);
    return Text(supervisor_.OnTime(now_));
  }

  TimeUs now_ = 1000;
  Supervisor supervisor_;
  Supervisor::Actions begin_;
};

TEST_F(SupervisorTest, EverythingIsStartedAtOnce) {
  EXPECT_THAT(Text(begin_),
              ElementsAre("start server-0", "start server-1", "start worker-0", "start worker-1"));
  EXPECT_FALSE(supervisor_.over());
  EXPECT_EQ(supervisor_.NextDeadline(), std::nullopt);
}

TEST_F(SupervisorTest, AJobThatIsDoneEndsWellWhateverTheOrder) {
  EndAll({kWorker1, kServer1, kServer0, kWorker0}, kOk);
  ASSERT_TRUE(supervisor_.over());
  EXPECT_EQ(supervisor_.outcome().code, 0);
  EXPECT_EQ(supervisor_.outcome().words, "");
}

TEST_F(SupervisorTest, AProgramThatEndsWithoutBeingAWorkerEndsTheJob) {
  ProcessEnd idle;
  idle.took_part = false;
  EXPECT_THAT(End(kWorker1, idle),
              ElementsAre("signal 15 server-0", "signal 15 server-1", "signal 15 worker-0"));
  EndAll({kServer0, kServer1, kWorker0}, Code(75));
  EXPECT_EQ(supervisor_.outcome().code, 78);
  EXPECT_THAT(supervisor_.outcome().words,
              HasSubstr("worker-1 ended without having taken part in the job"));
}

TEST_F(SupervisorTest, AProgramThatCatchesTheErrorOfTheJobDoesNotHideIt) {
  ProcessEnd idle;
  idle.took_part = false;
  End(kWorker1, idle);
  EndAll({kServer0}, Code(78, "loss is nan"));
  EndAll({kServer1, kWorker0}, Code(75));
  EXPECT_EQ(supervisor_.outcome().code, 78);
  EXPECT_THAT(supervisor_.outcome().words, HasSubstr("loss is nan"));
}

TEST_F(SupervisorTest, AProgramThatIsNoWorkerAfterTheJobIsNoFailure) {
  ProcessEnd idle;
  idle.took_part = false;
  EndAll({kServer0, kServer1, kWorker0}, kOk);
  EndAll({kWorker1}, idle);
  EXPECT_EQ(supervisor_.outcome().code, 0);
}

TEST_F(SupervisorTest, ACrashedWorkerIsStartedAgainAfterPausesThatDouble) {
  TimeUs last_pause = 0;
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(End(kWorker1, i == 1 ? Killed(SIGSEGV) : Code(75)), IsEmpty());
    const TimeUs pause = supervisor_.NextDeadline().value() - now_;
    EXPECT_EQ(pause, last_pause == 0 ? 500 * kMillisecond : 2 * last_pause);
    last_pause = pause;
    EXPECT_THAT(Text(supervisor_.OnTime(now_ + pause - 1)), IsEmpty());
    EXPECT_THAT(NextTime(), ElementsAre("start worker-1"));
  }
  EndAll({kServer0, kServer1, kWorker0, kWorker1}, kOk);
  EXPECT_EQ(supervisor_.outcome().code, 0);
  EXPECT_EQ(supervisor_.outcome().warnings.size(), 3u);
}

ProcessEnd Lost() {
  ProcessEnd end = Code(75, "the connection was lost");
  end.host = "beta";
  end.connection_lost = true;
  return end;
}

// It did not decide to end the job.
TEST_F(SupervisorTest, AServer0WhoseConnectionIsLostIsStartedAgain) {
  now_ += 3600 * kSecond;
  const TimeUs lost = now_;
  EXPECT_THAT(End(kServer0, Lost()), IsEmpty());
  EXPECT_THAT(NextTime(), ElementsAre("start server-0"));
  EXPECT_GT(now_ - lost, 20 * kSecond) << "the far side has killed it by then";
  EndAll({kServer0, kServer1, kWorker0, kWorker1}, kOk);
  EXPECT_EQ(supervisor_.outcome().code, 0);
}

// It did not decide anything.
TEST_F(SupervisorTest, AServer0ThatTheSystemRefusesToStartForTheMomentIsStartedAgain) {
  ProcessEnd refused = Code(75, "cannot start kumo-server: Resource temporarily unavailable");
  refused.started = false;
  EXPECT_THAT(End(kServer0, refused), IsEmpty());
  EXPECT_THAT(NextTime(), ElementsAre("start server-0"));
  EXPECT_THAT(supervisor_.warnings(),
              ElementsAre("server-0: cannot start kumo-server: Resource temporarily unavailable "
                          "(started again)"));
  EndAll({kServer0, kServer1, kWorker0, kWorker1}, kOk);
  EXPECT_EQ(supervisor_.outcome().code, 0);
}

TEST_F(SupervisorTest, AHostThatBootsIsTriedAsLongAsTheJobWaits) {
  now_ += 3600 * kSecond;
  const TimeUs lost = now_;
  End(kWorker1, Lost());
  for (; now_ < lost + 590 * kSecond; now_ += 10 * kSecond) {
    EXPECT_THAT(NextTime(), ElementsAre("start worker-1"));
    EXPECT_THAT(End(kWorker1, Lost()), IsEmpty());
  }
  EXPECT_EQ(supervisor_.warnings().size(), 1u);
  // It is there again, and its restarts are all left.
  EXPECT_THAT(NextTime(), ElementsAre("start worker-1"));
  for (int i = 0; i < 3; ++i) {
    now_ += kSecond;
    EXPECT_THAT(End(kWorker1, Code(1)), IsEmpty());
    EXPECT_THAT(NextTime(), ElementsAre("start worker-1"));
  }
  EndAll({kServer0, kServer1, kWorker0, kWorker1}, kOk);
  EXPECT_EQ(supervisor_.outcome().code, 0);
}

TEST_F(SupervisorTest, AHostThatDoesNotComeBackEndsTheJobIfItHadAServer) {
  now_ += 3600 * kSecond;
  const TimeUs lost = now_;
  End(kServer1, Lost());
  int starts = 0;
  while (supervisor_.running()) {
    ASSERT_THAT(NextTime(), ElementsAre("start server-1"));
    now_ += 10 * kSecond;
    End(kServer1, Lost());
    ++starts;
  }
  EXPECT_GE(now_ - lost, 600 * kSecond);
  EXPECT_LE(now_ - lost, 700 * kSecond);
  EXPECT_LE(starts, 35);
}

// A host that was never reached: most likely its name is wrong.
TEST_F(SupervisorTest, AHostThatWasNeverReachedIsTriedLikeAProgramThatCrashes) {
  for (int i = 0; i < 3; ++i) {
    now_ += 10 * kSecond;
    EXPECT_THAT(End(kServer0, Lost()), IsEmpty());
    EXPECT_THAT(NextTime(), ElementsAre("start server-0"));
  }
  End(kServer0, Lost());
  EXPECT_FALSE(supervisor_.running());
}

// The checkpoints may be on a disk that the launcher does not see.
TEST_F(SupervisorTest, RestartsCountAnewAfterALongRun) {
  for (int i = 0; i < 10; ++i) {
    now_ += 600 * kSecond;
    EXPECT_THAT(End(kServer1, Killed(SIGKILL)), IsEmpty()) << i;
    EXPECT_THAT(NextTime(), ElementsAre("start server-1"));
  }
  EXPECT_TRUE(supervisor_.running());
}

TEST_F(SupervisorTest, AServer0ThatCopiesTheModelWhenAllWorkersHaveEndedIsGivenTime) {
  EndAll({kWorker0, kWorker1}, kOk);
  EXPECT_THAT(NextTime(), ElementsAre("signal 15 server-0"));
  EXPECT_EQ(supervisor_.NextDeadline(), now_ + 600 * kSecond);
  now_ += 599 * kSecond;
  EndAll({kServer0, kServer1}, kOk);
  EXPECT_EQ(supervisor_.outcome().code, 0);
  EXPECT_TRUE(supervisor_.outcome().done);
}

TEST_F(SupervisorTest, TheJobGoesOnWhenOneWorkerIsGoneForGood) {
  for (int i = 0; i < 3; ++i) {
    End(kWorker1, Code(1));
    NextTime();
  }
  EXPECT_THAT(End(kWorker1, Code(1)), IsEmpty());
  EXPECT_EQ(supervisor_.NextDeadline(), std::nullopt);
  EndAll({kServer0, kServer1, kWorker0}, kOk);
  EXPECT_EQ(supervisor_.outcome().code, 0);
}

TEST_F(SupervisorTest, TheJobFailsWhenNoWorkerIsLeft) {
  for (const ProcessId worker : {kWorker0, kWorker1}) {
    for (int i = 0; i < 3; ++i) {
      End(worker, Code(1));
      NextTime();
    }
  }
  End(kWorker0, Code(1));
  EXPECT_THAT(End(kWorker1, Code(75, "lost server-0")),
              ElementsAre("signal 15 server-0", "signal 15 server-1"));
  EndAll({kServer0, kServer1}, Code(75));
  EXPECT_EQ(supervisor_.outcome().code, 75);
  EXPECT_THAT(supervisor_.outcome().words, HasSubstr("worker-1 ended with exit code 75"));
  EXPECT_THAT(supervisor_.outcome().words, HasSubstr("lost server-0 (after 3 restarts)"));
}

TEST_F(SupervisorTest, BadConfigurationAndUsageEndAllAtOnce) {
  for (const int code : {64, 78}) {
    Supervisor supervisor({.servers = 1, .workers = 2});
    supervisor.Begin(0);
    EXPECT_THAT(Text(supervisor.OnEnd(kWorker1, Code(code, "bad shape"), 0)),
                ElementsAre("signal 15 server-0", "signal 15 worker-0"));
    supervisor.OnEnd(kWorker0, Code(75), 1);
    supervisor.OnEnd(kServer0, Code(1, "a consequence"), 1);
    EXPECT_EQ(supervisor.outcome().code, code);
    EXPECT_THAT(supervisor.outcome().words, HasSubstr("worker-1"));
    EXPECT_THAT(supervisor.outcome().words, HasSubstr("bad shape"));
  }
}

TEST_F(SupervisorTest, ACrashedServerIsStartedAgain) {
  for (const ProcessId server : {kServer1, kServer0}) {
    EXPECT_THAT(End(server, Killed(SIGKILL)), IsEmpty());
    now_ = supervisor_.NextDeadline().value();
    const Supervisor::Actions actions = supervisor_.OnTime(now_);
    EXPECT_THAT(Text(actions), ElementsAre("start " + server.Name()));
  }
  EXPECT_THAT(End(kServer1, Code(75, "ended by SIGTERM")), IsEmpty());
  EXPECT_THAT(NextTime(), ElementsAre("start server-1"));
  EndAll({kServer0, kServer1, kWorker0, kWorker1}, kOk);
  EXPECT_EQ(supervisor_.outcome().code, 0);
  EXPECT_EQ(supervisor_.outcome().warnings.size(), 3u);
}

TEST_F(SupervisorTest, AServerThatIsGoneForGoodEndsTheJobAndItsCauseIsReported) {
  for (int i = 0; i < 3; ++i) {
    End(kServer1, Killed(SIGSEGV));
    NextTime();
  }
  End(kWorker0, Code(75));  // waits to be started again
  EXPECT_THAT(End(kServer1, Killed(SIGSEGV)),
              ElementsAre("signal 15 server-0", "signal 15 worker-1"));
  EndAll({kWorker1, kServer0}, Code(75));
  ASSERT_TRUE(supervisor_.over()) << "the restart must be called off";
  EXPECT_EQ(supervisor_.outcome().code, 1);
  EXPECT_EQ(supervisor_.outcome().words,
            "server-1 was killed by SIGSEGV (signal 11) (after 3 restarts)");
}

// It adds how to go on.
TEST_F(SupervisorTest, TheCauseIsReportedInTheWordsOfServerZeroIfTheyContainIt) {
  End(kWorker1, Code(78, "round 5: fc1 has become NaN"));
  EndAll({kWorker0, kServer1}, Code(75, "the job failed"));
  End(kServer0, Code(78, "worker-1: round 5: fc1 has become NaN; go back to round 3"));
  EXPECT_EQ(supervisor_.outcome().code, 78);
  EXPECT_EQ(
      supervisor_.outcome().words,
      "server-0 ended with exit code 78 (bad configuration): worker-1: round 5: fc1 has become "
      "NaN; go back to round 3");
}

// All workers of a training that diverges fail in the same round, and server 0 knows of one.
TEST_F(SupervisorTest, OfFailuresAtTheSameTimeServerZeroMayReportAnother) {
  const std::string of_server = "worker-0: round 5, partition 0: NaN; go back to round 3";
  const ProcessEnd first = Code(78, "round 5, partition 1: NaN");
  const ProcessEnd second = Code(78, "round 5, partition 0: NaN");
  End(kWorker1, first);
  EndAll({kServer1}, Code(75, "the job failed"));
  Supervisor other_order = supervisor_;
  other_order.OnEnd(kWorker0, second, 1);
  other_order.OnEnd(kServer0, Code(78, of_server), 1);
  End(kServer0, Code(78, of_server));
  End(kWorker0, second);
  for (const Supervisor& supervisor : {supervisor_, other_order}) {
    EXPECT_EQ(supervisor.outcome().words,
              "server-0 ended with exit code 78 (bad configuration): " + of_server);
  }
}

// A job of a week survives a failure a day; one that comes no further does not go on for ever.
TEST_F(SupervisorTest, ALaterCheckpointThanAtTheLastFailureGivesAllRestartsBack) {
  for (int round = 10; round < 200; round += 10) {
    supervisor_.OnCheckpoint(round);
    EXPECT_THAT(End(kServer1, Killed(SIGKILL)), IsEmpty()) << round;
    EXPECT_THAT(NextTime(), ElementsAre("start server-1")) << round;
  }
  for (int i = 0; i < 2; ++i) {
    End(kServer1, Killed(SIGKILL));
    NextTime();
  }
  supervisor_.OnCheckpoint(190);  // the same one
  EXPECT_THAT(End(kServer1, Killed(SIGKILL)), testing::Not(IsEmpty()));
  EXPECT_FALSE(supervisor_.running());
}

// It knows how the job stands.
TEST_F(SupervisorTest, WhatServerZeroLeavesWithIsTheEndOfTheJob) {
  End(kServer1, Code(75, "the job failed: the disk is full"));
  EXPECT_THAT(End(kServer0, Code(75, "the disk is full")),
              ElementsAre("signal 15 worker-0", "signal 15 worker-1"));
  EndAll({kWorker0, kWorker1}, Code(75));
  EXPECT_EQ(supervisor_.outcome().code, 75);
  EXPECT_THAT(supervisor_.outcome().words, HasSubstr("server-0 ended with exit code 75"));
}

TEST_F(SupervisorTest, WhoIgnoresTheEndAfterAFailureIsKilled) {
  End(kServer1, Code(78));
  EndAll({kServer0, kWorker1}, Code(75));
  EXPECT_THAT(NextTime(), ElementsAre("signal 9 worker-0"));
  End(kWorker0, Killed(SIGKILL));
  EXPECT_THAT(supervisor_.outcome().words, HasSubstr("server-1"));
}

TEST_F(SupervisorTest, ARequestToStopGoesToServerZeroAlone) {
  EXPECT_THAT(Text(supervisor_.OnStopRequest(SIGINT, now_)), ElementsAre("signal 15 server-0"));
  EXPECT_EQ(supervisor_.NextDeadline(), now_ + 25 * kSecond);
  End(kServer0, Code(75, "saved round 12"));
  EndAll({kWorker0, kWorker1, kServer1}, Code(75));
  EXPECT_EQ(supervisor_.outcome().code, 75);
  EXPECT_THAT(supervisor_.outcome().words, HasSubstr("stopped by SIGINT: saved round 12"));
}

TEST_F(SupervisorTest, AJobWhoseWorkersHaveAllLeftIsStopped) {
  EndAll({kWorker0, kWorker1}, kOk);
  EXPECT_EQ(supervisor_.NextDeadline(), now_ + 10 * kSecond);
  EXPECT_THAT(NextTime(), ElementsAre("signal 15 server-0"));
  EndAll({kServer0, kServer1}, Code(75, "stopped while there were too few workers"));
  EXPECT_EQ(supervisor_.outcome().code, 75);
  EXPECT_TRUE(supervisor_.outcome().stopped);
  EXPECT_EQ(supervisor_.outcome().words, "stopped: all workers have left the job");
  EXPECT_FALSE(supervisor_.outcome().explained);  // the newest checkpoint is named then
}

TEST_F(SupervisorTest, AServerThatEndsWellAfterAllWorkersHasDoneTheJob) {
  EndAll({kWorker0, kWorker1}, kOk);
  EXPECT_THAT(NextTime(), ElementsAre("signal 15 server-0"));
  EndAll({kServer0, kServer1}, kOk);
  EXPECT_EQ(supervisor_.outcome().code, 0);
}

// A worker that is still starting has not heard of the stop.
TEST_F(SupervisorTest, WhoStaysAfterAStoppedJobIsAskedAndThenKilled) {
  supervisor_.OnStopRequest(SIGINT, now_);
  End(kServer0, Code(75, "stopped after round 12, which is saved"));
  EndAll({kServer1, kWorker0}, Code(75));
  EXPECT_EQ(supervisor_.NextDeadline(), now_ + kSecond);
  EXPECT_THAT(NextTime(), ElementsAre("signal 15 worker-1"));
  EXPECT_EQ(supervisor_.NextDeadline(), now_ + 5 * kSecond);
  EXPECT_THAT(NextTime(), ElementsAre("signal 9 worker-1"));
  End(kWorker1, Killed(SIGKILL));
  EXPECT_EQ(supervisor_.outcome().code, 75);
}

TEST_F(SupervisorTest, WhyAStoppedJobEndedIsSaidOnce) {
  supervisor_.OnStopRequest(SIGINT, now_);
  End(kServer0, Code(75, "stopped after round 12, which is saved"));
  EndAll({kWorker0, kWorker1, kServer1}, Code(75));
  EXPECT_EQ(supervisor_.outcome().words, "stopped by SIGINT after round 12, which is saved");
  EXPECT_TRUE(supervisor_.outcome().stopped);
  EXPECT_TRUE(supervisor_.outcome().explained);
}

TEST_F(SupervisorTest, AJobThatWasKilledDoesNotSayThatAnythingWasSaved) {
  supervisor_.OnStopRequest(SIGINT, now_);
  supervisor_.OnStopRequest(SIGINT, now_ + kSecond);
  EndAll({kServer0, kServer1, kWorker0, kWorker1}, Killed(SIGKILL));
  EXPECT_EQ(supervisor_.outcome().words,
            "stopped by SIGINT (killed: server-0, server-1, worker-0, worker-1)");
  EXPECT_FALSE(supervisor_.outcome().explained);
}

TEST_F(SupervisorTest, AJobThatEndsJustWhenItIsToStopIsDone) {
  supervisor_.OnStopRequest(SIGTERM, now_);
  EndAll({kServer0, kWorker0, kWorker1, kServer1}, kOk);
  EXPECT_EQ(supervisor_.outcome().code, 0);
}

TEST_F(SupervisorTest, NobodyIsStartedAgainWhileStopping) {
  End(kWorker0, Code(1));
  supervisor_.OnStopRequest(SIGTERM, now_);
  End(kWorker1, Code(75));
  EXPECT_THAT(Text(supervisor_.OnTime(now_ + 24 * kSecond)), IsEmpty());
  EndAll({kServer0, kServer1}, Code(75));
  EXPECT_TRUE(supervisor_.over());
}

TEST_F(SupervisorTest, ACrashWhileStoppingIsTheCause) {
  supervisor_.OnStopRequest(SIGTERM, now_);
  End(kServer0, Killed(SIGSEGV));
  EndAll({kServer1, kWorker0, kWorker1}, Code(75));
  EXPECT_EQ(supervisor_.outcome().code, 1);
  EXPECT_THAT(supervisor_.outcome().words, HasSubstr("server-0 was killed by SIGSEGV"));
}

TEST_F(SupervisorTest, TheGracePeriodEndsWithSigkill) {
  supervisor_.OnStopRequest(SIGTERM, now_);
  EndAll({kWorker0, kWorker1}, Code(75));
  EXPECT_THAT(NextTime(), ElementsAre("signal 9 server-0", "signal 9 server-1"));
  EndAll({kServer0, kServer1}, Killed(SIGKILL));
  EXPECT_EQ(supervisor_.outcome().code, 75);
  EXPECT_THAT(supervisor_.outcome().words, HasSubstr("killed: server-0, server-1"));
}

TEST_F(SupervisorTest, ASecondRequestKillsEverybody) {
  supervisor_.OnStopRequest(SIGINT, now_);
  EXPECT_THAT(Text(supervisor_.OnStopRequest(SIGINT, now_ + 20 * kMillisecond)), IsEmpty())
      << "so soon after the first it is the same request";
  now_ += 150 * kMillisecond;  // as soon as a person can
  EXPECT_THAT(Text(supervisor_.OnStopRequest(SIGINT, now_)),
              ElementsAre("signal 9 server-0", "signal 9 server-1", "signal 9 worker-0",
                          "signal 9 worker-1"));
  EXPECT_THAT(Text(supervisor_.OnStopRequest(SIGINT, now_)), IsEmpty());
  EndAll({kServer0, kServer1, kWorker0, kWorker1}, Killed(SIGKILL));
  EXPECT_EQ(supervisor_.outcome().code, 75);
}

TEST_F(SupervisorTest, WhoStaysAfterTheJobIsDoneIsAskedAndThenKilled) {
  EndAll({kServer0, kServer1, kWorker0}, kOk);
  EXPECT_THAT(NextTime(), ElementsAre("signal 15 worker-1"));
  EXPECT_THAT(NextTime(), ElementsAre("signal 9 worker-1"));
  End(kWorker1, Killed(SIGKILL));
  EXPECT_EQ(supervisor_.outcome().code, 1);
  EXPECT_THAT(supervisor_.outcome().words, HasSubstr("worker-1 did not end within 15 s"));
}

TEST_F(SupervisorTest, ARequestToStopAfterTheJobIsDoneAsksThoseThatAreLeft) {
  EndAll({kServer0, kServer1, kWorker0}, kOk);
  EXPECT_THAT(Text(supervisor_.OnStopRequest(SIGINT, now_)), ElementsAre("signal 15 worker-1"));
  Supervisor ignored = supervisor_, killed = supervisor_;
  End(kWorker1, Killed(SIGTERM));
  EXPECT_EQ(supervisor_.outcome().code, 0);
  EXPECT_TRUE(supervisor_.outcome().done);
  // A second request kills.
  EXPECT_THAT(Text(killed.OnStopRequest(SIGINT, now_ + kSecond)), ElementsAre("signal 9 worker-1"));
  killed.OnEnd(kWorker1, Killed(SIGKILL), now_ + kSecond);
  EXPECT_EQ(killed.outcome().code, 0);
  EXPECT_EQ(killed.outcome().words, "");
  // So does time, without a second SIGTERM.
  now_ = ignored.NextDeadline().value();
  EXPECT_THAT(Text(ignored.OnTime(now_)), ElementsAre("signal 9 worker-1"));
  ignored.OnEnd(kWorker1, Killed(SIGKILL), now_);
  EXPECT_EQ(ignored.outcome().code, 1);
}

// It saves, or copies the model.
TEST_F(SupervisorTest, AFirstRequestToStopAfterAllWorkersHaveLeftDoesNotKillServerZero) {
  EndAll({kWorker0, kWorker1}, kOk);
  EXPECT_THAT(NextTime(), ElementsAre("signal 15 server-0"));
  EXPECT_THAT(Text(supervisor_.OnStopRequest(SIGINT, now_)), IsEmpty());
  EXPECT_EQ(supervisor_.NextDeadline(), now_ + 600 * kSecond);
  Supervisor again = supervisor_;
  EXPECT_THAT(Text(again.OnStopRequest(SIGINT, now_ + kSecond)),
              ElementsAre("signal 9 server-0", "signal 9 server-1"));
  EndAll({kServer0, kServer1}, kOk);
  EXPECT_EQ(supervisor_.outcome().code, 0);
}

TEST_F(SupervisorTest, AFirstRequestToStopWhileTheJobFailsKillsNobody) {
  End(kWorker1, Code(78, "bad shape"));
  EXPECT_THAT(Text(supervisor_.OnStopRequest(SIGINT, now_)), IsEmpty());
  EXPECT_THAT(Text(supervisor_.OnStopRequest(SIGINT, now_ + kSecond)),
              ElementsAre("signal 9 server-0", "signal 9 server-1", "signal 9 worker-0"));
  EndAll({kServer0, kServer1, kWorker0}, Killed(SIGKILL));
  EXPECT_EQ(supervisor_.outcome().code, 78);
}

TEST_F(SupervisorTest, AWorkerThatLosesItsServerBecauseTheJobIsDoneIsNoFailure) {
  EndAll({kServer0, kServer1, kWorker0}, kOk);
  End(kWorker1, Code(75));
  EXPECT_EQ(supervisor_.outcome().code, 0);
  EXPECT_EQ(supervisor_.outcome().warnings.size(), 1u);
}

TEST_F(SupervisorTest, ACrashAfterTheJobIsDoneIsNotHidden) {
  EndAll({kServer0, kWorker0, kWorker1}, kOk);
  End(kServer1, Killed(SIGABRT));
  EXPECT_EQ(supervisor_.outcome().code, 1);
}

// Whatever happens in whatever order: nothing is started twice, nothing that is not running is
// signalled, and after a while without any co-operation everything is over.
TEST(SupervisorProperty, AnyHistoryEndsWithNothingRunning) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Rng rng(seed, RngPurpose::kTest);
    const int servers = 1 + static_cast<int>(rng.NextBelow(3));
    const int workers = 1 + static_cast<int>(rng.NextBelow(3));
    Supervisor supervisor({.servers = servers, .workers = workers, .max_restarts = 2});
    std::set<ProcessId> running, doomed;
    TimeUs now = 0;
    bool stopped_or_failed = false;
    const auto apply = [&](const Supervisor::Actions& actions) {
      for (const SupervisorAction& action : actions) {
        if (action.kind == SupervisorAction::Kind::kStart) {
          ASSERT_TRUE(running.insert(action.process).second) << "seed " << seed;
        } else {
          ASSERT_EQ(running.count(action.process), 1u) << "seed " << seed;
          if (action.signal == SIGKILL) doomed.insert(action.process);
        }
      }
    };
    const auto end = [&](ProcessId id, ProcessEnd how) {
      running.erase(id);
      doomed.erase(id);
      stopped_or_failed |= !how.ok();
      apply(supervisor.OnEnd(id, how, now));
    };
    apply(supervisor.Begin(now));
    for (int step = 0; step < 30 && !running.empty(); ++step) {
      now += static_cast<TimeUs>(rng.NextBelow(3 * kSecond));
      apply(supervisor.OnTime(now));
      if (running.empty()) break;
      const uint64_t dice = rng.NextBelow(20);
      if (dice == 0) {
        stopped_or_failed = true;
        apply(supervisor.OnStopRequest(SIGTERM, now));
      } else if (dice < 8) {
        const auto it = std::next(running.begin(), rng.NextBelow(running.size()));
        constexpr int kCodes[] = {0, 0, 1, 75, 75, 64, 78};
        end(*it, rng.NextBelow(6) == 0 ? Killed(SIGSEGV) : Code(kCodes[rng.NextBelow(7)]));
      }
    }
    // From here on everybody ignores all but SIGKILL; a person asks to stop, twice.
    apply(supervisor.OnStopRequest(SIGINT, now));
    now += kSecond;
    apply(supervisor.OnStopRequest(SIGINT, now));
    for (int step = 0; step < 100 && !supervisor.over(); ++step) {
      now += kSecond;
      apply(supervisor.OnTime(now));
      while (!doomed.empty()) end(*doomed.begin(), Killed(SIGKILL));
    }
    ASSERT_TRUE(supervisor.over()) << "seed " << seed;
    ASSERT_TRUE(running.empty()) << "seed " << seed;
    const Outcome outcome = supervisor.outcome();
    EXPECT_EQ(outcome.code != 0, !outcome.words.empty()) << "seed " << seed;
    if (!stopped_or_failed && outcome.code != 0) {
      EXPECT_TRUE(outcome.code == 75 || outcome.code == 1) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace kumo
