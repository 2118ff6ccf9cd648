#include "common/settings/parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "common/base/rng.h"
#include "common/settings/experiment_text.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kNetwork[] = "[network]\nfile = net.pbtxt\n";

class ParserTest : public ::testing::Test {
 protected:
  LoadedExperiment Load(const std::string& text, std::vector<std::string> sets = {}) {
    std::ofstream(path_, std::ios::binary) << text;
    return LoadExperiment(path_, sets, variables_);
  }
  std::string FirstProblem(const std::string& text, std::vector<std::string> sets = {}) {
    const LoadedExperiment loaded = Load(text, std::move(sets));
    return loaded.problems.empty() ? "" : loaded.problems.front();
  }

  // Another file in the folder.
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
  }

  const test::ScratchDirectory scratch_;
  const std::string folder_ = scratch_.path();
  const std::string path_ = folder_ + "/x.conf";
  Variables variables_ = {{"KUMO_DATA", "/data"}, {"HOME", "/home/me"}};
};

TEST_F(ParserTest, CommandLineGoesOverFileOverDefault) {
  const LoadedExperiment loaded =
      Load(std::string(kNetwork) + "[sync]\nminibatch = 7\nblock = 9\n", {"sync.block=11"});
  ASSERT_THAT(loaded.problems, ElementsAre());
  EXPECT_EQ(loaded.experiment.sync.partitions, 2);
  EXPECT_EQ(loaded.experiment.sync.minibatch, 7);
  EXPECT_EQ(loaded.experiment.sync.block, 11);
  EXPECT_EQ(loaded.origins.at("sync.minibatch"), path_ + ":4");
  EXPECT_EQ(loaded.origins.at("sync.block"), "--set sync.block");
  EXPECT_EQ(loaded.origins.count("sync.partitions"), 0u);
}

TEST_F(ParserTest, AProgramOfTheUsersNeedsNeitherNetworkNorData) {
  const std::string command = "[worker]\ncommand = python3 train.py\n";
  const LoadedExperiment loaded =
      Load(command + "[data]\nclasses = 1\n[network]\nthreads = 2\nfile = net.pbtxt\n" +
           "[sync]\nminibatch_parts = 4\n[optimiser]\nmomentum = 0.5\n");
  EXPECT_THAT(loaded.problems, ElementsAre());
  EXPECT_TRUE(loaded.experiment.worker.OwnsModel());
  EXPECT_THAT(loaded.notes, ElementsAre(HasSubstr("network.file has no effect"),
                                        HasSubstr("data.classes has no effect: worker.command"),
                                        HasSubstr("sync.minibatch_parts has no effect"),
                                        HasSubstr("optimiser.momentum has no effect")));
  // Servers step by the settings of the optimiser.
  EXPECT_THAT(Load(command + "[sync]\nmode = gradient\n[optimiser]\nmomentum = 0.5\n").notes,
              ElementsAre());
  EXPECT_THAT(FirstProblem("[worker]\ncommand = python3 'train.py\n"),
              AllOf(StartsWith(path_ + ":2: worker.command"), HasSubstr("is not closed")));
  // So does the carried state of the program's own one.
  const LoadedExperiment ahead =
      Load(command + "[sync]\noverlap = 3\nlocal_share = 0.5\n[optimiser]\ntype = adamw\n");
  EXPECT_THAT(ahead.problems, ElementsAre());
  EXPECT_THAT(ahead.notes, ElementsAre());
  EXPECT_THAT(FirstProblem(command + "[sync]\nmode = gradient\noverlap = 3\n"), "");
}

TEST_F(ParserTest, TheLastOfTwoSetsCounts) {
  const LoadedExperiment loaded = Load(kNetwork, {"sync.block=3", "sync.block=4"});
  ASSERT_THAT(loaded.problems, ElementsAre());
  EXPECT_EQ(loaded.experiment.sync.block, 4);
}

TEST_F(ParserTest, UnknownKeyIsRefusedWithLineAndNearestKey) {
  EXPECT_EQ(FirstProblem("# first\n\n[sync]\nminibach = 3\n"),
            path_ + ":4: unknown key sync.minibach; did you mean sync.minibatch?");
  EXPECT_EQ(FirstProblem("epochs = 3\n"),
            path_ + ":1: unknown key epochs; did you mean job.epochs?");
  EXPECT_EQ(FirstProblem(kNetwork, {"sync.minibach=3"}),
            "--set sync.minibach: unknown key sync.minibach; did you mean sync.minibatch?");
}

TEST_F(ParserTest, UnknownSectionIsRefusedWithTheNearest) {
  EXPECT_EQ(FirstProblem("[snyc]\n"), path_ + ":1: unknown section [snyc]; did you mean sync?");
}

TEST_F(ParserTest, BadValueIsRefusedWithLineAndRange) {
  EXPECT_EQ(FirstProblem("[sync]\npartitions = 0\n"),
            path_ + ":2: sync.partitions = 0: must be 1 .. 4096");
  EXPECT_EQ(FirstProblem("[sync]\nerror_feedback = maybe\n"),
            path_ + ":2: sync.error_feedback = maybe: must be true or false");
  EXPECT_THAT(FirstProblem(kNetwork, {"sync.partitions=x"}),
              HasSubstr("sync.partitions = x: must be an integer, 1 .. 4096"));
}

TEST_F(ParserTest, KeyGivenTwiceIsRefusedWithBothLines) {
  EXPECT_EQ(FirstProblem("[sync]\nblock = 1\nblock = 2\n"),
            path_ + ":3: sync.block is set twice, first in " + path_ + ":2; remove one of them");
}

TEST_F(ParserTest, LineThatIsNoSettingIsRefused) {
  EXPECT_EQ(FirstProblem("[sync]\nblock\n"),
            path_ + ":2: 'block' is neither a [section] nor `key = value`");
  EXPECT_THAT(FirstProblem(kNetwork, {"sync.block"}), HasSubstr("has no '='"));
}

