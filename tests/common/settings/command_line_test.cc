#include "common/settings/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Arguments {
  std::string file;
  std::vector<std::string> sets;
  std::vector<std::string> images;
  int workers = 2;
  bool json = false;
  CommandLine line{"kumo launch", "Starts."};

  Arguments() {
    line.AddPositional("FILE", "The experiment", true, &file);
    line.AddRepeated("set", "KEY=VALUE", "Overrides", &sets);
    line.AddSeveral("images", "PATH", "Images", &images);
    line.AddOption("workers", "N", {.min = 1, .max = 8}, "Processes", &workers);
    line.AddFlag("json", "JSON", &json);
  }
  Status Parse(const std::vector<std::string>& args) { return line.Parse(args); }
};

TEST(CommandLine, ReadsBothFormsOfOptionsInAnyOrder) {
  Arguments a;
  ASSERT_TRUE(
      a.Parse({"--workers", "3", "x.conf", "--set", "a.b=c", "--set=d.e=f", "--json"}).ok());
  EXPECT_EQ(a.file, "x.conf");
  EXPECT_EQ(a.workers, 3);
  EXPECT_TRUE(a.json);
  EXPECT_THAT(a.sets, ElementsAre("a.b=c", "d.e=f"));
}

TEST(CommandLine, UnknownOptionIsRefusedWithTheNearest) {
  const Status status = Arguments().Parse({"x.conf", "--worker", "3"});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("unknown option --worker; did you mean --workers?"));
}

TEST(CommandLine, BadAndMissingValuesAreRefused) {
  EXPECT_THAT(Arguments().Parse({"x", "--workers", "9"}).message(),
              HasSubstr("--workers 9: must be 1 .. 8"));
  EXPECT_THAT(Arguments().Parse({"x", "--workers"}).message(),
              HasSubstr("--workers needs a value"));
  EXPECT_THAT(Arguments().Parse({"x", "--json=1"}).message(), HasSubstr("takes no value"));
  EXPECT_THAT(Arguments().Parse({}).message(), HasSubstr("FILE is missing"));
  EXPECT_THAT(Arguments().Parse({"x", "y"}).message(), HasSubstr("'y' is one argument too many"));
}

TEST(CommandLine, WhatFollowsAnOptionIsItsValue) {
  EXPECT_THAT(Arguments().Parse({"x", "--workers", "--json"}).message(),
              HasSubstr("--workers --json: must be an integer, 1 .. 8"));
  EXPECT_THAT(Arguments().Parse({"x", "--workers="}).message(),
              HasSubstr("--workers needs a value"));
  EXPECT_THAT(Arguments().Parse({"x", "--workers", "-1"}).message(),
              HasSubstr("--workers -1: must be 1 .. 8"));
  Arguments a;
  ASSERT_TRUE(a.Parse({"--", "--json"}).ok()) << "what follows -- is no option";
  EXPECT_EQ(a.file, "--json");
}

// A person who knows other programs writes --epochs 5.
TEST(CommandLine, AnOptionThatIsASettingIsRefusedWithTheWayToSetIt) {
  const auto refusal = [](const std::vector<std::string>& args) {
    CommandLine line("kumo test", "Tests.");
    std::vector<std::string> sets;
    line.AddSettings(&sets);
    return line.Parse(args).message();
  };
  EXPECT_EQ(refusal({"--epochs", "5"}),
            "unknown option --epochs; it is a setting of the experiment: write --set job.epochs=5");
  EXPECT_THAT(refusal({"--epochs", "5 or 6"}),
              HasSubstr("write --set job.epochs=VALUE (1 .. 1000000)"));
  EXPECT_THAT(refusal({"--train-images", "my set"}),
              HasSubstr("write --set 'data.train_images=my set'"));
  EXPECT_THAT(refusal({"--lr=0.1"}), HasSubstr("write --set schedule.learning_rate=0.1"));
  EXPECT_THAT(refusal({"--batch-size", "--lr"}), HasSubstr("write --set sync.minibatch=VALUE"));
  EXPECT_THAT(refusal({"--sync.block", "7"}), HasSubstr("write --set sync.block=7"));
  EXPECT_THAT(refusal({"--momentum=0"}),
              HasSubstr("--set block.momentum=0 or --set optimiser.momentum=0"));
  EXPECT_EQ(refusal({"--gpus", "2"}),
            "unknown option --gpus; it is a setting of the experiment: write --set "
            "network.device=VALUE (cpu, cuda, or cuda:0 .. cuda:15)");
  EXPECT_THAT(refusal({"--gpus", "cuda:2"}), HasSubstr("write --set network.device=cuda:2"));
  EXPECT_THAT(refusal({"--st"}), HasSubstr("did you mean --set?"));
  EXPECT_THAT(Arguments().Parse({"x", "--epochs", "5"}).message(),
              HasSubstr("unknown option --epochs ("))
      << "a command without settings";
}

