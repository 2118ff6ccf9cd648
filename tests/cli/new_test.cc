// kumo new as a person runs it, with the experiments of the build folder.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/kumo_runner.h"

namespace kumo {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class NewTest : public KumoTest {
 protected:
  NewTest() { std::filesystem::current_path(folder_); }
  ~NewTest() override { std::filesystem::current_path("/"); }
};

TEST_F(NewTest, WritesAnExperimentAndItsNetworkThatPassTheCheck) {
  const Ended ended = Run({"new", "mine", "--from", "mnist_mlp"}, false);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("mine.conf"), HasSubstr("kumo launch mine.conf")));
  EXPECT_THAT(Read("mine.conf"), AllOf(HasSubstr("\nfile = mine.pbtxt\n"), HasSubstr("type = adam"),
                                       HasSubstr("784-1000-1000-10")));
  EXPECT_THAT(Read("mine.pbtxt"), HasSubstr("name: \"mnist_mlp\""));
  EXPECT_EQ(Run({"check", "mine.conf"}).code, 0);
}

TEST_F(NewTest, WhatIsCopiedIsSaid) {
  EXPECT_THAT(Run({"new", "mine"}, false).out,
              AllOf(HasSubstr("copied from mnist_lenet: LeNet on MNIST in block mode\n"),
                    HasSubstr("--data FOLDER")));
  EXPECT_THAT(Run({"new", "other", "--from", "mnist_mlp"}, false).out,
              AllOf(HasSubstr("copied from mnist_mlp: "), Not(HasSubstr("--data"))));
}

TEST_F(NewTest, DataThatAreNotRecognisedLeaveNothingBehind) {
  std::filesystem::create_directories("empty");
  const Ended ended = Run({"new", "mine", "--data", "empty"}, false);
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.last_line, HasSubstr("empty: no data set is recognised"));
  EXPECT_FALSE(std::filesystem::exists("mine.conf"));
  EXPECT_EQ(Run({"new", "mine", "--data", "empty", "--from", "mnist_mlp"}, false).code, 64);
}

TEST_F(NewTest, AnyExperimentMayBeTheOneItIsMadeOf) {
  std::ofstream("net.pbtxt") << "anything";
  EXPECT_EQ(Run({"new", "mine", "--from", experiment_}, false).code, 0);
  EXPECT_EQ(Read("mine.pbtxt"), "anything");
}

TEST_F(NewTest, NothingIsOverwritten) {
  for (const char* there : {"mine.conf", "mine.pbtxt"}) {
    std::ofstream(there) << "mine";
    const Ended ended = Run({"new", "mine"}, false);
    EXPECT_EQ(ended.code, 78);
    EXPECT_THAT(ended.last_line, HasSubstr(std::string(there) + " exists"));
    EXPECT_EQ(Read(there), "mine");
    std::filesystem::remove(there);
    EXPECT_FALSE(std::filesystem::exists("mine.conf"));
    EXPECT_FALSE(std::filesystem::exists("mine.pbtxt"));
  }
}

TEST_F(NewTest, BadNamesAreUsage) {
  for (const char* name : {"a/b", "mine.conf", "a b", "..", ""}) {
    EXPECT_EQ(Run({"new", name}, false).code, 64) << name;
  }
  EXPECT_THAT(Run({"new", "a/b"}, false).last_line,
              HasSubstr("the name a/b: must be letters, digits, '-' and '_'"));
  EXPECT_THAT(Run({"new"}, false).last_line, HasSubstr("NAME is missing"));
}

TEST_F(NewTest, WhatItIsMadeOfMustBeThereAndRight) {
  const Ended missing = Run({"new", "mine", "--from", "minst_lenet"}, false);
  EXPECT_EQ(missing.code, 78);
  EXPECT_THAT(missing.last_line, AllOf(HasSubstr("minst_lenet: the experiment file cannot be read"),
                                       HasSubstr("kumo new --list")));
  std::ofstream(experiment_) << "[sync]\nblok = 1\n";
  const Ended wrong = Run({"new", "mine", "--from", experiment_}, false);
  EXPECT_EQ(wrong.code, 78);
  EXPECT_THAT(wrong.last_line, HasSubstr(experiment_ + ":2: unknown key sync.blok"));
  EXPECT_FALSE(std::filesystem::exists("mine.conf"));
}

TEST_F(NewTest, TheInstalledOnesAreListedWithWhatTheyAre) {
  const Ended ended = Run({"new", "--list"}, false);
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.out, AllOf(HasSubstr("mnist_lenet          LeNet on MNIST in block mode\n"),
                               HasSubstr("mnist_mlp ")));
}

}  // namespace
}  // namespace kumo
