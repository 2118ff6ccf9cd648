// A folder of keys for a test, removed with it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <glog/logging.h>
#include <unistd.h>

#include "common/transport/key_files.h"

namespace kumo {

class KeyFolder {
 public:
  explicit KeyFolder(const std::vector<KeyHolder>& holders = {ServerKey(0), ServerKey(1),
                                                              WorkerKey(0), WorkerKey(3),
                                                              kSharedWorkerKey, kClientKey}) {
    std::string name = testing::TempDir() + "keys-XXXXXX";
    CHECK(mkdtemp(name.data()) != nullptr);
    path_ = name;
    Add(holders);
  }
  ~KeyFolder() { std::filesystem::remove_all(path_); }
  KeyFolder(const KeyFolder&) = delete;
  KeyFolder& operator=(const KeyFolder&) = delete;

  std::vector<KeyHolder> Add(const std::vector<KeyHolder>& holders) const {
    auto added = AddKeys(path_, holders);
    CHECK(added.ok()) << added.status().message();
    return *added;
  }
  SharedKeys Of(const KeyHolder& holder) const {
    auto keys = ReadKeys(path_, holder);
    CHECK(keys.ok()) << keys.status().message();
    return *keys;
  }
  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace kumo