TEST_F(ParserTest, AllProblemsAreListedInOrder) {
  const LoadedExperiment loaded = Load("[sync]\nblock = 0\nnonsense = 1\n", {"job.epochs=0"});
  EXPECT_THAT(loaded.problems, ElementsAre(StartsWith(path_ + ":2: "), StartsWith(path_ + ":3: "),
                                           StartsWith("--set job.epochs: ")));
}

TEST_F(ParserTest, CommentsSpacesAndWindowsLineEndsDoNotCount) {
  const LoadedExperiment loaded =
      Load("  [network]  # which\r\n\tfile=net.pbtxt\r\n[sync]\r\n block =  5   # five\r\n");
  ASSERT_THAT(loaded.problems, ElementsAre());
  EXPECT_EQ(loaded.experiment.sync.block, 5);
}

TEST_F(ParserTest, WorkedOutDefaultsComeFromFileNameAndEnvironment) {
  const LoadedExperiment loaded = Load(kNetwork);
  EXPECT_EQ(loaded.experiment.job.name, "x");
  EXPECT_EQ(loaded.experiment.output.directory, "out/x");
  EXPECT_EQ(loaded.experiment.data.directory, "/data");
  EXPECT_EQ(Load(kNetwork, {"job.name=y"}).experiment.output.directory, "out/y");
  EXPECT_EQ(Load(kNetwork, {"data.directory=d"}).experiment.data.directory, "d");

  EXPECT_EQ(loaded.experiment.data.cache, "/home/me/.cache/kumo");
  variables_["XDG_CACHE_HOME"] = "relative";
  EXPECT_EQ(Load(kNetwork).experiment.data.cache, "/home/me/.cache/kumo");
  variables_["XDG_CACHE_HOME"] = "/caches";
  EXPECT_EQ(Load(kNetwork).experiment.data.cache, "/caches/kumo");
  EXPECT_EQ(Load(kNetwork, {"data.cache=/scratch"}).experiment.data.cache, "/scratch");
  variables_.clear();
  EXPECT_EQ(Load(kNetwork).experiment.data.cache, "");
}

TEST_F(ParserTest, AValidationShareAloneSplitsTheTrainingSet) {
  EXPECT_FALSE(Load(kNetwork).experiment.data.SplitsTrainingFiles());
  const LoadedExperiment split = Load(kNetwork, {"data.validation_share=0.2"});
  EXPECT_TRUE(split.experiment.data.SplitsTrainingFiles());
  EXPECT_THAT(split.notes, ElementsAre());
  const LoadedExperiment both =
      Load(kNetwork, {"data.validation_share=0.2", "data.validation_images=mine"});
  EXPECT_EQ(both.experiment.data.validation_images, "mine");
  EXPECT_THAT(both.notes, ElementsAre(HasSubstr("data.validation_share has no effect: "
                                                "data.validation_images is set")));
  EXPECT_TRUE(Load(kNetwork, {"data.validation_images="}).experiment.data.SplitsTrainingFiles());
  const LoadedExperiment text =
      Load(kNetwork, {"data.reader=text", "data.text=t", "data.validation_share=0.2"});
  EXPECT_FALSE(text.experiment.data.SplitsTrainingFiles());
  EXPECT_THAT(text.notes, ElementsAre());
}

TEST_F(ParserTest, ClassSharesAreOneForEachClass) {
  const auto shares = [&](std::vector<std::string> sets) { return Load(kNetwork, sets); };
  EXPECT_FALSE(Load(kNetwork).experiment.data.class_shares.given());
  EXPECT_TRUE(shares({"data.class_shares=equal"}).experiment.data.class_shares.equal);
  const LoadedExperiment listed = shares({"data.class_shares=1, 0,2.5", "data.classes=3"});
  EXPECT_THAT(listed.problems, ElementsAre());
  EXPECT_THAT(listed.experiment.data.class_shares.of_class, ElementsAre(1, 0, 2.5));
  for (const char* bad : {"even", "1,-1", "1,,2", "1,nan", "1,inf", "equal,1"}) {
    EXPECT_THAT(shares({std::string("data.class_shares=") + bad}).problems,
                ElementsAre(HasSubstr("must be equal, or a number of at least 0 for each class")))
        << bad;
  }
  EXPECT_THAT(Load("[network]\nfile = net.pbtxt\n[data]\nclass_shares = 1,2\n").problems,
              ElementsAre(path_ + ":4: data.class_shares = 1, 2: there must be 10 numbers "
                                  "(data.classes), not 2"));
  EXPECT_THAT(shares({"data.class_shares=0,0", "data.classes=2"}).problems,
              ElementsAre(HasSubstr("must not all be 0")));
  EXPECT_THAT(shares({"data.class_shares=equal", "data.classes=0", "data.reader=ctf"}).problems,
              ElementsAre(HasSubstr("samples have no classes; remove the setting")));
  EXPECT_THAT(shares({"data.class_shares=equal", "data.reader=text", "data.text=t"}).problems,
              ElementsAre(HasSubstr("reader text have no classes; remove the setting")));
}

TEST_F(ParserTest, NetworkOfTheFileIsRelativeToTheFileAndOfTheCommandLineIsNot) {
  EXPECT_EQ(Load("[network]\nfile = ../zoo/n.pbtxt\n").experiment.network.file,
            std::filesystem::path(folder_ + "/../zoo/n.pbtxt").lexically_normal());
  EXPECT_EQ(Load("[network]\nfile = /zoo/n.pbtxt\n").experiment.network.file, "/zoo/n.pbtxt");
  EXPECT_EQ(Load(kNetwork, {"network.file=zoo/n.pbtxt"}).experiment.network.file, "zoo/n.pbtxt");
}

