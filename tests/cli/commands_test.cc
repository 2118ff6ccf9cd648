// The commands of kumo but launch, check and status.
#include <gmock/gmock.h>

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cli/command.h"
#include "common/base/file.h"
#include "common/checkpoint/checkpoint.h"
#include "common/settings/option_pages.h"
#include "common/settings/settings_json.h"
#include "tests/cli/kumo_runner.h"
#include "tests/common/job/loss_and_accuracy.h"

namespace kumo {
namespace {

using ::testing::HasSubstr;

class CommandsTest : public KumoTest {};

TEST_F(CommandsTest, UnknownCommandIsUsageAndNamesTheNearest) {
  Ended ended;
  for (const auto& [word, meant] :
       {std::pair("lunch", "launch"), {"test", "evaluate"}, {"train", "launch"}}) {
    ended = Run({word}, /*fakes=*/false);
    EXPECT_EQ(ended.code, 64);
    EXPECT_THAT(ended.last_line, HasSubstr("unknown command " + std::string(word) +
                                           "; did you mean " + meant + "?"));
  }
  EXPECT_EQ(Read("termination-log"), ended.last_line + "\n");
  EXPECT_EQ(Run({}, false).code, 64);
}

TEST_F(CommandsTest, EveryCommandHasHelpAndRefusesUnknownOptions) {
  for (const Command& command : Commands()) {
    const std::string name(command.name);
    const Ended help = Run({name, "--help"}, false);
    EXPECT_EQ(help.code, 0) << name;
    EXPECT_THAT(help.out, HasSubstr("Usage: kumo " + name));
    const Ended unknown = Run({name, "--hlep"}, false);
    EXPECT_EQ(unknown.code, 64) << name;
    EXPECT_THAT(unknown.last_line, HasSubstr("did you mean --help?"));
  }
}

TEST_F(CommandsTest, HelpAndVersionAreDone) {
  EXPECT_THAT(Run({"--help"}, false).out, HasSubstr("launch"));
  EXPECT_THAT(Run({"--version"}, false).out,
              ::testing::MatchesRegex("kumo [0-9.]+\ncommit  [^\n]+\n"
                                      "CPU     oneDNN [0-9.]+, kernels for [^\n]+\n"
                                      "CUDA    [^\n]*/lib/kumo/backend_cuda.so[^\n]*\n"));
}

TEST_F(CommandsTest, AnAnswerThatDoesNotFitOnTheDiskIsNoSuccess) {
  const std::string command =
      std::string(KUMO_BINARY) + " options --markdown > /dev/full 2> " + folder_ + "/full.err";
  const int ended = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(ended));
  EXPECT_EQ(WEXITSTATUS(ended), 75);
  EXPECT_THAT(Read("full.err"), HasSubstr("kumo: not all of the output"));
}

TEST_F(CommandsTest, OptionsPrintsTheTable) {
  EXPECT_EQ(Run({"options"}, false).out, OptionsHelp());
  EXPECT_EQ(Run({"options", "--markdown"}, false).out, OptionsMarkdown());
  EXPECT_EQ(Run({"options", "--json"}, false).out, OptionsJson().array() + "\n");
}

// A worker that prints its speed, as an exit with words.
constexpr char kSpeed[] =
    R"({"parameters":1e6,"train_samples":1e6,"minibatch":10,"step_s":0.01,"codecs":[)"
    R"({"codec":"fp32","push_bytes":4e6,"pull_bytes":4e6,"encode_s":0,"install_s":0,"add_s":0,"close_s":0},)"
    R"({"codec":"1bit","push_bytes":140625,"pull_bytes":140625,"encode_s":0.001,"install_s":0,"add_s":0,"close_s":0}]})";

TEST_F(CommandsTest, TuneTakesGradientsOrElseTheShortestBlockThatHidesTheNetwork) {
  Script("worker", std::string("exit 0 ") + kSpeed);
  const Ended slow = Run({"tune", experiment_, "--bandwidth", "10Mbit/s", "--latency", "5 ms",
                          "--workers", "2", "--servers", "1", "--apart", "--seconds", "0.5"});
  ASSERT_EQ(slow.code, 0) << slow.err;
  EXPECT_THAT(Read("worker.args"), HasSubstr("--speed 0.5"));
  EXPECT_THAT(slow.out, HasSubstr("assumed   links of 10Mbit/s, 5 ms from host to host; 2 workers, "
                                  "1 server on other hosts"));
  // Two pushes of 140,625 bytes at .55 of 10 Mbit/s and a round trip: half of 128 steps hide them.
  EXPECT_THAT(slow.out, HasSubstr("\ntake     --workers 2 --servers 1 --set sync.mode=block "));
  EXPECT_THAT(slow.out, HasSubstr("--set sync.block=128 --set sync.push_codec=1bit --set "
                                  "sync.pull_codec=1bit --set sync.overlap=64"));
  const Ended fast = Run({"tune", experiment_, "--bandwidth", "200Gbit/s", "--json"});
  ASSERT_EQ(fast.code, 0) << fast.err;
  EXPECT_THAT(fast.out,
              HasSubstr(R"("take":{"mode":"gradient","block":1,"overlap":0,"codec":"fp32")"));
  const Ended delayed = Run({"tune", experiment_, "--bandwidth", "10Gbit/s", "--latency", "1ms",
                             "--workers", "2", "--servers", "2", "--set", "sync.warmup_samples=0"});
  ASSERT_EQ(delayed.code, 0) << delayed.err;
  EXPECT_THAT(delayed.out, HasSubstr("--set sync.mode=gradient --set sync.push_codec=fp32 --set "
                                     "sync.pull_codec=fp32 --set sync.overlap=1"));
  EXPECT_THAT(delayed.out, HasSubstr("1 round late"));
}

TEST_F(CommandsTest, TunePredictsNoBlockThatAnEpochIsTooShortFor) {
  std::string speed = kSpeed;
  const std::string samples = R"("train_samples":1e6)";
  speed.replace(speed.find(samples), samples.size(), R"("train_samples":205)");
  Script("worker", "exit 0 " + speed);
  const Ended ended = Run({"tune", experiment_, "--bandwidth", "10Mbit/s", "--workers", "2",
                           "--json", "--set", "sync.partitions=2"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr(R"("block":8,)"));
  EXPECT_THAT(ended.out, HasSubstr(R"("block":32,)")) << "as long as the epoch";
  EXPECT_THAT(ended.out, Not(HasSubstr(R"("block":128,)")));
}

TEST_F(CommandsTest, TuneRefusesQuantitiesWithoutUnitsAndPassesTheWorkersError) {
  EXPECT_THAT(Run({"tune", experiment_}).last_line, HasSubstr("--bandwidth is missing"));
  for (const char* rate : {"100", "100 mbit", "-1Mbit/s", "0Mbit/s", "infMbit/s", "1e99Gbit/s"}) {
    const Ended ended = Run({"tune", experiment_, "--bandwidth", rate});
    EXPECT_EQ(ended.code, 64) << rate;
    EXPECT_THAT(ended.last_line, HasSubstr("for example 100Mbit/s")) << rate;
  }
  EXPECT_THAT(Run({"tune", experiment_, "--bandwidth", "1Gbit/s", "--latency", "10"}).last_line,
              HasSubstr("write a number with us, ms or s"));
  EXPECT_THAT(
      Run({"tune", experiment_, "--bandwidth", "1Gbit/s", "--servers", "9", "--workers", "2"})
          .last_line,
      HasSubstr("or --apart"));
  Script("worker", "exit 78 no such device");
  const Ended ended = Run({"tune", experiment_, "--bandwidth", "1Gbit/s"});
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.last_line, HasSubstr("no such device"));
}

TEST_F(CommandsTest, EvaluateTakesTheLatestCompleteCheckpointAndPassesTheExitCode) {
  const std::string checkpoints = folder_ + "/out/checkpoints/";
  for (const char* name : {"round-000000000100", "round-000000001200", "round-000000002000"}) {
    std::filesystem::create_directories(checkpoints + name);
  }
  for (const char* name : {"round-000000000100", "round-000000001200"}) {
    std::ofstream(checkpoints + name + "/MANIFEST") << "x";
  }
  Script("worker", "exit 75 something");
  const Ended ended = Run({"evaluate", experiment_});
  EXPECT_EQ(ended.code, 75);
  EXPECT_EQ(ended.err, "something\n");
  EXPECT_THAT(Read("worker.args"), HasSubstr("--evaluate " + checkpoints + "round-000000001200"));
}

TEST_F(CommandsTest, EvaluateTakesTheBestOneOrTheOneThatIsNamed) {
  const std::string checkpoints = folder_ + "/out/checkpoints/";
  PosixFileSystem files;
  const auto save = [&](int64_t version, double correct) {
    const std::string name = CheckpointName(version);
    std::filesystem::create_directories(checkpoints + name);
    checkpoint::Manifest manifest;
    manifest.set_version(version);
    manifest.add_files()->set_name("shard");
    WriteMetrics(test::LossAndAccuracy(), manifest.mutable_metrics());
    *manifest.mutable_evaluation()->mutable_sums() = test::SumsMessage(100, 1, correct);
    ASSERT_TRUE(WriteManifest(files, checkpoints, manifest).ok());
  };
  save(10, 90);
  save(20, 99);
  save(30, 95);
  const auto evaluated = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"evaluate", experiment_});
    const Ended ended = Run(words);
    return ended.code == 0 ? Read("worker.args") : ended.last_line;
  };
  EXPECT_THAT(evaluated({"--checkpoint", "latest"}), HasSubstr(checkpoints + CheckpointName(30)));
  EXPECT_THAT(evaluated({"--checkpoint", "best", "--set", "checkpoint.best=accuracy"}),
              HasSubstr(checkpoints + CheckpointName(20)));
  EXPECT_THAT(evaluated({"--checkpoint", CheckpointName(10)}),
              HasSubstr(checkpoints + CheckpointName(10)));
  EXPECT_THAT(evaluated({"--checkpoint", "10"}), HasSubstr(checkpoints + CheckpointName(10)));
  EXPECT_THAT(evaluated({"--checkpoint", checkpoints + CheckpointName(20)}),
              HasSubstr(checkpoints + CheckpointName(20)));
  EXPECT_THAT(evaluated({"--checkpoint", "best"}), HasSubstr("checkpoint.best is none"));
  EXPECT_THAT(evaluated({"--checkpoint", "40"}),
              HasSubstr("no such checkpoint in " + checkpoints.substr(0, checkpoints.size() - 1)));
  EXPECT_THAT(evaluated({"--checkpoint", "40"}), HasSubstr(CheckpointName(30) + ", "));
}

