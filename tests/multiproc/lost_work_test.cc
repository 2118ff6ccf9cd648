// Work that must not be lost: earlier runs, weights from before a divergence, curves and
// checkpoints of a disk that was full for a while, rounds since the last checkpoint. With real
// processes.
#include <signal.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/file.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/manifest.h"
#include "tests/multiproc/cluster_of_processes.h"

namespace kumo::multiproc {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Ended Kumo(ClusterOfProcesses* job, const std::string& command,
           const std::vector<std::string>& more = {}) {
  job->WriteExperiment();
  std::vector<std::string> words = {command, job->experiment_file()};
  words.insert(words.end(), more.begin(), more.end());
  return job->Run("kumo", words);
}

std::vector<std::string> Checkpoints(const std::string& output) {
  PosixFileSystem files;
  return ListCheckpoints(files, output + "/checkpoints").value();
}

TEST(EarlierRuns, StayWholeAndOneThatIsRefusedByItsDataChangesNothing) {
  ClusterOfProcesses job("anew");
  SetSmallLenet(&job);
  job.Set("job.epochs", "1");
  ASSERT_EQ(Kumo(&job, "launch", {"--quiet"}).code, 0);
  const std::string first = ReadFile(job.output() + "/log.jsonl");

  std::string network =
      ReadFile(std::string(KUMO_SOURCE_DIR) + "/tests/multiproc/small_lenet.pbtxt");
  network.replace(network.rfind("outputs: 10"), 11, "outputs: 5");
  std::ofstream(job.Path("five.pbtxt")) << network;
  const std::vector<std::string> anew = {"--quiet", "--set", "checkpoint.resume=never"};
  std::vector<std::string> refused = anew;
  refused.insert(refused.end(), {"--set", "network.file=" + job.Path("five.pbtxt")});
  const Ended no = Kumo(&job, "launch", refused);
  EXPECT_EQ(no.code, 78) << no.output;
  EXPECT_THAT(no.output, HasSubstr("the network has 5 outputs"));
  EXPECT_EQ(ReadFile(job.output() + "/log.jsonl"), first);
  EXPECT_EQ(Checkpoints(job.output()).size(), 1u);

  job.Set("job.epochs", "2");
  ASSERT_EQ(Kumo(&job, "launch", anew).code, 0);
  const std::string second = ReadFile(job.output() + "/log.jsonl");
  const Ended third = Kumo(&job, "launch", {"--set", "checkpoint.resume=never"});
  ASSERT_EQ(third.code, 0) << third.output;
  EXPECT_THAT(third.output,
              AllOf(HasSubstr("the run until now is in " + job.output() + "/earlier/2\n"),
                    HasSubstr("earlier " + job.output() + "/earlier/2\n")));
  EXPECT_EQ(ReadFile(job.output() + "/earlier/1/log.jsonl"), first);
  EXPECT_EQ(ReadFile(job.output() + "/earlier/2/log.jsonl"), second);
  EXPECT_EQ(Checkpoints(job.output() + "/earlier/1").front(), CheckpointName(8));
  EXPECT_EQ(Checkpoints(job.output() + "/earlier/2").front(), CheckpointName(16));
  EXPECT_THAT(ReadFile(job.output() + "/earlier/1/logs/worker-0.stderr"), Not(HasSubstr("78")));

  // A network that has learned nothing is a failure for scripts that ask for it.
  job.Set("job.epochs", "1");
  std::vector<std::string> strict = anew;
  strict.insert(strict.end(),
                {"--set", "job.fail_if_diverged=true", "--set", "schedule.learning_rate=1e-9"});
  const Ended at_chance = Kumo(&job, "launch", strict);
  EXPECT_EQ(at_chance.code, 78) << at_chance.output;
  EXPECT_THAT(at_chance.output.substr(at_chance.output.rfind("kumo launch: ")),
              AllOf(HasSubstr("the network has learned nothing"), Not(HasSubstr("go back"))));
}

// y = 3 a - 2 b, which a rate of .5 makes diverge.
void WriteRegression(ClusterOfProcesses* job) {
  for (const auto& [name, samples] : {std::pair("train.ctf", 256), std::pair("test.ctf", 64)}) {
    std::ofstream file(job->Path(name));
    for (int i = 0; i < samples; ++i) {
      const int a = i * 7 % 5 - 2, b = i * 11 % 7 - 3;
      file << "|labels " << 3 * a - 2 * b << " |features " << a << " " << b << "\n";
    }
  }
  std::ofstream(job->Path("line.pbtxt"))
      << "name: \"line\"\ninput { channels: 2 height: 1 width: 1 }\n"
         "layers { name: \"fc\" fully_connected { outputs: 1 } }\n"
         "layers { name: \"loss\" mean_squared_error {} }\n";
  job->Set("network.file", job->Path("line.pbtxt"));
  job->Set("data.reader", "ctf");
  job->Set("data.train_images", job->Path("train.ctf"));
  job->Set("data.validation_images", job->Path("test.ctf"));
  job->Set("data.classes", "0");
  job->Set("sync.mode", "gradient");
  job->Set("sync.partitions", "1");
  job->Set("sync.minibatch", "16");
  job->Set("checkpoint.every_rounds", "1");
  job->Set("checkpoint.keep", "2");
  job->Set("cluster.workers", "1");
  job->Set("output.directory", job->output());
}

TEST(Divergence, TheAdviceNamesARoundFromBeforeItAndFollowingItWorks) {
  ClusterOfProcesses job("diverged");
  WriteRegression(&job);
  job.Set("job.epochs", "1");
  job.Set("schedule.learning_rate", "0.02");
  ASSERT_EQ(Kumo(&job, "launch", {"--quiet"}).code, 0);
  job.Set("job.epochs", "60");
  const Ended diverged =
      Kumo(&job, "launch", {"--continue", "--set", "schedule.learning_rate=0.5"});
  EXPECT_EQ(diverged.code, 78) << diverged.output;
  const std::string last = diverged.output.substr(diverged.output.rfind("kumo launch: "));
  EXPECT_THAT(last, AllOf(HasSubstr("try a lower schedule.learning_rate"),
                          HasSubstr("the newest checkpoint from before that is of round ")));
  // As a person would: copies the command to a shell, and chooses a rate.
  const size_t command = last.rfind("kumo launch " + job.experiment_file());
  ASSERT_NE(command, std::string::npos) << last;
  std::string words = last.substr(command, last.find('\n', command) - command);
  EXPECT_THAT(words, AllOf(HasSubstr(" --set schedule.learning_rate=0.05"),
                           HasSubstr(" --continue --set checkpoint.resume=")));
  const Ended mended = job.Run("/bin/sh", {"-c", std::string(KUMO_BIN_DIR) + "/" + words});
  EXPECT_EQ(mended.code, 0) << words << "\n" << mended.output;
  EXPECT_THAT(mended.output, HasSubstr("/earlier/1\n"));
  EXPECT_THAT(mended.output, Not(HasSubstr("warning")));
}

// The disk is a small file system in a mount namespace of its own.
constexpr char kFullDisk[] = R"(
out=$1; log=$2; shift 2
mkdir -p $out && mount -t tmpfs -o size=72m none $out || exit 99
"$@" > $log 2>&1 &
pid=$!
trap 'kill -TERM $pid' TERM
await() { until eval "$1"; do kill -0 $pid 2>/dev/null || { cat $log; exit 98; }; sleep .05; done; }
await "grep -q point $out/log.jsonl 2>/dev/null && ls $out/checkpoints/*/MANIFEST >/dev/null 2>&1"
await "cat /dev/zero >> $out/filler 2>/dev/null
  grep -q 'could not be saved' $log && grep -q 'records of log.jsonl wait' $log"
$(dirname $1)/kumo status $out > $log.status 2>&1
rm $out/filler
await "grep -q 'checkpoints are saved again' $log && grep -q 'log.jsonl: written again' $log"
kill -TERM $pid
wait $pid
echo rc $? >> $log
cp $out/log.jsonl $log.jsonl
)";

