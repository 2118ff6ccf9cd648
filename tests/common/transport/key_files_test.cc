#include "common/transport/key_files.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <gmock/gmock.h>

#include "tests/common/transport/key_folder.h"

namespace kumo {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string Content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

mode_t ModeOf(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 07777;
}

std::set<std::string> NamesIn(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    names.insert(file.path().filename().string());
  }
  return names;
}

std::string WhyNot(const KeyFolder& folder, const KeyHolder& holder) {
  return ReadKeys(folder.path(), holder).status().message();
}

TEST(KeyFilesTest, EachHolderHasAFileThatOnlyItsOwnerReads) {
  const mode_t before = umask(0);  // the worst of all
  const KeyFolder parent(std::vector<KeyHolder>{});
  const std::string path = parent.File("deep/keys");
  ASSERT_TRUE(AddKeys(path, {ServerKey(0), WorkerKey(0), kClientKey}).ok());
  umask(before);
  EXPECT_EQ(ModeOf(path), 0700u);
  EXPECT_EQ(NamesIn(path),
            (std::set<std::string>{"allow-list", "client.key", "server-0.key", "worker-0.key"}));
  for (const char* file : {"client.key", "server-0.key", "worker-0.key"}) {
    EXPECT_EQ(ModeOf(path + "/" + file), 0600u) << file;
  }
  EXPECT_EQ(ModeOf(path + "/allow-list"), 0644u);
  const std::string list = Content(path + "/allow-list");
  for (const KeyHolder& holder : {ServerKey(0), WorkerKey(0), kClientKey}) {
    const Result<SharedKeys> keys = ReadKeys(path, holder);
    ASSERT_TRUE(keys.ok()) << keys.status().message();
    EXPECT_EQ((*keys)->allowed.entries().size(), 3u);
    EXPECT_THAT(list,
                AllOf(HasSubstr((*keys)->own.public_key), Not(HasSubstr((*keys)->own.secret_key))));
  }
}

TEST(KeyFilesTest, WhatIsThereIsKeptAndTheRestIsAdded) {
  const KeyFolder folder({ServerKey(0), WorkerKey(0)});
  const std::string before = Content(folder.File("server-0.key"));
  EXPECT_THAT(folder.Add({ServerKey(0), WorkerKey(0), WorkerKey(1)}), ElementsAre(WorkerKey(1)));
  EXPECT_EQ(Content(folder.File("server-0.key")), before);
  EXPECT_TRUE(ReadKeys(folder.path(), WorkerKey(1)).ok());
  // A key that was taken to its host is not made a second time.
  std::filesystem::remove(folder.File("worker-1.key"));
  const std::string list = Content(folder.File("allow-list"));
  EXPECT_THAT(folder.Add({ServerKey(0), WorkerKey(0), WorkerKey(1)}), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(folder.File("worker-1.key")));
  EXPECT_EQ(Content(folder.File("allow-list")), list);
}

TEST(KeyFilesTest, AnInterruptedRunIsMadeUpFor) {
  const KeyFolder folder({ServerKey(0), WorkerKey(0)});
  const std::string list = Content(folder.File("allow-list"));
  const std::string before = Content(folder.File("worker-0.key"));
  std::filesystem::remove(folder.File("allow-list"));
  std::ofstream(folder.File(".worker-1.key.tmp")) << "half";
  folder.Add({ServerKey(0), WorkerKey(0), WorkerKey(1)});
  EXPECT_EQ(Content(folder.File("worker-0.key")), before);
  EXPECT_TRUE(ReadKeys(folder.path(), WorkerKey(0)).ok());
  EXPECT_TRUE(ReadKeys(folder.path(), WorkerKey(1)).ok());
  EXPECT_FALSE(std::filesystem::exists(folder.File(".worker-1.key.tmp")));
}