TEST_F(CommandsTest, ImportNamesTheFilesAfterTheModelAndTheOpsThatItReads) {
  Script("worker", "exit 75 something");
  EXPECT_EQ(Run({"import", "/nowhere/net.v2.onnx", "--input-shape", "3x8x8"}).code, 75);
  EXPECT_EQ(Read("worker.args"),
            "/nowhere/net.v2.onnx --import=net.v2.pbtxt --weights=net.v2.safetensors "
            "--input-shape=3x8x8\n");
  // One file would be written twice, or the model be overwritten.
  for (const std::vector<std::string>& files :
       {std::vector<std::string>{"--network", "net.safetensors"},
        {"--network", "a.npz", "--weights", "./a.npz"},
        {"--weights", "/nowhere/../nowhere/net.v2.onnx"}}) {
    std::vector<std::string> args = {"import", "/nowhere/net.v2.onnx", "--force"};
    args.insert(args.end(), files.begin(), files.end());
    const auto refused = Run(args);
    EXPECT_EQ(refused.code, 78) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("are one file; name another file with"));
  }
}

TEST_F(CommandsTest, ExportPredictAndDetectNameTheWorkerACheckpointOfAnExperimentOrAFolder) {
  const std::string checkpoints = folder_ + "/out/checkpoints/";
  const std::string name = CheckpointName(100);
  PosixFileSystem files;
  std::filesystem::create_directories(checkpoints + name);
  checkpoint::Manifest manifest;
  manifest.set_version(100);
  manifest.add_files()->set_name("shard");
  ASSERT_TRUE(WriteManifest(files, checkpoints, manifest).ok());
  const std::string checkpoint = checkpoints + name;
  Script("worker", "exit 75 something");
  EXPECT_EQ(Run({"export", experiment_, "--out", "m.onnx", "--fold-batch-norm", "--nms"}).code, 75);
  EXPECT_THAT(Read("worker.args"), HasSubstr(experiment_ + " --checkpoint " + checkpoint +
                                             " --export=m.onnx --fold-batch-norm --nms\n"));
  EXPECT_EQ(Run({"export", checkpoint, "--out", "m", "--format", "npz", "--pixels"}).code, 75);
  EXPECT_THAT(Read("worker.args"), HasSubstr(checkpoint + " --checkpoint " + checkpoint +
                                             " --export=m --format npz --pixels"));
  EXPECT_EQ(Run({"predict", experiment_, "--checkpoint", "100", "--input", "a.png", "--input",
                 "b.zip", "--top", "3"})
                .code,
            75);
  EXPECT_THAT(Read("worker.args"), HasSubstr(" --checkpoint " + checkpoint +
                                             " --predict=a.png --predict=b.zip --top 3\n"));
  EXPECT_EQ(Run({"detect", experiment_, "a.jpg", "some", "--checkpoint", "100"}).code, 75);
  EXPECT_THAT(Read("worker.args"),
              HasSubstr(" --checkpoint " + checkpoint +
                        " --detect=a.jpg --detect=some --score 0.5 --overlap 0.45 --most 200 "
                        "--batch 16\n"));
  EXPECT_EQ(Run({"detect", checkpoint, "a.jpg", "--score", "0.01", "--most", "9", "--overlap", "1",
                 "--batch", "8", "--out", "found.json", "--pictures", "drawn"})
                .code,
            75);
  EXPECT_THAT(Read("worker.args"),
              HasSubstr(" --score 0.01 --overlap 1 --most 9 --batch 8 --detections=found.json "
                        "--pictures=drawn\n"));
  // A text may look like an option, and may have several lines.
  EXPECT_EQ(
      Run({"predict", experiment_, "--checkpoint", "100", "--prompt=-h", "--stop=--help"}).code,
      75);
  EXPECT_THAT(Read("worker.args"),
              AllOf(HasSubstr(" --generate=-h "), HasSubstr(" --stop=--help")));
  EXPECT_EQ(Run({"predict", experiment_, "--checkpoint", "100", "--prompt", "A:\n\tb"}).code, 75);
  EXPECT_THAT(Read("worker.args"), HasSubstr(" --generate=A:\n\tb --tokens 200"));
  EXPECT_EQ(Run({"predict", experiment_, "--checkpoint", "100", "--prompts", "p.txt", "--top-p",
                 "0.9", "--stop", "END", "--format", "json"})
                .code,
            75);
  EXPECT_THAT(Read("worker.args"),
              AllOf(HasSubstr(" --generate-lines=p.txt --tokens 200"), HasSubstr(" --top-p 0.9 "),
                    HasSubstr(" --stop=END --answers json")));
}

