// kumo-data as a user runs it.
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/run_command.h"
#include "tests/data/test_files.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using test::Quoted;
using testing::AllOf;
using testing::HasSubstr;

class DataProgramTest : public testing::Test {
 protected:
  test::CommandOutcome Run(const std::string& arguments) {
    return test::RunCommand(std::string(KUMO_DATA_PROGRAM) + " " + arguments);
  }
  test::ScratchDirectory scratch_;
  const std::string out_ = "--out " + Quoted(scratch_.path());
};

TEST_F(DataProgramTest, DrawsASet) {
  const auto outcome = Run("digits " + out_ + " --train 120 --validation=30 --seed 5 --threads 2");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("120 training"), HasSubstr("seed 5")));
  EXPECT_TRUE(std::filesystem::exists(scratch_ / "mnist/t10k-labels-idx1-ubyte.gz"));
  const auto again = Run("digits " + out_ + " --train 120 --validation=30 --seed 5");
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_THAT(again.output, HasSubstr("there already"));
}

TEST_F(DataProgramTest, HelpNamesEveryOptionWithItsDefault) {
  for (const char* arguments : {"--help", "-h", "digits --help", "digits --out x -h"}) {
    const auto outcome = Run(arguments);
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_THAT(outcome.output,
                AllOf(HasSubstr("--out DIR"), HasSubstr("--train N"), HasSubstr("60000"),
                      HasSubstr("--validation N"), HasSubstr("10000"), HasSubstr("--seed S")));
    EXPECT_THAT(outcome.output,
                AllOf(HasSubstr("--threads N"), HasSubstr("--force"), HasSubstr("Exit codes")));
  }
}

TEST_F(DataProgramTest, WrongCommandLineIsUsage) {
  for (const std::string& arguments :
       {std::string(""), std::string("letters --out x"), std::string("digits"),
        "digits " + out_ + " --train 0", "digits " + out_ + " --train 1e3x",
        "digits " + out_ + " --seed -1", "digits " + out_ + " --colour red",
        "digits " + out_ + " stray", "digits " + out_ + " --threads 65"}) {
    const auto outcome = Run(arguments);
    EXPECT_EQ(outcome.exit_code, 64) << arguments << ": " << outcome.output;
    EXPECT_THAT(outcome.output, testing::StartsWith("kumo-data: "));
  }
  EXPECT_TRUE(std::filesystem::is_empty(scratch_.path()));
}

TEST_F(DataProgramTest, PlaceThatCannotBeWrittenIsBadConfiguration) {
  test::WriteFile(scratch_ / "file", {});
  const auto outcome = Run("digits --out " + Quoted(scratch_ / "file/below") + " --train 1");
  EXPECT_EQ(outcome.exit_code, 78);
  EXPECT_THAT(outcome.output, HasSubstr(scratch_ / "file"));
}

TEST_F(DataProgramTest, FullDiskIsUnavailable) {
  // A file may grow to 1024 bytes (2 blocks of 512) and the signal that says so is ignored.
  const auto outcome =
      test::RunCommand("trap '' XFSZ; ulimit -f 2; " + std::string(KUMO_DATA_PROGRAM) + " digits " +
                       out_ + " --train 3000");
  EXPECT_EQ(outcome.exit_code, 75) << outcome.output;
  EXPECT_TRUE(std::filesystem::is_empty(scratch_ / "mnist")) << "leaves nothing half-written";
}

}  // namespace
}  // namespace kumo