TEST(CommandLine, AnOptionByAnotherWordIsRefusedWithTheOneThatTheCommandHas) {
  const auto refusal = [](const std::vector<std::string>& args) {
    CommandLine line("kumo test", "Tests.");
    std::vector<std::string> sets, files;
    int most = 1;
    line.AddSeveral("input", "PATH", "Images", &files);
    line.AlsoCalled("images train_images");
    line.AddOption("top", "K", {.min = 1, .max = 9}, "Classes", &most);
    line.AlsoCalled("epochs");
    line.AddSettings(&sets);
    return line.Parse(args).message();
  };
  EXPECT_EQ(refusal({"--images", "my cat.png"}),
            "unknown option --images; write --input 'my cat.png'");
  EXPECT_EQ(refusal({"--train-images=1.png"}), "unknown option --train-images; write --input 1.png")
      << "before a setting of that name";
  EXPECT_EQ(refusal({"--epochs", "10"}),
            "unknown option --epochs; write --top K: Classes; 1 .. 9 (default: 1)");
  EXPECT_EQ(refusal({"--images"}), "unknown option --images; write --input PATH...: Images");
}

TEST(CommandLine, AnOptionOfSeveralTakesWhatFollowsBeyondTheCommandsOwn) {
  Arguments a;
  ASSERT_TRUE(a.Parse({"x.conf", "--images", "1.png", "2.png", "--json", "--images=3.png", "4.png",
                       "--set", "a.b=c"})
                  .ok());
  EXPECT_THAT(a.images, ElementsAre("1.png", "2.png", "3.png", "4.png"));
  Arguments b;
  ASSERT_TRUE(b.Parse({"--images", "1.png", "x.conf", "2.png"}).ok());
  EXPECT_EQ(b.file, "x.conf");
  EXPECT_THAT(b.images, ElementsAre("1.png", "2.png"));
  EXPECT_THAT(Arguments().Parse({"x", "--images", "1.png", "--set", "a.b=c", "2.png"}).message(),
              HasSubstr("'2.png' is one argument too many"));
}

TEST(CommandLine, OptionsAreNotAbbreviated) {
  EXPECT_THAT(Arguments().Parse({"x", "--work", "3"}).message(),
              HasSubstr("unknown option --work"));
  EXPECT_THAT(Arguments().Parse({"x", "-j"}).message(), HasSubstr("unknown option -j"));
}

TEST(CommandLine, VersionNeedsNothingElseAndIsUnknownWhereThereIsNone) {
  Arguments a;
  EXPECT_FALSE(a.Parse({"x", "--version"}).ok());
  a.line.AddVersion();
  ASSERT_TRUE(a.Parse({"--version"}).ok());
  EXPECT_TRUE(a.line.version_asked());
  EXPECT_FALSE(a.line.help_asked());
  EXPECT_THAT(a.line.Help(), HasSubstr("--version"));
}

TEST(CommandLine, HelpNamesEveryOptionWithItsDefaultAndNeedsNothingElse) {
  Arguments a;
  ASSERT_TRUE(a.Parse({"--help"}).ok());
  EXPECT_TRUE(a.line.help_asked());
  EXPECT_THAT(a.line.Help(), HasSubstr("kumo launch FILE"));
  EXPECT_THAT(a.line.Help(), HasSubstr("--workers N\n      Processes; 1 .. 8 (default: 2)"));
}

}  // namespace
}  // namespace kumo
