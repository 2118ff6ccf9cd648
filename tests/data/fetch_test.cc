// data/fetch.sh against mirrors that are folders (file://, which curl knows).
#include <cstdint>
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/run_command.h"
#include "tests/data/test_files.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using test::Bytes;
using test::Quoted;
using testing::HasSubstr;

constexpr const char* kNames[] = {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz",
                                  "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"};

class FetchTest : public testing::Test {
 protected:
  void SetUp() override {
    if (test::RunCommand("command -v curl sha256sum").exit_code != 0) {
      GTEST_SKIP() << "curl or sha256sum is missing";
    }
    for (size_t i = 0; i < std::size(kNames); ++i) {
      test::WriteFile(scratch_ / ("good/" + std::string(kNames[i])), Content(i));
    }
    const auto sums =
        test::RunCommand("cd " + Quoted(scratch_ / "good") + " && sha256sum ./* > ../SHA256SUMS");
    ASSERT_EQ(sums.exit_code, 0) << sums.output;
  }

  static Bytes Content(size_t i) { return test::Gzip(test::Pattern(1000 * (i + 1))); }
  std::string Target(const std::string& name) { return scratch_ / ("out/mnist/" + name); }

  // mirrors: folders of the scratch directory, separated by spaces.
  test::CommandOutcome Fetch(std::initializer_list<std::string> mirrors,
                             const std::string& arguments = "") {
    std::string addresses;
    for (const std::string& mirror : mirrors) addresses += "file://" + (scratch_ / mirror) + " ";
    return test::RunCommand("KUMO_FETCH_MIRRORS=" + Quoted(addresses) + " KUMO_FETCH_SHA256SUMS=" +
                            Quoted(scratch_ / "SHA256SUMS") + " sh " + KUMO_FETCH_SCRIPT + " " +
                            (arguments.empty() ? "mnist " + Quoted(scratch_ / "out") : arguments));
  }
  void ExpectAllThere() {
    for (size_t i = 0; i < std::size(kNames); ++i) {
      EXPECT_EQ(test::ReadFile(Target(kNames[i])), Content(i)) << kNames[i];
    }
    int entries = 0;
    for (const auto& entry : std::filesystem::directory_iterator(scratch_ / "out/mnist")) {
      ++entries;
      (void)entry;
    }
    EXPECT_EQ(entries, 4) << "nothing half-fetched is left";
  }

  test::ScratchDirectory scratch_;
};

TEST_F(FetchTest, BringsAllFilesAndDoesNothingTheSecondTime) {
  const auto first = Fetch({"good"});
  EXPECT_EQ(first.exit_code, 0) << first.output;
  ExpectAllThere();
  const auto second = Fetch({"nowhere"});
  EXPECT_EQ(second.exit_code, 0) << second.output;
  EXPECT_THAT(second.output, HasSubstr("there already"));
}

TEST_F(FetchTest, DamagedFileOfOneMirrorIsTakenFromTheNext) {
  std::filesystem::copy(scratch_ / "good", scratch_ / "bad");
  Bytes damaged = Content(2);
  damaged[100] = static_cast<uint8_t>(damaged[100] ^ 1);
  test::WriteFile(scratch_ / ("bad/" + std::string(kNames[2])), damaged);
  const auto outcome = Fetch({"nowhere", "bad", "good"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("SHA-256"));
  ExpectAllThere();
}

TEST_F(FetchTest, DamagedFileIsNeverGivenItsName) {
  std::filesystem::copy(scratch_ / "good", scratch_ / "bad");
  Bytes damaged = Content(3);
  damaged.pop_back();
  test::WriteFile(scratch_ / ("bad/" + std::string(kNames[3])), damaged);
  const auto outcome = Fetch({"bad"});
  EXPECT_EQ(outcome.exit_code, 75) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr(kNames[3]));
  EXPECT_FALSE(std::filesystem::exists(Target(kNames[3])));
}