TEST(KeyFilesTest, NothingIsMadeWhereWhatIsThereContradictsItself) {
  const KeyFolder folder({ServerKey(0), WorkerKey(0)}), other({ServerKey(0)});
  std::filesystem::copy_file(other.File("server-0.key"), folder.File("server-0.key"),
                             std::filesystem::copy_options::overwrite_existing);
  const std::string list = Content(folder.File("allow-list"));
  const auto added = AddKeys(folder.path(), {ServerKey(0), WorkerKey(1)});
  ASSERT_FALSE(added.ok());
  EXPECT_EQ(added.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(added.status().message(),
              AllOf(HasSubstr(folder.File("server-0.key")), HasSubstr(folder.File("allow-list"))));
  EXPECT_FALSE(std::filesystem::exists(folder.File("worker-1.key")));
  EXPECT_EQ(Content(folder.File("allow-list")), list);
  EXPECT_THAT(WhyNot(folder, ServerKey(0)), HasSubstr("is not the key that"));
}

TEST(KeyFilesTest, ASecretThatOthersMayReadIsRefusedAndOneThatTheGroupMayReadIsNot) {
  const KeyFolder folder;
  const std::string path = folder.File("server-0.key");
  for (const mode_t mode : {0604, 0644, 0601, 0602, 0620, 0666}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    EXPECT_THAT(WhyNot(folder, ServerKey(0)),
                AllOf(HasSubstr(path), HasSubstr("by others"), HasSubstr("chmod g-w,o-rwx")))
        << mode;
  }
  for (const mode_t mode : {0400, 0440, 0600, 0640}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    EXPECT_TRUE(ReadKeys(folder.path(), ServerKey(0)).ok()) << mode;
  }
}

TEST(KeyFilesTest, AnAllowListThatOthersMayChangeIsRefused) {
  const KeyFolder folder;
  for (const mode_t mode : {0664, 0646, 0622}) {
    ASSERT_EQ(chmod(folder.File("allow-list").c_str(), mode), 0);
    EXPECT_THAT(WhyNot(folder, ServerKey(0)), HasSubstr("can be changed by others")) << mode;
  }
  ASSERT_EQ(chmod(folder.File("allow-list").c_str(), 0444), 0);
  EXPECT_TRUE(ReadKeys(folder.path(), ServerKey(0)).ok());
}

// As kubelet mounts a Secret: the files are links to links.
TEST(KeyFilesTest, FilesMayBeLinks) {
  const KeyFolder secret, mount(std::vector<KeyHolder>{});
  std::filesystem::remove(mount.File("allow-list"));
  std::filesystem::create_directory_symlink(secret.path(), mount.File("..data"));
  for (const char* file : {"server-0.key", "allow-list"}) {
    std::filesystem::create_symlink(std::string("..data/") + file, mount.File(file));
  }
  ASSERT_EQ(chmod(secret.File("server-0.key").c_str(), 0440), 0);
  EXPECT_TRUE(ReadKeys(mount.path(), ServerKey(0)).ok());
  ASSERT_EQ(chmod(secret.File("server-0.key").c_str(), 0444), 0);
  EXPECT_FALSE(ReadKeys(mount.path(), ServerKey(0)).ok());
}

TEST(KeyFilesTest, WhatIsMissingOrWrongIsNamed) {
  const KeyFolder folder;
  EXPECT_THAT(WhyNot(folder, WorkerKey(7)),
              AllOf(HasSubstr("cluster.keys = " + folder.path()), HasSubstr("worker-7.key"),
                    HasSubstr("kumo keys")));
  std::ofstream(folder.File("allow-list"), std::ios::app) << "worker 3\n";
  EXPECT_THAT(WhyNot(folder, ServerKey(0)),
              AllOf(HasSubstr(folder.File("allow-list") + ": line 8 must have three words")));
  std::filesystem::resize_file(folder.File("allow-list"), 2 << 20);
  EXPECT_THAT(WhyNot(folder, ServerKey(0)), HasSubstr("too long for a key file"));
  std::filesystem::remove(folder.File("allow-list"));
  EXPECT_THAT(WhyNot(folder, ServerKey(0)), HasSubstr("there is no allow-list"));
  std::filesystem::create_directory(folder.File("allow-list"));
  EXPECT_THAT(WhyNot(folder, ServerKey(0)), HasSubstr("is not a file"));
  std::filesystem::remove(folder.File("server-0.key"));
  ASSERT_EQ(mkfifo(folder.File("server-0.key").c_str(), 0600), 0);
  EXPECT_THAT(WhyNot(folder, ServerKey(0)), HasSubstr("is not a file"));
}

TEST(KeyFilesTest, WithoutAFolderNoKeysAreWanted) {
  EXPECT_EQ(ReadKeys("", ServerKey(0)).value(), nullptr);
  EXPECT_EQ(ReadWorkerKeys("", "worker-0").value(), nullptr);
}

TEST(KeyFilesTest, AWorkerTakesItsOwnKeyElseTheSharedOne) {
  const KeyFolder both, own({WorkerKey(0)});
  const auto holder = [](const KeyFolder& folder, const char* name) {
    return ReadWorkerKeys(folder.path(), name).value()->holder;
  };
  EXPECT_EQ(holder(both, "worker-3"), WorkerKey(3));
  EXPECT_EQ(holder(both, "worker-4"), kSharedWorkerKey);
  EXPECT_EQ(holder(both, "gpu-host"), kSharedWorkerKey);
  EXPECT_EQ(holder(own, "worker-0"), WorkerKey(0));
  EXPECT_THAT(ReadWorkerKeys(own.path(), "worker-1").status().message(),
              AllOf(HasSubstr("worker-1.key"), HasSubstr("worker.key")));
  EXPECT_THAT(ReadWorkerKeys(own.path(), "gpu-host").status().message(),
              AllOf(HasSubstr("worker.key"), HasSubstr("gpu-host")));
}

}  // namespace
}  // namespace kumo