TEST_F(CommandsTest, WhatPredictCannotUseIsRefused) {
  const auto refusal = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"predict", experiment_});
    const Ended ended = Run(options);
    EXPECT_EQ(ended.code, 64) << ended.err;
    return ended.last_line;
  };
  EXPECT_THAT(refusal({"--prompt", "a", "--format", "csv"}),
              HasSubstr("--format csv: requires --input"));
  EXPECT_THAT(refusal({"--prompt", "a", "--prompts", "b"}), HasSubstr("exclude each other"));
  EXPECT_THAT(refusal({"--input", "a.png", "--stop", "x"}), HasSubstr("--stop: requires --prompt"));
  EXPECT_THAT(refusal({"--prompt", "a", "--top", "5"}), HasSubstr("--top: requires --input"));
  EXPECT_THAT(refusal({"--input", "a.png", "--seed", "1"}), HasSubstr("--seed: requires --prompt"));
  EXPECT_THAT(refusal({"--prompt", ""}), HasSubstr("must not be empty"));
  EXPECT_THAT(refusal({"--prompt", "a\x1b[2J"}), HasSubstr("control characters"));
}

TEST_F(CommandsTest, ExportPredictAndDetectSayWhatIsMissing) {
  const Ended nowhere = Run({"export", experiment_});
  EXPECT_EQ(nowhere.code, 64);
  EXPECT_THAT(nowhere.last_line, HasSubstr("--out PATH is missing"));
  const Ended nothing = Run({"predict", experiment_});
  EXPECT_EQ(nothing.code, 64);
  EXPECT_THAT(nothing.last_line, HasSubstr("give --input PATH with an image, --prompt TEXT"));
  const Ended imageless = Run({"detect", experiment_});
  EXPECT_EQ(imageless.code, 64);
  EXPECT_THAT(imageless.last_line, HasSubstr("kumo detect FILE IMAGE..."));
  const Ended untrained = Run({"export", experiment_, "--out", "m.onnx"});
  EXPECT_EQ(untrained.code, 78);
  EXPECT_THAT(untrained.last_line, HasSubstr("train first"));
  const Ended both = Run({"export", folder_, "--checkpoint", "best", "--out", "m.onnx"});
  EXPECT_THAT(both.last_line, HasSubstr("--checkpoint requires an experiment file"));
}

TEST_F(CommandsTest, EvaluateHasTheWorkerPrintJson) {
  const std::string checkpoint = folder_ + "/" + CheckpointName(1);
  std::filesystem::create_directory(checkpoint);
  std::ofstream(checkpoint + "/MANIFEST").flush();
  EXPECT_EQ(Run({"evaluate", experiment_, "--checkpoint", checkpoint, "--json"}).code, 0);
  EXPECT_THAT(Read("worker.args"), HasSubstr("--evaluate " + checkpoint + " --json"));
}

TEST_F(CommandsTest, EvaluateWithoutACheckpointSaysSo) {
  const Ended ended = Run({"evaluate", experiment_});
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.last_line,
              HasSubstr("there is no checkpoint in " + folder_ + "/out/checkpoints"));
  const Ended elsewhere = Run({"evaluate", experiment_, "--checkpoint", folder_});
  EXPECT_EQ(elsewhere.code, 78);
  EXPECT_THAT(elsewhere.last_line, HasSubstr(folder_ + " is neither a checkpoint's folder"));
}

}  // namespace
}  // namespace kumo