TEST_F(FetchTest, DamagedFileOnTheDiskIsFetchedAgain) {
  test::WriteFile(Target(kNames[0]), test::Pattern(77));
  const auto outcome = Fetch({"good"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  ExpectAllThere();
}

TEST_F(FetchTest, CutOffDownloadGoesOn) {
  Bytes part = Content(0);
  part.resize(part.size() / 2);
  test::WriteFile(scratch_ / ("out/mnist/." + std::string(kNames[0]) + ".part"), part);
  const auto outcome = Fetch({"good"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  ExpectAllThere();
}

TEST_F(FetchTest, WrongOrTooLongRestOfAnEarlierTryIsThrownAway) {
  for (const size_t size : {size_t{50}, Content(0).size(), Content(0).size() + 500}) {
    std::filesystem::remove_all(scratch_ / "out");
    test::WriteFile(scratch_ / ("out/mnist/." + std::string(kNames[0]) + ".part"),
                    test::Pattern(size));
    const auto outcome = Fetch({"good"});
    EXPECT_EQ(outcome.exit_code, 0) << size << ": " << outcome.output;
    ExpectAllThere();
  }
}

TEST_F(FetchTest, ATextGetsItsNameAndAnArchiveIsUnpacked) {
  test::WriteFile(scratch_ / "other/input.txt", test::Pattern(70));
  test::WriteFile(scratch_ / "packed/cifar-10-batches-bin/test_batch.bin", test::Pattern(90));
  const auto made = test::RunCommand(
      "cd " + Quoted(scratch_.path()) +
      " && tar -czf other/cifar-10-binary.tar.gz -C packed cifar-10-batches-bin && (cd other && "
      "sha256sum cifar-10-binary.tar.gz && sha256sum input.txt | sed s/input/tinyshakespeare/) > "
      "SHA256SUMS");
  ASSERT_EQ(made.exit_code, 0) << made.output;
  const auto text = Fetch({"other"}, "shakespeare " + Quoted(scratch_ / "out"));
  EXPECT_EQ(text.exit_code, 0) << text.output;
  EXPECT_EQ(test::ReadFile(scratch_ / "out/text/tinyshakespeare.txt"), test::Pattern(70));
  for (int again = 0; again < 2; ++again) {
    const auto images = Fetch({"other"}, "cifar10 " + Quoted(scratch_ / "out"));
    EXPECT_EQ(images.exit_code, 0) << images.output;
    EXPECT_THAT(images.output, HasSubstr("--set data.reader=cifar"));
    EXPECT_EQ(test::ReadFile(scratch_ / "out/cifar10/cifar-10-batches-bin/test_batch.bin"),
              test::Pattern(90));
  }
}

TEST_F(FetchTest, TheYearsOfPascalVocComeFromTheirFolders) {
  const std::string names[] = {"voc2007/VOCtrainval_06-Nov-2007.tar",
                               "voc2007/VOCtest_06-Nov-2007.tar",
                               "voc2012/VOCtrainval_11-May-2012.tar"};
  for (const std::string& name : names) {
    test::WriteFile(scratch_ / ("other/" + name), test::Pattern(60 + name.size()));
  }
  const auto sums =
      test::RunCommand("cd " + Quoted(scratch_ / "other") + " && sha256sum voc*/* > ../SHA256SUMS");
  ASSERT_EQ(sums.exit_code, 0) << sums.output;
  const auto outcome = Fetch({"other"}, "voc " + Quoted(scratch_ / "out"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("--set data.reader=voc"));
  for (const std::string& name : names) {
    EXPECT_EQ(test::ReadFile(scratch_ / ("out/voc/" + name.substr(sizeof "voc2007"))),
              test::Pattern(60 + name.size()));
  }
}

TEST_F(FetchTest, NoMirrorIsUnavailable) {
  const auto outcome = Fetch({"nowhere"});
  EXPECT_EQ(outcome.exit_code, 75);
  EXPECT_THAT(outcome.output, HasSubstr("try again"));
}

TEST_F(FetchTest, WrongUseIsSaid) {
  EXPECT_EQ(Fetch({"good"}, "cifar " + Quoted(scratch_ / "out")).exit_code, 64);
  EXPECT_EQ(Fetch({"good"}, "mnist a b").exit_code, 64);
  EXPECT_EQ(test::RunCommand(std::string("env -u KUMO_DATA sh ") + KUMO_FETCH_SCRIPT + " mnist")
                .exit_code,
            64);
  const auto help = Fetch({"good"}, "--help");
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.output, testing::AllOf(HasSubstr("usage:"), HasSubstr("Exit codes")));
  test::WriteFile(scratch_ / "file", {});
  EXPECT_EQ(Fetch({"good"}, "mnist " + Quoted(scratch_ / "file")).exit_code, 78);
}

TEST_F(FetchTest, KnowsTheChecksumsOfTheRealMnist) {
  const char* data = std::getenv("KUMO_DATA");
  if (data == nullptr || !std::filesystem::exists(std::string(data) + "/mnist")) {
    GTEST_SKIP() << "KUMO_DATA does not name a folder with mnist/";
  }
  const auto outcome =
      test::RunCommand("KUMO_FETCH_MIRRORS=" + Quoted("file://" + std::string(data) + "/mnist") +
                       " sh " + KUMO_FETCH_SCRIPT + " mnist " + Quoted(scratch_ / "out"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
}

}  // namespace
}  // namespace kumo
