#include "common/telemetry/tensorboard_writer.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/crc32c.h"
#include "proto/tensorboard.pb.h"
#include "tests/common/memory_file_system.h"

namespace kumo {
namespace {

// A small reader of TFRecord, written from the format's definition. Fails the test on any damage.
std::vector<tensorboard::Event> ReadEvents(std::string_view file) {
  const auto word = [&](size_t at, size_t bytes) {
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; ++i) {
      value |= uint64_t{static_cast<unsigned char>(file[at + i])} << (8 * i);
    }
    return value;
  };
  const auto masked_crc = [&](size_t at, size_t bytes) {
    const uint32_t crc = Crc32c(AsBytes(file.substr(at, bytes)));
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
  };
  std::vector<tensorboard::Event> events;
  size_t at = 0;
  while (at < file.size()) {
    if (file.size() - at < 12) {
      ADD_FAILURE() << "half a record at " << at;
      break;
    }
    const uint64_t length = word(at, 8);
    EXPECT_EQ(word(at + 8, 4), masked_crc(at, 8));
    if (file.size() - at - 12 < length + 4) {
      ADD_FAILURE() << "half a record at " << at;
      break;
    }
    EXPECT_EQ(word(at + 12 + length, 4), masked_crc(at + 12, length));
    EXPECT_TRUE(
        events.emplace_back().ParseFromArray(file.data() + at + 12, static_cast<int>(length)));
    at += 16 + length;
  }
  return events;
}

TEST(TensorBoardWriterTest, RecordsAreFramedAndHoldWhatWasWritten) {
  MemoryFileSystem files;
  auto writer = TensorBoardWriter::Create(files, "/tb", "host-a", 1700000000.5, 7);
  ASSERT_TRUE(writer.ok()) << writer.status().message();
  EXPECT_EQ((*writer)->path(), "/tb/events.out.tfevents.1700000000.host-a.0");
  ASSERT_TRUE((*writer)->Write(1700000001.5, 8, {{"train/loss", 0.25}, {"lr", 1e-3}}).ok());
  ASSERT_TRUE((*writer)->Write(1700000002.5, 9, {{"train/loss", std::nan("")}}).ok());

  const auto events = ReadEvents(*files.Contents((*writer)->path()));
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].file_version(), "brain.Event:2");
  EXPECT_EQ(events[1].session_log().status(), tensorboard::SessionLog::START);
  EXPECT_EQ(events[1].step(), 7);
  EXPECT_EQ(events[2].wall_time(), 1700000001.5);
  EXPECT_EQ(events[2].step(), 8);
  ASSERT_EQ(events[2].summary().value_size(), 2);
  EXPECT_EQ(events[2].summary().value(0).tag(), "train/loss");
  EXPECT_EQ(events[2].summary().value(0).simple_value(), 0.25f);
  EXPECT_EQ(events[2].summary().value(1).simple_value(), 1e-3f);
  EXPECT_TRUE(std::isnan(events[3].summary().value(0).simple_value()));
}

TEST(TensorBoardWriterTest, FramesOfAllLengthsAreRead) {
  for (const size_t n : {0, 1, 7, 8, 255, 256, 70000}) {
    const std::string record = FrameRecord(std::string(n, 'x'));
    EXPECT_EQ(record.size(), n + 16);
    uint64_t length;
    std::memcpy(&length, record.data(), 8);
    EXPECT_EQ(length, n);
  }
  EXPECT_EQ(ReadEvents(FrameRecord("") + FrameRecord("")).size(), 2u);
}

TEST(TensorBoardWriterTest, SecondRunInTheSameSecondGetsAFileOfItsOwn) {
  MemoryFileSystem files;
  auto first = TensorBoardWriter::Create(files, "/tb", "strange/../host\n", 5, 0);
  auto second = TensorBoardWriter::Create(files, "/tb", "strange/../host\n", 5, 0);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ((*first)->path(), "/tb/events.out.tfevents.0000000005.strange_.._host_.0");
  EXPECT_EQ((*second)->path(), "/tb/events.out.tfevents.0000000005.strange_.._host_.1");
}

TEST(TensorBoardWriterTest, FullDiskIsReported) {
  for (int n = 0; n < 5; ++n) {
    MemoryFileSystem files;
    files.FailFrom(n);
    EXPECT_EQ(TensorBoardWriter::Create(files, "/tb", "h", 5, 0).status().code(),
              StatusCode::kResourceExhausted)
        << n;
  }
}

// Runs `program` with `arguments`; its standard output, or nothing when it does not end with 0.
std::optional<std::string> OutputOf(const std::string& program,
                                    std::vector<std::string> arguments) {
  int ends[2];
  if (::pipe(ends) != 0) return std::nullopt;
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], 1);
    std::vector<char*> argv = {const_cast<char*>(program.c_str())};
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    ::execvp(program.c_str(), argv.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  std::string output;
  char piece[4096];
  for (ssize_t n; (n = ::read(ends[0], piece, sizeof(piece))) > 0;) output.append(piece, n);
  ::close(ends[0]);
  int result = 0;
  ::waitpid(child, &result, 0);
  if (!WIFEXITED(result) || WEXITSTATUS(result) != 0) return std::nullopt;
  return output;
}

// Prints "tag step value wall_time" of each scalar that TensorBoard would draw.
constexpr char kReadWithTensorBoard[] = R"(
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
accumulator = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
accumulator.Reload()
for tag in sorted(accumulator.Tags()["scalars"]):
    for event in accumulator.Scalars(tag):
        print(tag, event.step, "%.6g" % event.value, "%.2f" % event.wall_time)
)";

TEST(TensorBoardWriterTest, RealTensorBoardReadsAnInterruptedAndResumedRun) {
  const char* configured = std::getenv("KUMO_TENSORBOARD_PYTHON");
  const std::string python = configured != nullptr ? configured : "python3";
  if (!OutputOf(python, {"-c", "import tensorboard.backend.event_processing.event_accumulator"})) {
    GTEST_SKIP() << python << " cannot import tensorboard (set KUMO_TENSORBOARD_PYTHON to one that "
                 << "can)";
  }
  std::string directory = JoinPath(testing::TempDir(), "kumo-tensorboard-test-XXXXXX");
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  PosixFileSystem files;
  {
    auto writer = TensorBoardWriter::Create(files, directory, "h", 1700000000, 0);
    ASSERT_TRUE(writer.ok()) << writer.status().message();
    for (int step = 1; step <= 4; ++step) {
      const double value = 1.0 / step;
      ASSERT_TRUE((*writer)->Write(1700000000.25 + step, step, {{"a", value}, {"b/c", 10}}).ok());
    }
  }
  {
    // Goes on after step 2: what the first file says about 3 and 4 is forgotten.
    auto writer = TensorBoardWriter::Create(files, directory, "h", 1700000100, 3);
    ASSERT_TRUE(writer.ok()) << writer.status().message();
    ASSERT_TRUE((*writer)->Write(1700000103, 3, {{"a", 77}}).ok());
    ASSERT_TRUE((*writer)->Flush().ok());
  }
  const std::optional<std::string> output =
      OutputOf(python, {"-c", kReadWithTensorBoard, directory});
  std::filesystem::remove_all(directory);
  ASSERT_TRUE(output);
  EXPECT_EQ(*output,
            "a 1 1 1700000001.25\n"
            "a 2 0.5 1700000002.25\n"
            "a 3 77 1700000103.00\n"
            "b/c 1 10 1700000001.25\n"
            "b/c 2 10 1700000002.25\n");
}

}  // namespace
}  // namespace kumo