// The system goes from the link's target to its parent.
TEST_F(ParserTest, PathsBehindALinkNameTheFileThatTheSystemOpens) {
  std::filesystem::create_directories(folder_ + "/far/target");
  std::filesystem::create_directory_symlink(folder_ + "/far/target", folder_ + "/link");
  Write("far/more.conf", "[sync]\nblock = 9\n");
  const LoadedExperiment loaded =
      Load("include = link/../more.conf\n[network]\nfile = link/../n.pbtxt\n");
  EXPECT_THAT(loaded.problems, ElementsAre());
  EXPECT_EQ(loaded.experiment.sync.block, 9);
  EXPECT_EQ(std::filesystem::weakly_canonical(loaded.experiment.network.file),
            std::filesystem::weakly_canonical(folder_ + "/far/n.pbtxt"));
}

TEST_F(ParserTest, MissingFileIsNotFoundAndNamed) {
  const auto result = ParseExperiment(folder_ + "/none.conf", {}, {});
  EXPECT_EQ(result.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(result.status().message(), HasSubstr("none.conf"));
  EXPECT_EQ(ParseExperiment(folder_, {}, {}).status().code(), StatusCode::kNotFound);
}

TEST_F(ParserTest, FileWithoutNetworkIsRefused) {
  EXPECT_THAT(FirstProblem("[sync]\nblock = 5\n"), StartsWith("network.file is not set"));
}

TEST_F(ParserTest, ContradictionsAreRefusedWithTheLineOfTheSetting) {
  const std::string head(kNetwork);
  EXPECT_THAT(FirstProblem(head + "[sync]\nminibatch = 30\nminibatch_parts = 4\n"),
              StartsWith(path_ + ":5: sync.minibatch_parts = 4: sync.minibatch = 30 is no multiple "
                                 "of it; set it to 3, or sync.minibatch to 32"));
  EXPECT_THAT(
      FirstProblem(head + "[sync]\nblock = 30\nfragments = 4\n"),
      StartsWith(path_ + ":5: sync.fragments = 4: sync.block = 30 is no multiple of it; set "
                         "it to 3, or sync.block to 32"));
  EXPECT_THAT(FirstProblem(head + "[sync]\nblock = 32\nfragments = 4\noverlap = 8\n"),
              HasSubstr("must be less than sync.block / sync.fragments = 8; set it to at most 7"));
  EXPECT_THAT(FirstProblem(head + "[sync]\nmode = async\npull_codec = 1bit\n"),
              HasSubstr("in async mode workers hold no versions; set it to fp16 or fp32"));
  EXPECT_THAT(FirstProblem(head + "[sync]\nmode = async\n[cluster]\nreplicas = 2\n"),
              StartsWith(path_ + ":6: cluster.replicas = 2: in async mode"));
  EXPECT_EQ(FirstProblem(head + "[sync]\nmode = async\nstaleness = 0\npull_codec = 1bit\n"), "");
  EXPECT_THAT(FirstProblem(head + "[sync]\nblock = 32\nfragments = 4\n"),
              HasSubstr("set block.reset_local_state = false"));
  EXPECT_THAT(FirstProblem(head + "[sync]\nmode = gradient\nwarmup_samples = 5\n"),
              StartsWith(path_ + ":5: sync.warmup_samples = 5: must be 0 in gradient mode"));
  EXPECT_THAT(FirstProblem(head, {"job.epochs=3", "schedule.warmup=3"}),
              HasSubstr("schedule.warmup = 3: must be below job.epochs = 3"));
  EXPECT_THAT(FirstProblem(head, {"sync.push_codec=2bit", "sync.error_feedback=false"}),
              HasSubstr("sync.error_feedback = false: sync.push_codec = 2bit sends a part"));
  EXPECT_THAT(FirstProblem(head, {"sync.push_codec=topk", "sync.error_feedback=false"}),
              HasSubstr("set sync.error_feedback = true"));
  EXPECT_THAT(FirstProblem(head, {"sync.pull_codec=2bit"}),
              HasSubstr("sync.pull_codec = 2bit: must be one of fp32, fp16"));
  for (const std::string values : {"2bit", "topk", "topk2bit"}) {
    for (const std::string codec : {"sync.pull_codec=topk", "sync.push_codec=topk"}) {
      for (const char* mode : {"gradient", "block", "async"}) {
        EXPECT_THAT(FirstProblem(head, {std::string("sync.mode=") + mode, codec,
                                        "sync.topk_values=" + values}),
                    HasSubstr("sync.topk_values = " + values + ": must be one of fp32, fp16"));
      }
    }
  }
  EXPECT_THAT(FirstProblem(head, {"sync.push_codec=topk", "cluster.chunk_kib=17"}),
              HasSubstr("set cluster.chunk_kib = 32"));
  EXPECT_THAT(
      FirstProblem(head, {"sync.pull_codec=topk2bit", "cluster.chunk_kib=17"}),
      HasSubstr("topk2bit selects among 4096 numbers, so chunks must be multiples of 16 KiB"));
  EXPECT_THAT(FirstProblem(head, {"sync.push_codec=topk2bit", "sync.error_feedback=false"}),
              HasSubstr("sync.push_codec = topk2bit sends a part"));
  EXPECT_THAT(FirstProblem(head, {"schedule.type=multistep"}),
              HasSubstr("schedule.milestones is empty"));
  EXPECT_THAT(FirstProblem(head, {"schedule.milestones=3,2"}), HasSubstr("must ascend"));
  for (const char* area : {"0.5", "1,0.08", "0.1,0.2,0.3"}) {
    EXPECT_THAT(FirstProblem(head, {std::string("data.crop_area=") + area}),
                HasSubstr("the minimum and the maximum"));
  }
  EXPECT_THAT(FirstProblem(head, {"data.crop_aspect="}), HasSubstr("data.crop_aspect = "));
  EXPECT_THAT(FirstProblem(head, {"data.mean=0.5", "data.subtract_mean=true"}),
              HasSubstr("choose one of them"));
  EXPECT_THAT(FirstProblem(head, {"schedule.type=stages", "schedule.milestones=3"}),
              HasSubstr("schedule.rates has 0 values: schedule.type = stages needs 2"));
  EXPECT_THAT(FirstProblem(head, {"schedule.time_constants=600,1200"}),
              HasSubstr("schedule.time_constants has 2 values: there must be 1"));
  EXPECT_THAT(FirstProblem(head, {"schedule.time_constants=600", "optimiser.type=adam"}),
              HasSubstr("optimiser.type = adam has no momentum"));
  EXPECT_THAT(FirstProblem(head, {"optimiser.unit_gain=true", "optimiser.type=sgd"}),
              HasSubstr("optimiser.unit_gain = true: optimiser.type = sgd has no momentum"));
  EXPECT_THAT(FirstProblem(head, {"sync.pull_codec=7bit"}), HasSubstr("one of fp32, fp16"));
  EXPECT_THAT(FirstProblem(head, {"checkpoint.resume=sometimes"}), HasSubstr("auto, never, must"));
  EXPECT_EQ(FirstProblem(head, {"checkpoint.resume=1200"}), "");
  EXPECT_THAT(FirstProblem(head, {"cluster.suspect_after_s=1"}), HasSubstr("at least twice"));
  EXPECT_THAT(FirstProblem(head, {"schedule.final_rate=1"}), HasSubstr("at most"));
}

TEST_F(ParserTest, ServerAddressesAreCheckedBeforeAnythingStarts) {
  const std::string head(kNetwork);
  const auto problem = [&](const std::string& servers) {
    return FirstProblem(head, {"cluster.servers=" + servers});
  };
  EXPECT_EQ(problem("tcp://127.0.0.1:5555, ipc:///tmp/kumo, tcp://[::1]:5556"), "");
  EXPECT_THAT(problem("127.0.0.1:5555"), HasSubstr("tcp"));
  EXPECT_THAT(problem("tcp://127.0.0.1"), HasSubstr("has no port"));
  EXPECT_THAT(problem("tcp://127.0.0.1:70000"), HasSubstr("65535"));
  EXPECT_THAT(problem("tcp://*:5555"), HasSubstr("no process can connect"));
  EXPECT_THAT(problem("tcp://127.0.0.1:5555,tcp://127.0.0.1:5555"), HasSubstr("twice"));
  EXPECT_THAT(problem("tcp://127.0.0.1:5555,tcp://localhost:5555"),
              HasSubstr("tcp://127.0.0.1:5555 and tcp://localhost:5555 are one address"));
  EXPECT_EQ(problem("tcp://127.0.0.1:5555,tcp://127.0.0.2:5555"), "");
  EXPECT_THAT(problem("tcp://10.0.0.1:5555"), HasSubstr("cluster.insecure"));
  EXPECT_EQ(FirstProblem(head, {"cluster.servers=tcp://10.0.0.1:5555", "cluster.insecure=true"}),
            "");
  std::string many = "tcp://127.0.0.1:1000";
  for (int i = 1; i <= 64; ++i) many += ",tcp://127.0.0.1:" + std::to_string(1000 + i);
  EXPECT_THAT(problem(many), HasSubstr("at most 64"));
}

TEST_F(ParserTest, WhereThePageIsIsCheckedBeforeAnythingStarts) {
  const std::string head(kNetwork);
  for (const char* address : {"", "127.0.0.1:9470", "*:9470", "localhost:0", "[::1]:9470"}) {
    EXPECT_EQ(FirstProblem(head + "[http]\naddress = " + address + "\n"), "") << address;
  }
  for (const char* address : {"9470", "127.0.0.1", "http://127.0.0.1:9470", "127.0.0.1:70000"}) {
    const std::string problem = FirstProblem(head + "[http]\naddress = " + address + "\n");
    EXPECT_THAT(problem, HasSubstr(": http.address: ")) << "and the line before it";
    EXPECT_THAT(problem, HasSubstr(address));
    EXPECT_THAT(problem, HasSubstr("use HOST:PORT"));
  }
}

TEST_F(ParserTest, TwoCopiesNeedTwoServers) {
  const std::string head(kNetwork);
  const auto problem = [&](const std::string& servers) {
    return FirstProblem(head, {"cluster.replicas=2", "cluster.servers=" + servers});
  };
  EXPECT_THAT(problem("tcp://127.0.0.1:5555"), HasSubstr("cluster.replicas = 2"));
  EXPECT_EQ(problem("tcp://127.0.0.1:5555,tcp://127.0.0.1:5556"), "");
}

TEST_F(ParserTest, AnOldNameIsReadAndNoted) {
  const LoadedExperiment loaded = Load(std::string(kNetwork) + "[data]\ndeviation = 0.5\n");
  EXPECT_THAT(loaded.problems, ElementsAre());
  EXPECT_EQ(loaded.experiment.data.std_dev, std::vector<double>{0.5});
  EXPECT_EQ(loaded.origins.at("data.std"), path_ + ":4");
  EXPECT_THAT(loaded.notes, ElementsAre(path_ + ":4: data.deviation is the old name of data.std, "
                                                "and is still read; write data.std"));
  EXPECT_THAT(Load(kNetwork, {"data.std=0.5"}).notes, ElementsAre());
  EXPECT_THAT(FirstProblem(std::string(kNetwork) + "[data]\nstd = 1\ndeviation = 2\n"),
              HasSubstr("data.std is set twice"));
}

TEST_F(ParserTest, SettingsWithoutEffectAreNoted) {
  const LoadedExperiment loaded =
      Load(kNetwork, {"sync.mode=gradient", "sync.block=3", "block.momentum=0.1"});
  EXPECT_THAT(loaded.problems, ElementsAre());
  EXPECT_THAT(loaded.notes, ElementsAre(HasSubstr("sync.block has no effect"),
                                        HasSubstr("block.momentum has no effect")));
  EXPECT_THAT(Load(kNetwork).notes, ElementsAre());
  EXPECT_THAT(Load(kNetwork, {"checkpoint.best=loss", "evaluation.every_epochs=0"}).notes,
              ElementsAre(HasSubstr("checkpoint.best has no effect")));
  EXPECT_THAT(Load(kNetwork, {"checkpoint.continue=true", "checkpoint.resume=never"}).notes,
              ElementsAre(HasSubstr("checkpoint.continue has no effect")));
  const std::vector<std::string> relayed = {"sync.push_codec=topk2bit", "block.rule=average",
                                            "sync.partitions=2"};
  const auto notes_of_relay = [&](const std::string& further) {
    std::vector<std::string> sets = relayed;
    sets.insert(sets.end(), {"sync.relay=false", further});
    return Load(kNetwork, sets).notes;
  };
  EXPECT_THAT(notes_of_relay("sync.block=20"), ElementsAre());
  EXPECT_THAT(notes_of_relay("block.rule=block_momentum"),
              ElementsAre(HasSubstr("sync.relay has no effect: contributions are relayed in")));
  EXPECT_THAT(notes_of_relay("sync.partitions=400"), ElementsAre(HasSubstr("sync.relay has no")));
  EXPECT_THAT(Load(kNetwork, {"sync.mode=gradient", "sync.relay=true"}).notes,
              ElementsAre(HasSubstr("sync.relay has no effect")));
  EXPECT_THAT(
      Load(kNetwork, {"sync.mode=async", "sync.staleness=0", "sync.staleness_correction=true"})
          .notes,
      testing::Contains(HasSubstr("sync.staleness_correction has no effect")));
}

TEST_F(ParserTest, WhatAScheduleAndAnOptimiserDoNotTakeIsNoted) {
  const auto notes = [&](std::vector<std::string> settings) {
    return Load(kNetwork, settings).notes;
  };
  const auto none = [](const char* key) { return HasSubstr(std::string(key) + " has no effect"); };
  EXPECT_THAT(notes({"schedule.type=stages", "schedule.milestones=3", "schedule.rates=1,0.1",
                     "schedule.learning_rate=0.1", "schedule.gamma=0.1"}),
              ElementsAre(none("schedule.learning_rate"), none("schedule.gamma")));
  EXPECT_THAT(notes({"schedule.type=cosine", "schedule.step=3", "schedule.milestones=3",
                     "schedule.rates=1", "schedule.power=2"}),
              ElementsAre(none("schedule.step"), none("schedule.milestones"),
                          none("schedule.rates"), none("schedule.power")));
  EXPECT_THAT(notes({"schedule.final_rate=0.001", "optimiser.beta1=0.8", "optimiser.type=momentum",
                     "optimiser.momentum=0.8"}),
              ElementsAre(none("optimiser.beta1"), none("schedule.final_rate")));
  EXPECT_THAT(
      notes({"optimiser.type=momentum", "optimiser.momentum=0.8", "schedule.time_constants=600"}),
      ElementsAre(HasSubstr("no effect: schedule.time_constants is set")));
  EXPECT_THAT(
      notes({"optimiser.type=adam", "optimiser.momentum=0.8", "sync.push_codec=fp32",
             "sync.error_feedback=true", "data.pad_value=3"}),
      ElementsAre(none("data.pad_value"), none("sync.error_feedback"), none("optimiser.momentum")));
  EXPECT_THAT(notes({"block.rule=adamw", "block.momentum=0.1", "block.nesterov=true",
                     "block_schedule.type=stages", "block_schedule.milestones=3",
                     "block_schedule.rates=1,0.1", "block.learning_rate=0.5"}),
              testing::UnorderedElementsAre(none("block.momentum"), none("block.nesterov"),
                                            none("block.learning_rate")));
  EXPECT_THAT(notes({"block.rule=average", "block.beta1=0.1", "block_schedule.type=cosine"}),
              testing::UnorderedElementsAre(none("block.beta1"), none("block_schedule.type")));
  EXPECT_THAT(notes({"block.rule=slowmo", "block.momentum=0.1", "block.learning_rate=0.5"}),
              ElementsAre());
  EXPECT_THAT(FirstProblem(kNetwork, {"block_schedule.type=cosine", "block_schedule.final_rate=2"}),
              HasSubstr("block_schedule.final_rate = 2: must be at most block.learning_rate = 1"));
  EXPECT_THAT(FirstProblem(kNetwork, {"block_schedule.type=stages"}),
              HasSubstr("block_schedule.rates has 0 values"));
  EXPECT_THAT(notes({"optimiser.type=adamw", "optimiser.adamw_factor=0.1"}),
              ElementsAre(none("optimiser.adamw_factor")));
  EXPECT_THAT(notes({"optimiser.type=muon", "optimiser.adamw_factor=0.1", "optimiser.beta2=0.9",
                     "optimiser.momentum=0.95"}),
              ElementsAre());
  EXPECT_THAT(FirstProblem(kNetwork, {"optimiser.type=muon", "optimiser.unit_gain=true"}),
              HasSubstr("is a mean already"));
  EXPECT_THAT(FirstProblem(kNetwork, {"optimiser.type=muon", "sync.mode=gradient"}),
              HasSubstr("optimiser.type = muon: it steps whole matrices"));
  EXPECT_THAT(FirstProblem(kNetwork, {"optimiser.type=muon", "sync.warmup_samples=100"}),
              HasSubstr("set sync.warmup_samples = 0"));
  // Once, and what is wrong in other ways too.
  EXPECT_THAT(notes({"schedule.type=cosine", "schedule.milestones=300"}),
              ElementsAre(none("schedule.milestones")));
  EXPECT_THAT(notes({"data.reader=text", "data.pad_value=3", "data.hue=0.1"}),
              ElementsAre(none("data.pad_value"), none("data.hue")));
  EXPECT_THAT(notes({"data.resize=stretch", "data.random_interpolation=true"}),
              ElementsAre(none("data.resize"), none("data.random_interpolation")));
  EXPECT_THAT(FirstProblem(kNetwork, {"data.reader=ctf", "data.subtract_mean=true"}),
              HasSubstr("reader ctf has no images"));
  // What is used is not.
  EXPECT_THAT(notes({"schedule.type=poly", "schedule.power=2", "schedule.final_rate=0",
                     "optimiser.type=adamw", "optimiser.epsilon=1e-7"}),
              ElementsAre());
}

TEST_F(ParserTest, AMilestoneThatTheJobNeverReachesIsNoted) {
  const auto notes = [&](const char* epochs, const char* unit, std::vector<std::string> sets = {}) {
    sets.insert(sets.begin(), {"schedule.type=multistep", "schedule.milestones=3,5",
                               std::string("schedule.unit=") + unit});
    return Load(std::string(kNetwork) + "[job]\nepochs = " + epochs + "\n", sets).notes;
  };
  EXPECT_THAT(notes("5", "epoch"),
              ElementsAre(HasSubstr("schedule.milestones = 3, 5: the job ends before 5")));
  EXPECT_THAT(notes("6", "epoch"), ElementsAre());
  EXPECT_THAT(notes("5", "sample"), ElementsAre());
  EXPECT_THAT(notes("6", "epoch", {"job.epochs=2"}), ElementsAre()) << "that is meant";
}

TEST_F(ParserTest, StepsThatABlockMakesSmallAreNoted) {
  // .052 .101 .148 .192 .234 of the rate: exp(-32 / 600) is .948.
  std::vector<std::string> settings = {"sync.mode=block",
                                       "sync.minibatch=32",
                                       "sync.block=5",
                                       "optimiser.type=momentum",
                                       "optimiser.unit_gain=true",
                                       "schedule.milestones=3",
                                       "schedule.type=multistep",
                                       "schedule.time_constants=0,600"};
  EXPECT_THAT(Load(kNetwork, settings).notes,
              ElementsAre(testing::AllOf(HasSubstr("at a momentum of 0.948 its steps are 0.145 of"),
                                         HasSubstr("block.reset_local_state = false"))));
  for (const char* mended : {"schedule.time_constants=0,0", "sync.block=50", "sync.mode=gradient",
                             "optimiser.unit_gain=false", "block.reset_local_state=false"}) {
    settings.emplace_back(mended);
    for (const std::string& note : Load(kNetwork, settings).notes) {
      EXPECT_THAT(note, testing::Not(HasSubstr("unit_gain"))) << mended;
    }
    settings.pop_back();
  }
}

TEST_F(ParserTest, ThePageNeedsAnAddressOfItsOwn) {
  const auto problems = [&](const std::string& page) {
    return Load(kNetwork, {"cluster.servers=tcp://127.0.0.1:5555", "http.address=" + page})
        .problems;
  };
  for (const char* page : {"127.0.0.1:5555", "localhost:5555", "*:5555"}) {
    EXPECT_THAT(problems(page), ElementsAre(HasSubstr("is the address of server 0"))) << page;
  }
  for (const char* page : {"127.0.0.1:5556", "127.0.0.2:5555", "*:0"}) {
    EXPECT_THAT(problems(page), ElementsAre()) << page;
  }
}

TEST_F(ParserTest, WeightsThatAreSetAsideBeforeTheyAreReadAreRefused) {
  for (const char* from : {"o/d", "o/d/", "o/d/checkpoints", "./o/d/checkpoints/round-7"}) {
    const std::string weights = std::string("network.initial_weights=") + from;
    EXPECT_THAT(
        Load(kNetwork, {weights, "output.directory=o/d", "checkpoint.resume=never"}).problems,
        ElementsAre(HasSubstr("moves the checkpoints of output.directory aside")))
        << from;
    EXPECT_THAT(Load(kNetwork, {weights, "output.directory=o/d"}).problems, ElementsAre());
    EXPECT_THAT(Load(kNetwork, {weights, "output.directory=o", "checkpoint.resume=never"}).problems,
                ElementsAre());
  }
}

TEST_F(ParserTest, WeightsThatAreSetAsideAreRefusedThroughALinkToo) {
  std::filesystem::create_directories(folder_ + "/out/checkpoints/round-7");
  std::filesystem::create_directory_symlink(folder_ + "/out", folder_ + "/other");
  std::filesystem::create_directory_symlink("out/checkpoints/round-7", folder_ + "/latest");
  std::filesystem::create_directory_symlink(folder_, folder_ + "/out/up");
  for (const char* from : {"other", "other/checkpoints", "latest", "out/up/out"}) {
    EXPECT_THAT(Load(kNetwork, {"network.initial_weights=" + folder_ + "/" + from,
                                "output.directory=" + folder_ + "/out", "checkpoint.resume=never"})
                    .problems,
                ElementsAre(HasSubstr("moves the checkpoints of output.directory aside")))
        << from;
  }
}

TEST_F(ParserTest, EveryResultTextReadsBackAsTheSameExperiment) {
  Rng rng(3, RngPurpose::kTest);
  const OptionTable& table = OptionTable::Shared();
  for (int i = 0; i < 50; ++i) {
    // Draw numbers for all numeric settings that take them.
    Experiment drawn;
    drawn.network.file = "net.pbtxt";
    drawn.job.name = "x";
    for (const Option& option : table.options()) {
      const std::string number = rng.NextBelow(2) == 0 ? std::to_string(rng.NextBelow(100))
                                                       : WriteValue(rng.NextUniform());
      if (option.result() && option.key != "job.name" && option.allowed.max != HUGE_VAL) {
        (void)option.read(number, &drawn);
      }
    }
    drawn.data.classes = 10;
    if (drawn.data.mixup < 0.05) drawn.data.mixup = 0;
    drawn.data.crop_area = {};
    drawn.data.mean = {};
    drawn.data.mixup = 0;
    drawn.data.crop_aspect = {0.5, 2};
    drawn.sync.minibatch_parts = 1;
    drawn.sync.fragments = 1;
    drawn.sync.overlap = std::min(drawn.sync.overlap, drawn.sync.block - 1);
    drawn.sync.warmup_samples = 0;
    drawn.schedule.final_rate = drawn.block_schedule.final_rate = 0;
    drawn.schedule.warmup = 0;
    const std::string text = ExperimentText(drawn);
    const LoadedExperiment loaded = Load(text);
    ASSERT_THAT(loaded.problems, ElementsAre()) << text;
    EXPECT_EQ(ExperimentText(loaded.experiment), text);
    EXPECT_EQ(ExperimentHash(loaded.experiment), ExperimentHash(drawn));
  }
}

TEST_F(ParserTest, RandomBytesAreRefusedWithALineAndNeverCrash) {
  Rng rng(4, RngPurpose::kTest);
  for (int i = 0; i < 300; ++i) {
    std::string text(1 + rng.NextBelow(200), ' ');
    for (char& c : text) {
      // Mostly the characters that mean something.
      constexpr char kMeaning[] = "[]=#.\n\r\t ";
      c = rng.NextBelow(2) == 0 ? kMeaning[rng.NextBelow(9)] : static_cast<char>(rng.NextUint32());
    }
    for (const std::string& problem : Load(text).problems) {
      EXPECT_TRUE(problem.starts_with(path_ + ":") || problem.starts_with("network.file"))
          << problem;
    }
  }
}

TEST_F(ParserTest, HugeFileIsRefused) {
  EXPECT_THAT(FirstProblem(std::string(3 << 20, '#')), HasSubstr("1 MiB"));
}

// Experiment files that include each other, and variables in paths.
class ExperimentReaderTest : public ::testing::Test {
 protected:
  ExperimentReaderTest() {
    std::filesystem::create_directory(folder_ + "/sub");
    Write("net.conf", "network.file = net.pbtxt\n");
  }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
  }
  LoadedExperiment Load(const std::string& name, std::vector<std::string> sets = {}) {
    return LoadExperiment(folder_ + "/" + name, sets, variables_);
  }

  const test::ScratchDirectory scratch_;
  const std::string folder_ = scratch_.path();
  Variables variables_ = {{"HOME", "/home/me"}, {"DATA", "/srv/data"}, {"KUMO_DATA", "/data"}};
};

