// Where a job's weights go on: the best epoch is kept, more epochs and other settings from a
// checkpoint on, and another job from some of its tensors. With real processes.
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/file.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/manifest.h"
#include "tests/multiproc/cluster_of_processes.h"

namespace kumo::multiproc {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

// LeNet on a small digit set: 4 partitions, 8 rounds an epoch; with residuals and a local optimiser
// that keeps its state, so that whatever is lost shows.
void SmallJob(ClusterOfProcesses* job) {
  SetSmallLenet(job);
  job->Set("job.epochs", "2");
  job->Set("sync.push_codec", "1bit");
  job->Set("block.reset_local_state", "false");
  job->Set("cluster.workers", "2");
  job->Set("cluster.recovery", "exact");
  // A worker that a test stops for a moment, on a busy machine for several seconds, is not given
  // up.
  job->Set("cluster.suspect_after_s", "60");
}

Ended Kumo(ClusterOfProcesses* job, const std::string& command,
           const std::vector<std::string>& more = {}) {
  job->WriteExperiment();
  std::vector<std::string> words = {command, job->experiment_file()};
  words.insert(words.end(), more.begin(), more.end());
  return job->Run("kumo", words);
}

// The number behind `"key":` in a line of JSON.
double Number(const std::string& line, const std::string& key) {
  const size_t at = line.find("\"" + key + "\":");
  if (at == std::string::npos) ADD_FAILURE() << "no " << key << " in " << line;
  return at == std::string::npos ? -1 : std::stod(line.substr(at + key.size() + 3));
}

// Lines of log.jsonl of a kind.
std::vector<std::string> Lines(const ClusterOfProcesses& job, const std::string& kind) {
  std::vector<std::string> lines;
  std::istringstream log(ReadFile(job.output() + "/log.jsonl"));
  for (std::string line; std::getline(log, line);) {
    if (line.find("\"kind\":\"" + kind + "\"") != std::string::npos) lines.push_back(line);
  }
  return lines;
}

std::vector<std::string> Checkpoints(const ClusterOfProcesses& job) {
  PosixFileSystem files;
  return ListCheckpoints(files, job.output() + "/checkpoints").value();
}

checkpoint::Manifest Newest(const ClusterOfProcesses& job) {
  PosixFileSystem files;
  const std::string folder = job.output() + "/checkpoints";
  return ReadManifest(files, folder, Checkpoints(job).front()).value();
}

TEST(GoingOn, TheBestEpochIsKeptWhateverIsKilledAndEvaluateFindsIt) {
  ClusterOfProcesses job("best");
  SmallJob(&job);
  job.Set("job.epochs", "5");
  job.Set("schedule.learning_rate", "0.1");  // its accuracy goes up and down
  job.Set("checkpoint.best", "accuracy");
  job.Set("checkpoint.keep", "1");
  job.StartAll(2, 2);
  ASSERT_TRUE(job.SignalAtRound(18, "server-0", SIGKILL));
  EXPECT_EQ(job.Wait("server-0").code, 128 + SIGKILL);
  job.StartServer(0);
  for (const char* id : {"server-0", "server-1", "worker-0", "worker-1"}) {
    const Ended ended = job.Wait(id);
    EXPECT_EQ(ended.code, 0) << id << ": " << ended.output;
  }
  // An epoch that was evaluated again counts once: the figures are the same.
  double accuracy = -1;
  int64_t round = 0;
  for (const std::string& line : Lines(job, "epoch")) {
    if (Number(line, "validation/main/accuracy") <= accuracy) continue;
    accuracy = Number(line, "validation/main/accuracy");
    round = static_cast<int64_t>(Number(line, "round"));
  }
  ASSERT_GT(accuracy, 0.5);
  const Ended best = Kumo(&job, "evaluate", {"--checkpoint", "best", "--json"});
  ASSERT_EQ(best.code, 0) << best.output;
  EXPECT_THAT(best.output, HasSubstr(CheckpointName(round)));
  EXPECT_NEAR(Number(best.output, "validation/main/accuracy"), accuracy, 1e-9);
  EXPECT_LE(Checkpoints(job).size(), 2u);
  EXPECT_THAT(ReadFile(job.Path("server-0.output")),
              HasSubstr("best    " + job.output() + "/checkpoints/" + CheckpointName(round)));
  const Ended latest = Kumo(&job, "evaluate", {"--checkpoint", "latest"});
  EXPECT_THAT(latest.output, HasSubstr(Checkpoints(job).front()));
}

TEST(GoingOn, TheFinalModelIsWhereTheExperimentSaysAndIsPutThereAgain) {
  ClusterOfProcesses job("model");
  SmallJob(&job);
  const std::string folder = job.Path("models/mine");
  job.Set("output.final_model", folder);
  const Ended launch = Kumo(&job, "launch", {"--servers", "2"});
  ASSERT_EQ(launch.code, 0) << launch.output;
  const std::string model = folder + "/" + Newest(job).name();
  EXPECT_THAT(launch.output, HasSubstr("model   " + model));
  PosixFileSystem files;
  EXPECT_EQ(VerifyCheckpoint(files, folder, Newest(job).name())->SerializeAsString(),
            Newest(job).SerializeAsString());
  const Ended evaluated = Kumo(&job, "evaluate", {"--checkpoint", folder});
  EXPECT_EQ(evaluated.code, 0) << evaluated.output;
  EXPECT_THAT(evaluated.output, HasSubstr(Newest(job).name()));

  // A job that is done puts it there again, and can do nothing else.
  fs::remove_all(folder);
  const Ended again = Kumo(&job, "launch");
  EXPECT_EQ(again.code, 0) << again.output;
  EXPECT_TRUE(VerifyCheckpoint(files, folder, Newest(job).name()).ok());

  ClusterOfProcesses other("other_model");
  SmallJob(&other);
  other.Set("output.final_model", folder);
  other.Set("job.name", "other");
  for (const char* command : {"check", "launch"}) {
    const Ended refused = Kumo(&other, command);
    EXPECT_EQ(refused.code, 78) << refused.output;
    EXPECT_THAT(refused.output, HasSubstr("output.final_model = " + folder +
                                          ": the folder already has the model of the job"));
  }
}

TEST(GoingOn, MoreEpochsAreRefusedWithAWordAndTakenBitForBitWithIt) {
  ClusterOfProcesses whole("whole");
  SmallJob(&whole);
  whole.Set("job.epochs", "4");
  const Ended reference = Kumo(&whole, "launch", {"--quiet"});
  ASSERT_EQ(reference.code, 0) << reference.output;

  ClusterOfProcesses job("continue");
  SmallJob(&job);
  ASSERT_EQ(Kumo(&job, "launch", {"--quiet"}).code, 0);
  const int64_t until = Newest(job).version();

  job.Set("job.epochs", "4");
  for (const char* command : {"launch", "check"}) {
    const Ended refused = Kumo(&job, command);
    EXPECT_EQ(refused.code, 78) << refused.output;
    EXPECT_THAT(refused.output,
                AllOf(HasSubstr("job.epochs 2 -> 4"), HasSubstr("kumo launch --continue")));
  }
  const Ended check = Kumo(&job, "check", {"--continue"});
  EXPECT_EQ(check.code, 0) << check.output;
  EXPECT_THAT(check.output, AllOf(HasSubstr("start    from checkpoint " + CheckpointName(until)),
                                  HasSubstr("job.epochs 2 -> 4")));

  // On another number of servers.
  const Ended launch = Kumo(&job, "launch", {"--continue", "--servers", "2"});
  ASSERT_EQ(launch.code, 0) << launch.output;
  EXPECT_THAT(launch.output, HasSubstr("from now on: job.epochs 2 -> 4"));
  EXPECT_EQ(job.FinalWeights(), whole.FinalWeights());
  // The curve is that of one run.
  const auto points = [](const ClusterOfProcesses& of) {
    std::vector<std::string> curve;
    for (const std::string& line : Lines(of, "point")) {
      curve.push_back(line.substr(0, line.find("\"elapsed_time\"")));
    }
    return curve;
  };
  EXPECT_EQ(points(job), points(whole));
  ASSERT_EQ(Lines(job, "continued").size(), 1u);
  EXPECT_THAT(Lines(job, "continued")[0],
              AllOf(HasSubstr("{\"round\":" + std::to_string(until) + ","),
                    HasSubstr("\"epoch\":3,\"changes\":{\"job.epochs\":[\"2\",\"4\"]}")));
  ASSERT_EQ(Newest(job).continuations_size(), 1);
  EXPECT_EQ(Newest(job).continuations(0).version(), until);
  // From there on it is this experiment.
  EXPECT_EQ(Kumo(&job, "launch", {"--quiet"}).code, 0);
}

// Until there is a checkpoint of its own, a job that goes back goes on from the other settings'
// again.
TEST(GoingOn, WhoIsKilledAfterwardsCostsNoBit) {
  ClusterOfProcesses whole("whole");
  SmallJob(&whole);
  whole.Set("job.epochs", "5");
  ASSERT_EQ(Kumo(&whole, "launch", {"--quiet"}).code, 0);
  ClusterOfProcesses job("killed");
  SmallJob(&job);
  ASSERT_EQ(Kumo(&job, "launch", {"--quiet"}).code, 0);
  const int64_t until = Newest(job).version();
  job.Set("job.epochs", "5");
  job.Set("checkpoint.continue", "true");
  job.StartAll(2, 2);
  for (const std::string victim : {"server-0", "server-1", "worker-1"}) {
    ASSERT_TRUE(job.WaitForRound(until + 2)) << victim;
    const uint32_t generation = job.Status().generation();
    ASSERT_TRUE(job.SignalAtRound(until + 4, victim, SIGKILL)) << victim;
    EXPECT_EQ(job.Wait(victim).code, 128 + SIGKILL);
    EXPECT_EQ(Newest(job).version(), until) << victim;
    if (victim[0] == 's') job.StartServer(victim.back() - '0');
    if (victim[0] == 'w') job.StartWorker(1);
    ASSERT_TRUE(job.WaitUntil([&] { return job.Status().generation() > generation; })) << victim;
  }
  for (const char* id : {"server-0", "server-1", "worker-0", "worker-1"}) {
    const Ended ended = job.Wait(id);
    EXPECT_EQ(ended.code, 0) << id << ": " << ended.output;
  }
  EXPECT_EQ(job.FinalWeights(), whole.FinalWeights());
  EXPECT_EQ(Newest(job).continuations_size(), 1);
}

// Nor does it meet the later checkpoints of the branch that it has left.
TEST(GoingOn, FromANamedRoundTheLaterCheckpointsAreLeftForGood) {
  const auto branch = [](const std::vector<std::string>& victims) -> std::vector<float> {
    ClusterOfProcesses job("branch");
    SmallJob(&job);
    job.Set("checkpoint.every_epochs", "1");
    job.Set("checkpoint.keep", "9");
    const Ended first = Kumo(&job, "launch", {"--quiet"});
    EXPECT_EQ(first.code, 0) << first.output;
    if (first.code != 0) return {};
    PosixFileSystem files;
    const std::string folder = job.output() + "/checkpoints";
    const int64_t round = ReadManifest(files, folder, Checkpoints(job).back())->version();
    EXPECT_LT(round, Newest(job).version());
    job.Set("checkpoint.every_epochs", "0");
    job.Set("checkpoint.resume", std::to_string(round));
    job.Set("checkpoint.continue", "true");
    job.Set("schedule.learning_rate", "0.01");
    job.StartAll(2, 2);
    for (const std::string& victim : victims) {
      EXPECT_TRUE(job.SignalAtRound(round + 2, victim, SIGKILL)) << victim;
      EXPECT_EQ(job.Wait(victim).code, 128 + SIGKILL);
      job.Set("checkpoint.resume", "auto");
      job.WriteExperiment();
      job.StartServer(victim.back() - '0');
    }
    for (const char* id : {"server-0", "server-1", "worker-0", "worker-1"}) {
      const Ended ended = job.Wait(id);
      EXPECT_EQ(ended.code, 0) << id << ": " << ended.output;
    }
    EXPECT_TRUE(files.Exists(job.output() + "/earlier/1/checkpoints"));
    return job.FinalWeights();
  };
  EXPECT_EQ(branch({"server-0", "server-1"}), branch({}));
}

TEST(GoingOn, ARenamedFileAndAMovedFolderAreNoChange) {
  ClusterOfProcesses job("renamed");
  SmallJob(&job);
  ASSERT_EQ(Kumo(&job, "launch", {"--quiet"}).code, 0);
  const std::string file = job.Path("another-name.conf"), moved = job.Path("moved");
  fs::rename(job.experiment_file(), file);
  fs::rename(job.output(), moved);
  const Ended again = job.Run("kumo", {"launch", file, "--set", "output.directory=" + moved});
  EXPECT_EQ(again.code, 0) << again.output;
  EXPECT_THAT(again.output,
              AllOf(HasSubstr("the job is done already"), testing::Not(HasSubstr("from now on"))));
}

TEST(GoingOn, WhatCannotChangeIsRefusedByNameAndOtherSettingsGoOn) {
  ClusterOfProcesses job("changes");
  SmallJob(&job);
  job.Set("block.nesterov", "true");
  ASSERT_EQ(Kumo(&job, "launch", {"--quiet"}).code, 0);
  job.Set("job.epochs", "3");
  for (const char* command : {"check", "launch"}) {
    const Ended data = Kumo(&job, command, {"--continue", "--set", "data.train_limit=100"});
    EXPECT_EQ(data.code, 78) << data.output;
    EXPECT_THAT(data.output, HasSubstr("there are 100, so that round "));
    const Ended network =
        Kumo(&job, command, {"--continue", "--set", "network.file=" + SmallMlp()});
    EXPECT_EQ(network.code, 78) << network.output;
    EXPECT_THAT(network.output, HasSubstr("is of another network: tensor 0 is"));
  }
  // All that is carried changes.
  const Ended changed =
      Kumo(&job, "launch",
           {"--continue", "--set", "sync.push_codec=fp32", "--set", "block.nesterov=false", "--set",
            "optimiser.type=sgd", "--set", "sync.partitions=2", "--set", "sync.minibatch=32"});
  EXPECT_EQ(changed.code, 0) << changed.output;
  EXPECT_THAT(changed.output,
              AllOf(HasSubstr("sync.partitions 4 -> 2"), HasSubstr("the state of the partitions"),
                    HasSubstr("blocks start from the weights that were evaluated")));
  EXPECT_GT(Number(Lines(job, "epoch").back(), "validation/main/accuracy"), 0.5);

  // Factors of layers matter for further training alone, which takes them.
  const Ended evaluated = Kumo(&job, "evaluate");
  const auto weight_of = [&] {
    const checkpoint::Manifest manifest = Newest(job);
    const Range range = LayoutOf(manifest)->tensor(0);
    EXPECT_EQ(manifest.tensors(0).name(), "conv1.weight");
    const std::vector<float> weights = job.FinalWeights();
    return std::vector<float>(weights.begin() + range.begin, weights.begin() + range.end);
  };
  const std::vector<float> weight = weight_of();
  std::string text = ReadFile(std::string(KUMO_SOURCE_DIR) + "/tests/multiproc/small_lenet.pbtxt");
  for (const std::string layer : {"conv1", "fc2"}) {
    const std::string name = "name: \"" + layer + "\"";
    ASSERT_NE(text.find(name), std::string::npos);
    text.replace(text.find(name), name.size(),
                 name + (layer == "fc2" ? " learning_rate_factor: 2" : " trainable: false"));
  }
  std::ofstream(job.Path("frozen.pbtxt")) << text;
  job.Set("network.file", job.Path("frozen.pbtxt"));
  const Ended same = Kumo(&job, "evaluate");
  EXPECT_EQ(same.code, 0);
  EXPECT_EQ(same.output, evaluated.output);
  const Ended refused = Kumo(&job, "launch", {"--set", "job.epochs=4"});
  EXPECT_EQ(refused.code, 78);
  job.Set("job.epochs", "4");
  const Ended frozen =
      Kumo(&job, "launch",
           {"--continue", "--set", "sync.push_codec=fp32", "--set", "block.nesterov=false", "--set",
            "optimiser.type=sgd", "--set", "sync.partitions=2", "--set", "sync.minibatch=32"});
  EXPECT_EQ(frozen.code, 0) << frozen.output;
  EXPECT_THAT(frozen.output, AllOf(HasSubstr("from now on: layer conv1"), HasSubstr("layer fc2")));
  EXPECT_EQ(weight_of(), weight);
}

// LeNet with another head: of 12 classes, and one layer more.
std::string NewHead() {
  std::string network =
      ReadFile(std::string(KUMO_SOURCE_DIR) + "/tests/multiproc/small_lenet.pbtxt");
  const size_t head = network.rfind("layers {\n  name: \"fc2\"");
  EXPECT_NE(head, std::string::npos) << network;
  return network.substr(0, head) +
         "layers { name: \"fc2\" fully_connected { outputs: 12 } }\n"
         "layers { name: \"new\" fully_connected { outputs: 12 } }\n"
         "layers { name: \"loss\" softmax_cross_entropy {} }\n";
}

// The weights of a tensor in the newest checkpoint.
std::vector<float> Tensor(const ClusterOfProcesses& job, const std::string& name) {
  const ParameterLayout layout = LayoutOf(Newest(job)).value();
  const std::vector<float> weights = job.FinalWeights();
  for (size_t i = 0; i < layout.tensors().size(); ++i) {
    const Range range = layout.tensor(static_cast<int>(i));
    if (layout.tensors()[i].name != name) continue;
    return {weights.begin() + range.begin, weights.begin() + range.end};
  }
  ADD_FAILURE() << "no tensor " << name;
  return {};
}

TEST(GoingOn, ANewHeadStartsFromAnotherJobsWeightsAndThenGoesOnFromItsOwn) {
  ClusterOfProcesses source("source");
  SmallJob(&source);
  ASSERT_EQ(Kumo(&source, "launch", {"--quiet"}).code, 0);

  ClusterOfProcesses job("from");
  SmallJob(&job);
  std::ofstream(job.Path("head.pbtxt")) << NewHead();
  job.Set("network.file", job.Path("head.pbtxt"));
  job.Set("job.epochs", "1");
  job.Set("sync.mode", "gradient");
  job.Set("sync.push_codec", "fp32");
  job.Set("optimiser.type", "sgd");
  // So small that no weight moves: the last checkpoint has the weights of version 0.
  job.Set("schedule.learning_rate", "1e-30");
  const std::string taken = "starts with 6 of 10 tensors from " + source.output();
  const std::string left =
      "initialised as usual: fc2.weight: [10, 500] in the source, [12, 500] in the network";
  const Ended check = Kumo(&job, "check", {"--from", source.output()});
  EXPECT_EQ(check.code, 0) << check.output;
  EXPECT_THAT(check.output, AllOf(HasSubstr(taken), HasSubstr(left)));
  const Ended still = Kumo(&job, "launch", {"--from", source.output(), "--servers", "2"});
  ASSERT_EQ(still.code, 0) << still.output;
  EXPECT_THAT(
      still.output,
      AllOf(HasSubstr(taken), HasSubstr(left),
            HasSubstr("initialised as usual: new.bias: the checkpoint has no such tensor")));
  for (const char* name :
       {"conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "fc1.weight", "fc1.bias"}) {
    EXPECT_EQ(Tensor(job, name), Tensor(source, name)) << name;
  }
  ASSERT_EQ(Lines(job, "started_from").size(), 1u);
  EXPECT_THAT(Lines(job, "started_from")[0], HasSubstr("\"fc1.weight\""));
  EXPECT_EQ(Newest(job).origin().tensors_taken(), 6);

  // From its own checkpoints from now on, with the word and without it, and though the other job is
  // gone; and it learns.
  fs::rename(source.output(), source.Path("gone"));
  job.Set("job.epochs", "3");
  job.Set("schedule.learning_rate", "0.05");
  const Ended on = Kumo(&job, "launch", {"--continue", "--from", source.output()});
  EXPECT_EQ(on.code, 0) << on.output;
  EXPECT_THAT(on.output,
              AllOf(HasSubstr("goes on from checkpoint"), testing::Not(HasSubstr("starts with"))));
  EXPECT_EQ(Kumo(&job, "launch").code, 0);
  EXPECT_EQ(Newest(job).origin().tensors_taken(), 6);
  EXPECT_GT(Number(Lines(job, "epoch").back(), "validation/main/accuracy"), 0.5);
}

TEST(GoingOn, WhereNothingOfAnotherJobFitsItIsRefusedByCheckAndByLaunch) {
  ClusterOfProcesses source("nothing");
  SmallJob(&source);
  source.Set("job.epochs", "1");
  ASSERT_EQ(Kumo(&source, "launch", {"--quiet"}).code, 0);
  ClusterOfProcesses job("fits");
  SmallJob(&job);
  job.Set("network.file", std::string(KUMO_SOURCE_DIR) + "/models/zoo/mnist_mlp.pbtxt");
  for (const char* command : {"check", "launch"}) {
    const Ended nothing = Kumo(&job, command, {"--from", source.output()});
    EXPECT_EQ(nothing.code, 78) << nothing.output;
    EXPECT_THAT(nothing.output, HasSubstr("matches a tensor of the network in name and shape"));
    const Ended nowhere = Kumo(&job, command, {"--from", job.Path("nowhere")});
    EXPECT_EQ(nowhere.code, 78) << nowhere.output;
    EXPECT_THAT(nowhere.output, HasSubstr("is neither a checkpoint's folder"));
  }
}

}  // namespace
}  // namespace kumo::multiproc
