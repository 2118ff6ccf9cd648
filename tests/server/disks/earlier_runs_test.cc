#include "server/disks/earlier_runs.h"

#include <cstdio>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/file.h"
#include "tests/common/base/memory_file_system.h"

namespace kumo {
namespace {

using testing::ElementsAre;

constexpr char kEvents[] = "events.out.tfevents.0000001000.h.0";

// Output of a run that has saved these rounds.
void Leave(MemoryFileSystem* files, const std::string& what, const std::vector<int64_t>& rounds) {
  for (const int64_t round : rounds) {
    char name[40];
    std::snprintf(name, sizeof(name), "round-%012d", static_cast<int>(round));
    const std::string folder = JoinPath("/out/checkpoints", name);
    ASSERT_TRUE(files->CreateDirectories(folder).ok());
    files->Put(JoinPath(folder, "MANIFEST"), what);
  }
  ASSERT_TRUE(files->CreateDirectories("/out/logs").ok());
  files->Put("/out/log.jsonl", what);
  files->Put(JoinPath("/out", kEvents), what);
  files->Put("/out/logs/server-0.h.log", what);
}

std::string Text(MemoryFileSystem* files, const std::string& path) {
  const std::string* const bytes = files->Contents(path);
  return bytes == nullptr ? "(none)" : *bytes;
}

TEST(EarlierRuns, EachStayWholeUnderANumberOfTheirOwn) {
  MemoryFileSystem files;
  EXPECT_EQ(*SetRunAside(files, "/out"), "");
  for (const std::string& number : std::vector<std::string>{"1", "2", "3"}) {
    Leave(&files, "run " + number, {5, 6});
    files.Put("/out/notes.txt", "mine");
    const std::string folder = "/out/earlier/" + number;
    EXPECT_EQ(*SetRunAside(files, "/out"), folder);
    EXPECT_EQ(Text(&files, folder + "/checkpoints/round-000000000006/MANIFEST"), "run " + number);
    EXPECT_EQ(Text(&files, folder + "/log.jsonl"), "run " + number);
    EXPECT_EQ(Text(&files, JoinPath(folder, kEvents)), "run " + number);
    EXPECT_FALSE(files.Exists("/out/log.jsonl"));
    EXPECT_THAT(*files.List("/out/checkpoints"), ElementsAre());
  }
  EXPECT_EQ(Text(&files, "/out/earlier/1/log.jsonl"), "run 1");
  EXPECT_EQ(Text(&files, "/out/earlier/1/checkpoints/round-000000000005/MANIFEST"), "run 1");
  EXPECT_EQ(Text(&files, "/out/notes.txt"), "mine");
  EXPECT_EQ(*SetRunAside(files, "/out"), "") << "two attempts to start need one folder";
}

// Running processes write their logs on.
TEST(EarlierRuns, LogsAreCopied) {
  MemoryFileSystem files;
  Leave(&files, "run", {5});
  EXPECT_EQ(*SetRunAside(files, "/out"), "/out/earlier/1");
  EXPECT_EQ(Text(&files, "/out/logs/server-0.h.log"), "run");
  EXPECT_EQ(Text(&files, "/out/earlier/1/logs/server-0.h.log"), "run");
}

TEST(EarlierRuns, LaterRoundsAreMovedAndTheCurvesCopied) {
  MemoryFileSystem files;
  Leave(&files, "run", {5, 6, 7});
  EXPECT_EQ(*SetLaterRoundsAside(files, "/out", 7), "");
  for (const std::string& number : std::vector<std::string>{"1", "2"}) {
    const std::string folder = "/out/earlier/" + number;
    EXPECT_EQ(*SetLaterRoundsAside(files, "/out", 5), folder);
    EXPECT_THAT(*files.List("/out/checkpoints"), ElementsAre("round-000000000005"));
    EXPECT_THAT(*files.List(folder + "/checkpoints"),
                ElementsAre("round-000000000006", "round-000000000007"));
    for (const std::string& from : std::vector<std::string>{"/out", folder}) {
      EXPECT_EQ(Text(&files, from + "/log.jsonl"), "run");
      EXPECT_EQ(Text(&files, JoinPath(from, kEvents)), "run");
    }
    Leave(&files, "run", {6, 7});
  }
}

class CheckpointsOnAnotherDisk : public MemoryFileSystem {
 public:
  Status Rename(const std::string& from, const std::string& to) override {
    const bool leaves = from.find("/checkpoints/") != from.npos;
    return leaves ? FailedPrecondition("cannot rename: Invalid cross-device link")
                  : MemoryFileSystem::Rename(from, to);
  }
};

TEST(EarlierRuns, WhereCheckpointsCannotBeMovedNothingChangesAndTheRemedyIsNamed) {
  CheckpointsOnAnotherDisk files;
  Leave(&files, "run", {5});
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto folder = SetRunAside(files, "/out");
    EXPECT_EQ(folder.status().code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(folder.status().message(), testing::HasSubstr("choose another output.directory"));
    EXPECT_EQ(Text(&files, "/out/log.jsonl"), "run");
    EXPECT_THAT(*files.List("/out/earlier"), ElementsAre());
  }
}

// Whichever operation of the disk fails: every file is where it was, or in a numbered folder.
TEST(EarlierRuns, AFullDiskLosesNothing) {
  bool finished = false;
  for (int n = 0; !finished; ++n) {
    MemoryFileSystem files;
    Leave(&files, "run", {5});
    files.FailFrom(files.operations() + n);
    finished = SetRunAside(files, "/out").ok();
    files.FailFrom(-1);
    const std::vector<std::string> names = {"/checkpoints/round-000000000005/MANIFEST",
                                            "/log.jsonl", "/" + std::string(kEvents)};
    for (const std::string& name : names) {
      EXPECT_TRUE(Text(&files, "/out" + name) == "run" ||
                  Text(&files, "/out/earlier/1" + name) == "run")
          << n << ": " << name;
    }
    ASSERT_LT(n, 100);
  }
}

TEST(EarlierRuns, ARunHasBegunOnceItIsMarked) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.CreateDirectories("/out").ok());
  EXPECT_FALSE(HasBegun(files, "/out", "a"));
  ASSERT_TRUE(MarkBegun(files, "/out", "a").ok());
  EXPECT_TRUE(HasBegun(files, "/out", "a"));
  EXPECT_FALSE(HasBegun(files, "/out", "b"));
  EXPECT_FALSE(HasBegun(files, "/out", ""));
  ASSERT_TRUE(MarkBegun(files, "/out", "").ok()) << "a run without a name";
  EXPECT_TRUE(HasBegun(files, "/out", "a"));
}

}  // namespace
}  // namespace kumo