TEST_F(ExperimentReaderTest, TheIncludingFileGoesOverTheIncludedOneAndTheCommandLineOverBoth) {
  Write("base.conf", "[sync]\nblock = 1\nminibatch = 1\npartitions = 1\n[network]\nfile = n\n");
  Write("x.conf", "include = base.conf\n[sync]\nminibatch = 2\npartitions = 2\n");
  const LoadedExperiment loaded = Load("x.conf", {"sync.partitions=3"});
  ASSERT_THAT(loaded.problems, ElementsAre());
  EXPECT_EQ(loaded.experiment.sync.block, 1);
  EXPECT_EQ(loaded.experiment.sync.minibatch, 2);
  EXPECT_EQ(loaded.experiment.sync.partitions, 3);
  EXPECT_EQ(loaded.origins.at("sync.block"), folder_ + "/base.conf:2");
  EXPECT_EQ(loaded.origins.at("sync.minibatch"), folder_ + "/x.conf:3");
  EXPECT_EQ(loaded.experiment.job.name, "x");
}

TEST_F(ExperimentReaderTest, OfTwoIncludedFilesTheLaterOneCounts) {
  Write("a.conf", "sync.block = 1\nsync.minibatch = 1\n");
  Write("b.conf", "sync.block = 2\n");
  Write("x.conf", "include = net.conf\ninclude = a.conf\ninclude = \"b.conf\"  # quoted\n");
  const LoadedExperiment loaded = Load("x.conf");
  ASSERT_THAT(loaded.problems, ElementsAre());
  EXPECT_EQ(loaded.experiment.sync.block, 2);
  EXPECT_EQ(loaded.experiment.sync.minibatch, 1);
}

