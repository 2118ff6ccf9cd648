// A folder that goes away again.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include <unistd.h>

namespace kumo::test {

// A folder of its own for each test and process, empty at the start and removed at the end: CTest
// runs the tests of one binary side by side.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    std::string name = std::string("kumo-") + info->test_suite_name() + "-" + info->name() + "-" +
                       std::to_string(getpid());
    for (char& c : name) {
      if (c == '/') c = '-';
    }
    path_ = std::filesystem::path(testing::TempDir()) / name;
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  std::string path() const { return path_.string(); }
  std::string operator/(std::string_view name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace kumo::test