TEST(FullDisk, IsSaidAndLeavesNoGap) {
  ClusterOfProcesses job("full");
  const Ended namespaces =
      job.Run("/usr/bin/unshare", {"-rm", "mount", "-t", "tmpfs", "none", "/mnt"});
  if (namespaces.code != 0) GTEST_SKIP() << "no mount namespace: " << namespaces.output;
  SetSmallLenet(&job);
  job.Set("job.epochs", "100000");
  job.Set("checkpoint.every_rounds", "1");
  job.Set("checkpoint.keep", "1");
  job.Set("output.points_per_epoch", "8");
  job.Set("output.interval_s", "3600");
  job.Set("evaluation.every_epochs", "100000");
  job.WriteExperiment();
  const std::string log = job.Path("log");
  const std::string kumo = std::string(KUMO_BIN_DIR) + "/kumo";
  const Ended ended =
      job.Run("/usr/bin/unshare", {"-rm", "/bin/sh", "-c", kFullDisk, "sh", job.output(), log, kumo,
                                   "launch", job.experiment_file(), "--workers", "1", "--no-page"});
  ASSERT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ReadFile(log), HasSubstr("rc 75"));
  EXPECT_THAT(ReadFile(log + ".status"), AllOf(HasSubstr("failed checkpoints since: "),
                                               HasSubstr("curves cannot be written: ")));
  int64_t next = 1;
  std::istringstream lines(ReadFile(log + ".jsonl"));
  for (std::string line; std::getline(lines, line);) {
    long long round = 0;
    if (line.find("\"kind\":\"point\"") == std::string::npos) continue;
    ASSERT_EQ(std::sscanf(line.c_str(), "{\"round\":%lld", &round), 1);
    ASSERT_EQ(round, next) << "a gap";
    ++next;
  }
  EXPECT_GT(next, 10);
}