TEST_F(ExperimentReaderTest, NamesAreRelativeToTheFileInWhichTheyStand) {
  Write("sub/base.conf", "include = ../net.conf\nnetwork.initial_weights = round-1\n");
  Write("x.conf", "include = sub/base.conf\n");
  const LoadedExperiment loaded = Load("x.conf");
  ASSERT_THAT(loaded.problems, ElementsAre());
  EXPECT_EQ(loaded.experiment.network.file, folder_ + "/net.pbtxt");
  EXPECT_EQ(loaded.experiment.network.initial_weights, folder_ + "/sub/round-1");
}

TEST_F(ExperimentReaderTest, AnIncludedFileThatIsNotThereIsNamedWithTheLineThatIncludesIt) {
  Write("x.conf", "include = net.conf\n\ninclude = nowhere.conf\n");
  EXPECT_THAT(
      Load("x.conf").problems,
      ElementsAre(AllOf(
          StartsWith(folder_ + "/x.conf:3: include = nowhere.conf: " + folder_ + "/nowhere.conf: "),
          HasSubstr("No such file"))));
  Write("x.conf", "include = net.conf\ninclude =\n");
  EXPECT_THAT(Load("x.conf").problems,
              ElementsAre(folder_ + "/x.conf:2: include = : names no file; write include = FILE"));
}

