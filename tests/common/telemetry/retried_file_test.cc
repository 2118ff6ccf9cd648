#include "common/telemetry/retried_file.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class FakeTime : public Clock {
 public:
  TimeUs NowUs() const override { return now; }
  TimeUs now = kSecond;
};

// A file of positions.
struct Disk {
  Status failure;  // of every operation
  std::vector<int64_t> records;
  int opened = 0;
};

class DiskWriter {
 public:
  explicit DiskWriter(Disk* disk) : disk_(disk) {}
  Status Write(int64_t position) {
    if (disk_->failure.ok()) disk_->records.push_back(position);
    return disk_->failure;
  }
  Status Flush() { return disk_->failure; }

 private:
  Disk* const disk_;
};

class RetriedFileTest : public testing::Test {
 protected:
  using File = RetriedFile<DiskWriter>;

  Result<std::unique_ptr<DiskWriter>> Open(int64_t position) {
    ++disk_.opened;
    if (!disk_.failure.ok()) return disk_.failure;
    std::erase_if(disk_.records, [&](int64_t record) { return record > position; });
    return std::make_unique<DiskWriter>(&disk_);
  }
  void Write(int64_t position) {
    file_.Write(position, [position](DiskWriter* writer) { return writer->Write(position); });
  }

  Disk disk_;
  FakeTime clock_;
  std::vector<std::string> said_;
  File file_{"log.jsonl", -1, &clock_, [this](int64_t position) { return Open(position); },
             [this](const std::string& line) { said_.push_back(line); }};
};

TEST_F(RetriedFileTest, OnlyAnErrorThatMayPassIsRetriedFromTheBeginning) {
  disk_.failure = FailedPrecondition("permission denied");
  EXPECT_EQ(file_.Begin().code(), StatusCode::kFailedPrecondition);
  disk_.failure = ResourceExhausted("the disk is full");
  EXPECT_TRUE(file_.Begin().ok());
  EXPECT_EQ(file_.failure().message(), "the disk is full");
}

TEST_F(RetriedFileTest, AFullDiskIsTriedAgainAfterAPauseAndSaidOnce) {
  ASSERT_TRUE(file_.Begin().ok());
  Write(1);
  disk_.failure = ResourceExhausted("the disk is full");
  for (const int64_t position : {2, 3, 4}) Write(position);
  EXPECT_EQ(disk_.opened, 1);
  clock_.now += File::kPause;
  Write(5);
  EXPECT_EQ(disk_.opened, 2);
  EXPECT_THAT(said_, ElementsAre(HasSubstr("warning: the disk is full")));
  EXPECT_THAT(file_.Flush().message(), HasSubstr("4 records of log.jsonl are lost"));
  disk_.failure = OkStatus();
  clock_.now += File::kPause;
  Write(6);
  EXPECT_THAT(disk_.records, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(said_.back(), "log.jsonl: written again, 5 records had waited");
  EXPECT_TRUE(file_.failure().ok());
  EXPECT_TRUE(file_.Flush().ok());
}

TEST_F(RetriedFileTest, OfMoreRecordsThanMayWaitTheOldestAreLostAndCounted) {
  disk_.failure = ResourceExhausted("the disk is full");
  ASSERT_TRUE(file_.Begin().ok());
  const auto most = static_cast<int64_t>(File::kMostWaiting);
  for (int64_t position = 1; position <= most + 3; ++position) Write(position);
  EXPECT_THAT(file_.Flush().message(),
              HasSubstr(std::to_string(most + 3) + " records of log.jsonl are lost"));
  disk_.failure = OkStatus();
  clock_.now += File::kPause;
  Write(most + 4);
  EXPECT_EQ(disk_.records.size(), static_cast<size_t>(most) + 1);
  EXPECT_EQ(disk_.records.front(), 4);
  EXPECT_THAT(said_.back(), HasSubstr(", and 3 older ones are lost"));
}

}  // namespace
}  // namespace kumo
