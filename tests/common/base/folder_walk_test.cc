#include "common/base/folder_walk.h"

#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scratch_directory.h"

namespace kumo {
namespace {

namespace fs = std::filesystem;
using Kind = FolderEntry::Kind;
using testing::ElementsAre;
using testing::HasSubstr;

class FolderWalkTest : public testing::Test {
 protected:
  void Write(const std::string& path) {
    fs::create_directories(fs::path(scratch_ / path).parent_path());
    std::ofstream(scratch_ / path) << "x";
  }
  // A line for each entry: its kind and path, and the reason if there is one.
  std::vector<std::string> Walk(bool enter_repeated = false) {
    std::vector<std::string> lines;
    EXPECT_TRUE(
        WalkFolder(scratch_.path(), [&](const FolderEntry& entry) {
          static constexpr const char* kWords[] = {"file", "folder", "repeated", "unusable"};
          lines.push_back(kWords[static_cast<int>(entry.kind)] + (" " + entry.path) +
                          (entry.why.empty() ? "" : " " + entry.why));
          return entry.kind == Kind::kFolder || enter_repeated;
        }).ok());
    return lines;
  }

  test::ScratchDirectory scratch_;
};

TEST_F(FolderWalkTest, EntriesComeInTheOrderOfTheirNames) {
  Write("b/2");
  Write("b/1");
  Write("a/deep/er/x");
  Write("c");
  EXPECT_THAT(Walk(),
              ElementsAre("folder a", "folder a/deep", "folder a/deep/er", "file a/deep/er/x",
                          "folder b", "file b/1", "file b/2", "file c"));
}

TEST_F(FolderWalkTest, LinksAreFollowedButNotUpwardsAndNotTwice) {
  Write("real/x");
  fs::create_directory_symlink("..", scratch_ / "real/up");
  fs::create_directory_symlink(".", scratch_ / "real/self");
  fs::create_directory_symlink("real", scratch_ / "same");
  fs::create_symlink("real/x", scratch_ / "y");
  fs::create_symlink("nothing", scratch_ / "lost");
  fs::create_symlink("ring", scratch_ / "ring");
  ASSERT_EQ(mkfifo((scratch_ / "pipe").c_str(), 0600), 0);
  const std::string root = scratch_.path();
  const std::vector<std::string> expected = {
      "unusable lost is a link to a file that does not exist",
      "unusable pipe is neither a file nor a folder",
      "folder real",
      "unusable real/self is a link to " + root + "/real, a folder above it",
      "unusable real/up is a link to " + root + ", a folder above it",
      "file real/x",
      "unusable ring is a link that leads back to itself",
      "repeated same is the same folder as " + root + "/real",
      "file y"};
  EXPECT_EQ(Walk(), expected);
  EXPECT_THAT(Walk(/*enter_repeated=*/true), testing::Contains("file same/x"));
}

TEST_F(FolderWalkTest, AFolderThatWasNotEnteredMayBeEnteredByAnotherName) {
  Write("..2026/x");
  fs::create_directory_symlink("..2026", scratch_ / "set");
  std::vector<std::string> files;
  ASSERT_TRUE(WalkFolder(scratch_.path(), [&](const FolderEntry& entry) {
                if (entry.kind == Kind::kFile) files.push_back(entry.path);
                return entry.kind == Kind::kFolder && !entry.path.starts_with("..");
              }).ok());
  EXPECT_THAT(files, ElementsAre("set/x"));
}

TEST_F(FolderWalkTest, AFolderThatCannotBeListedIsNamed) {
  Write("locked/x");
  Write("open/y");
  fs::permissions(scratch_ / "locked", fs::perms::none);
  // Root may list everything, so this thread reads files as nobody.
  const bool root = geteuid() == 0;
  if (root) setfsuid(65534);
  EXPECT_THAT(Walk(),
              ElementsAre("folder locked", "unusable locked cannot be listed: Permission denied",
                          "folder open", "file open/y"));
  if (root) setfsuid(0);
  fs::permissions(scratch_ / "locked", fs::perms::owner_all);
  const Status none = WalkFolder(scratch_ / "none", [](const FolderEntry&) { return true; });
  EXPECT_EQ(none.code(), StatusCode::kNotFound);
  EXPECT_THAT(none.message(), HasSubstr(scratch_ / "none: cannot list the folder"));
}

}  // namespace
}  // namespace kumo