TEST_F(ExperimentReaderTest, ACircleIsRefusedAndNamesAllItsFilesAndLines) {
  Write("a.conf", "include = net.conf\ninclude = sub/b.conf\n");
  Write("sub/b.conf", "# b\n# b\ninclude = ../sub/../a.conf\n");
  EXPECT_THAT(
      Load("a.conf").problems,
      ElementsAre(AllOf(StartsWith(folder_ + "/sub/b.conf:3: include = "),
                        HasSubstr("the files include each other in a circle: " + folder_ +
                                  "/a.conf:2 includes " + folder_ + "/sub/b.conf, " + folder_ +
                                  "/sub/b.conf:3 includes " + folder_ + "/a.conf"))));
  Write("a.conf", "include = a.conf\ninclude = net.conf\n");
  EXPECT_THAT(Load("a.conf").problems, ElementsAre(HasSubstr("in a circle")));
}

TEST_F(ExperimentReaderTest, AFileMayBeIncludedOnTwoWays) {
  Write("base.conf", "include = net.conf\nsync.block = 1\n");
  Write("b.conf", "include = base.conf\n");
  Write("c.conf", "include = base.conf\n");
  Write("x.conf", "include = b.conf\ninclude = c.conf\n");
  EXPECT_THAT(Load("x.conf").problems, ElementsAre());
}