TEST(EarlyStopping, EndsWithTheSameRoundWhoeverIsKilled) {
  std::vector<float> undisturbed;
  for (const char* victim : {"", "server-0"}) {
    ClusterOfProcesses job("early");
    SetSmallLenet(&job);
    job.Set("job.epochs", "500");
    job.Set("job.patience", "2");
    job.Set("job.min_improvement", "0.2");
    job.Set("checkpoint.every_rounds", "3");
    job.StartAll(2, 2);
    if (*victim != 0) {
      ASSERT_TRUE(job.SignalAtRound(10, victim, SIGKILL));
      EXPECT_EQ(job.Wait(victim).code, 128 + SIGKILL);
      job.StartServer(0);
    }
    for (const char* id : {"server-0", "server-1", "worker-0", "worker-1"}) {
      const Ended ended = job.Wait(id);
      EXPECT_EQ(ended.code, 0) << victim << ", " << id << ": " << ended.output;
    }
    EXPECT_THAT(ReadFile(job.Path("server-0.output")),
                AllOf(HasSubstr("no better validation loss for 2 epochs, since epoch "),
                      HasSubstr("done: ")));
    const std::vector<float> weights = job.FinalWeights();
    if (undisturbed.empty()) undisturbed = weights;
    EXPECT_EQ(weights, undisturbed);
    // The job is done, and stays so.
    const Ended again = Kumo(&job, "launch", {"--quiet", "--workers", "1"});
    EXPECT_EQ(again.code, 0) << again.output;
    EXPECT_EQ(job.FinalWeights(), weights);
  }
}

// Server 1 is frozen until server 0, which was killed and is started again, is told to stop. There
// is no checkpoint.
TEST(Takeover, AServer0ThatIsStoppedWhileItComesBackSavesTheRoundsOfTheOthers) {
  ClusterOfProcesses job("takeover");
  SetSmallLenet(&job);
  job.Set("job.epochs", "100");
  job.Set("cluster.replicas", "2");
  job.Set("checkpoint.every_minutes", "0");
  job.StartAll(2, 2);
  ASSERT_TRUE(job.SignalAtRound(9, "server-0", SIGKILL));
  EXPECT_EQ(job.Wait("server-0").code, 128 + SIGKILL);
  ASSERT_TRUE(Checkpoints(job.output()).empty());
  job.Signal("server-1", SIGSTOP);
  job.StartServer(0);
  ASSERT_TRUE(job.WaitUntil([&] { return job.Status().phase() == "waiting"; }));
  job.Signal("server-0", SIGTERM);
  job.Signal("server-1", SIGCONT);
  const Ended stopped = job.Wait("server-0");
  EXPECT_EQ(stopped.code, 75);
  EXPECT_THAT(stopped.output, HasSubstr("stopped after round"));
  ASSERT_FALSE(Checkpoints(job.output()).empty());
  EXPECT_GT(Checkpoints(job.output()).front(), CheckpointName(9));
  for (const char* id : {"server-1", "worker-0", "worker-1"}) {
    const Ended ended = job.Wait(id);
    EXPECT_EQ(ended.code, 75) << id << ": " << ended.output;
  }
}

}  // namespace
}  // namespace kumo::multiproc
