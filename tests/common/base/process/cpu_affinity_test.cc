#include "common/base/process/cpu_affinity.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(ParseCores, TheKernelsListsAreUnderstood) {
  EXPECT_THAT(*ParseCores("0-3,8,10-11\n"), ElementsAre(0, 1, 2, 3, 8, 10, 11));
  EXPECT_THAT(*ParseCores("5"), ElementsAre(5));
  EXPECT_THAT(*ParseCores("7-7"), ElementsAre(7));
  EXPECT_THAT(*ParseCores("65535"), ElementsAre(kHighestCore));
}

TEST(ParseCores, AnEmptyLineNamesNone) {
  EXPECT_THAT(*ParseCores(""), IsEmpty());
  EXPECT_THAT(*ParseCores("\n"), IsEmpty());
}

TEST(ParseCores, WhatOverlapsOrIsOutOfOrderComesOnceAndAscending) {
  EXPECT_THAT(*ParseCores("4-5,1,4"), ElementsAre(1, 4, 5));
}

TEST(ParseCores, WhatIsNoListIsRefusedAndQuoted) {
  for (const char* text : {"-1", "0-", "0-3,", ",0", "3-1", "0--3", "a", "0 1", "0x4", "65536",
                           "0-99999999999999999999", "0-3;8", "-", " 0"}) {
    const Result<Cores> cores = ParseCores(text);
    ASSERT_FALSE(cores.ok()) << text;
    EXPECT_EQ(cores.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(cores.status().message(), HasSubstr(text));
  }
}

TEST(FormatCores, IsTheKernelsWayToWriteThem) {
  for (const char* text : {"", "0", "0-1", "0-3,8,10-11", "1,3,5"}) {
    EXPECT_EQ(FormatCores(*ParseCores(text)), text);
  }
}

// A folder that is built like /sys, with one device.
class Sysfs : public testing::Test {
 protected:
  static constexpr char kDevice[] = "0000:1b:00.0";

  void SetUp() override {
    const std::string device = scratch_ / (std::string("bus/pci/devices/") + kDevice);
    std::filesystem::create_directories(device);
    list_ = device + "/local_cpulist";
  }
  void Write(const std::string& text) { std::ofstream(list_) << text; }

  const test::ScratchDirectory scratch_;
  const std::string root_ = scratch_.path();
  std::string list_;
};

TEST_F(Sysfs, ACardsCoresAreRead) {
  Write("16-31\n");
  EXPECT_EQ(FormatCores(*CoresNear(kDevice, root_)), "16-31");
}

TEST_F(Sysfs, ABusIdInCapitalsIsTheSameCard) {
  Write("0,2\n");
  EXPECT_EQ(FormatCores(*CoresNear("0000:1B:00.0", root_)), "0,2");
}

TEST_F(Sysfs, WhereTheKernelSaysNothingTheFileIsNamed) {
  const Result<Cores> cores = CoresNear(kDevice, root_);
  ASSERT_FALSE(cores.ok());
  EXPECT_EQ(cores.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(cores.status().message(), HasSubstr(list_));
}

TEST_F(Sysfs, TextThatMakesNoSenseIsAnErrorThatNamesTheFile) {
  Write("all of them\n");
  const Result<Cores> cores = CoresNear(kDevice, root_);
  ASSERT_FALSE(cores.ok());
  EXPECT_EQ(cores.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(cores.status().message(), HasSubstr(list_));
  EXPECT_THAT(cores.status().message(), HasSubstr("all of them"));
}

TEST(PlaceNear, AFreeProcessIsPinnedToTheNode) {
  const Placement placement = PlaceNear({16, 17}, {0, 1, 16, 17});
  EXPECT_THAT(placement.cores, ElementsAre(16, 17));
  EXPECT_EQ(placement.reason, "pinned");
}

TEST(PlaceNear, WhereAllCoresAreNearNothingIsDone) {
  EXPECT_THAT(PlaceNear({0, 1, 2, 3}, {0, 1, 2, 3}).cores, IsEmpty());
  EXPECT_THAT(PlaceNear({0, 1, 2, 3}, {1, 2}).cores, IsEmpty());
}

TEST(PlaceNear, ARestrictedProcessGetsNoCoreThatItHadNot) {
  const Placement placement = PlaceNear({16, 17, 18}, {0, 1, 17, 18});
  EXPECT_THAT(placement.cores, ElementsAre(17, 18));
  EXPECT_THAT(placement.reason, HasSubstr("pinned to 17-18"));
}

TEST(PlaceNear, AProcessThatWasSentElsewhereIsLeftThere) {
  const Placement placement = PlaceNear({16, 17}, {0, 1});
  EXPECT_THAT(placement.cores, IsEmpty());
  EXPECT_THAT(placement.reason, HasSubstr("restricted to cores 0-1"));
}

TEST(PlaceNear, AnEmptyListPinsNothing) { EXPECT_THAT(PlaceNear({}, {0, 1}).cores, IsEmpty()); }

TEST_F(Sysfs, AThreadAndThoseThatItStartsRunNearTheCard) {
  const Cores allowed = *CoresOfThisThread();
  if (allowed.size() < 2) GTEST_SKIP() << "one core only: there is nothing to choose";
  const Cores last = {allowed.back()};
  Write(FormatCores(last) + "\n");
  // In a thread of its own: the other tests keep theirs.
  std::thread([&] {
    const Result<std::string> said = PinNear("cuda:1", kDevice, root_);
    ASSERT_TRUE(said.ok()) << said.status().message();
    EXPECT_EQ(*said, "cuda:1 is on NUMA node cores " + FormatCores(last) + ": pinned");
    EXPECT_EQ(*CoresOfThisThread(), last);
    std::thread([&] { EXPECT_EQ(*CoresOfThisThread(), last); }).join();
  }).join();
}

TEST(RunThisThreadOn, CoresThatAreNotThereAreAnError) {
  std::thread([] {
    EXPECT_EQ(RunThisThreadOn({1023}).code(), StatusCode::kInternal);
    EXPECT_EQ(RunThisThreadOn({kHighestCore}).code(), StatusCode::kInternal);
  }).join();
}

}  // namespace
}  // namespace kumo