TEST_F(ExperimentReaderTest, IncludingWithoutEndStops) {
  for (int i = 0; i < 30; ++i) {
    const std::string next = "include = " + std::to_string(i + 1) + ".conf\n";
    Write(std::to_string(i) + ".conf", next + next);
  }
  Write("30.conf", "sync.block = 1\n");
  const std::vector<std::string> problems = Load("0.conf").problems;
  ASSERT_FALSE(problems.empty());
  EXPECT_THAT(problems.front(), HasSubstr("more than 100 files are included"));
  EXPECT_LT(problems.size(), 200u);
}

TEST_F(ExperimentReaderTest, AKeyGivenTwiceInOneFileIsStillRefused) {
  Write("base.conf", "include = net.conf\nsync.block = 1\n");
  Write("x.conf", "include = base.conf\nsync.block = 2\nsync.block = 3\n");
  EXPECT_THAT(Load("x.conf").problems,
              ElementsAre(folder_ + "/x.conf:3: sync.block is set twice, first in " + folder_ +
                          "/x.conf:2; remove one of them"));
}

TEST_F(ExperimentReaderTest, VariablesAreReplacedInEveryPathAndNowhereElse) {
  const OptionTable& table = OptionTable::Shared();
  int paths = 0;
  for (const Option& option : table.options()) {
    if (option.key == "job.name") continue;               // does not allow a '$'
    if (option.key == "network.initial_names") continue;  // wants another setting beside it
    if (option.key == "worker.command") continue;         // takes any text
    if (option.key == "data.columns") continue;           // likewise
    Write("x.conf", "include = net.conf\n" + option.key + " = ${DATA}/x\n");
    const LoadedExperiment loaded = Load("x.conf");
    if (option.base == PathBase::kNone) {
      EXPECT_FALSE(loaded.problems.empty()) << option.key;
    } else {
      ++paths;
      EXPECT_THAT(loaded.problems, ElementsAre()) << option.key;
      EXPECT_EQ(option.write(loaded.experiment), "/srv/data/x") << option.key;
    }
  }
  EXPECT_EQ(paths, 13);
  EXPECT_EQ(Load("net.conf", {"data.directory=~/d"}).experiment.data.directory, "/home/me/d");
  Write("x.conf", "include = ${DATA}${HOME}.conf\n");
  EXPECT_THAT(Load("x.conf").problems.front(), HasSubstr("/srv/data/home/me.conf"));
}

TEST_F(ExperimentReaderTest, AVariableThatIsNotSetIsAnErrorWithFileLineAndName) {
  Write("x.conf", "include = net.conf\n[output]\ndirectory = ${NOWHERE}/out\n");
  EXPECT_THAT(Load("x.conf").problems,
              ElementsAre(folder_ + "/x.conf:3: output.directory = ${NOWHERE}/out: the environment "
                                    "variable NOWHERE is not set"));
  EXPECT_THAT(Load("x.conf", {"output.directory=o"}).problems, ElementsAre())
      << "only what counts is looked up";
  EXPECT_THAT(Load("net.conf", {"output.directory=${NOWHERE}"}).problems,
              ElementsAre(StartsWith("--set output.directory: ")));
}

TEST_F(ExperimentReaderTest, AQuotedValueIsTakenWithoutItsQuotes) {
  Write("x.conf", "include = net.conf\n[data]\ntrain_images = \"a#b.gz\"  # drawn\n");
  EXPECT_EQ(Load("x.conf").experiment.data.train_images, "a#b.gz");
  EXPECT_EQ(Load("net.conf", {"data.train_images=\"c d\""}).experiment.data.train_images, "c d");
  Write("x.conf", "include = net.conf\n[data]\ntrain_images = \"a#b.gz\n");
  EXPECT_THAT(Load("x.conf").problems,
              ElementsAre(StartsWith(folder_ + "/x.conf:3: data.train_images: the quote in")));
}

// Advice takes longer than all else: a file of 1 MiB with nothing in it that is a setting took 8 s.
TEST_F(ExperimentReaderTest, OnlyTheFirstProblemsComeWithAdvice) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "job.epochz" + std::to_string(i) + " = 1\n";
  Write("x.conf", text);
  const LoadedExperiment loaded = Load("x.conf");
  EXPECT_GE(loaded.problems.size(), 3000u);
  EXPECT_THAT(loaded.problems.front(), HasSubstr("did you mean job.epochs"));
  const auto advised = [](const std::string& problem) {
    return problem.find("did you mean") != std::string::npos;
  };
  EXPECT_EQ(std::count_if(loaded.problems.begin(), loaded.problems.end(), advised), 20);
}

}  // namespace
}  // namespace kumo
