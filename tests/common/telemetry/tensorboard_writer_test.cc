#include "common/telemetry/tensorboard_writer.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/tensorboard.pb.h"
#include "tests/common/base/memory_file_system.h"
#include "tests/common/telemetry/event_reader.h"

namespace kumo {
namespace {

using test::ReadEvents;

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

// Prints what the plugin hparams would show of the runs below a folder: a line for each with its
// status and start, then its hyperparameters and its metrics.
constexpr char kReadHparams[] = R"(
import sys
from google.protobuf import json_format
from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
from tensorboard.context import RequestContext
from tensorboard.plugins.base_plugin import TBContext
from tensorboard.plugins.hparams import api_pb2
from tensorboard.plugins.hparams.backend_context import Context
from tensorboard.plugins.hparams.list_session_groups import Handler
multiplexer = EventMultiplexer().AddRunsFromDirectory(sys.argv[1])
multiplexer.Reload()
context = Context(TBContext(data_provider=MultiplexerDataProvider(multiplexer, sys.argv[1])))
asked = api_pb2.ListSessionGroupsRequest(
    start_index=0, slice_size=100, aggregation_type=api_pb2.AGGREGATION_AVG,
    allowed_statuses=[api_pb2.STATUS_UNKNOWN, api_pb2.STATUS_RUNNING, api_pb2.STATUS_SUCCESS])
asked.col_params.add(metric=api_pb2.MetricName(tag="validation/main/accuracy"))
answer = Handler(RequestContext(), context, "", asked).run()
for group in sorted(answer.session_groups, key=lambda group: group.name):
    session = group.sessions[0]
    print(session.name, api_pb2.Status.Name(session.status), session.start_time_secs)
    for name in sorted(group.hparams):
        print(" ", name, json_format.MessageToJson(group.hparams[name]))
    for metric in sorted(session.metric_values, key=lambda metric: metric.name.tag):
        print(" ", metric.name.tag, "%.6g" % metric.value, "at", metric.training_step)
)";

constexpr char kReadPictures[] = R"(
import sys
from tensorboard.backend.event_processing import event_accumulator
events = event_accumulator.EventAccumulator(sys.argv[1])
events.Reload()
for tag in events.Tags()["images"]:
    for one in events.Images(tag):
        print(f"{tag} {one.step} {one.width}x{one.height} {len(one.encoded_image_string)} bytes")
)";

constexpr char kReadTexts[] = R"(
import sys
from tensorboard.backend.event_processing import event_accumulator
events = event_accumulator.EventAccumulator(sys.argv[1])
events.Reload()
for tag in events.PluginTagToContent("text"):
    for event in events.Tensors(tag):
        print(tag, event.step, event.tensor_proto.string_val[0].decode(), end="")
)";

// TensorBoard itself reads what a test has written into a folder of its own.
class RealTensorBoardTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* configured = std::getenv("KUMO_TENSORBOARD_PYTHON");
    python_ = configured != nullptr ? configured : "python3";
    if (!OutputOf(python_, {"-c", "import tensorboard.plugins.hparams.list_session_groups"})) {
      GTEST_SKIP() << python_ << " cannot import tensorboard (set KUMO_TENSORBOARD_PYTHON to one "
                   << "that can)";
    }
    directory_ = JoinPath(testing::TempDir(), "kumo-tensorboard-test-XXXXXX");
    ASSERT_NE(::mkdtemp(directory_.data()), nullptr);
  }
  void TearDown() override {
    if (!directory_.empty()) std::filesystem::remove_all(directory_);
  }
  std::unique_ptr<TensorBoardWriter> Writer(const std::string& run, double wall_time_s,
                                            int64_t first_step) {
    auto writer =
        TensorBoardWriter::Create(files_, JoinPath(directory_, run), "h", wall_time_s, first_step);
    EXPECT_TRUE(writer.ok()) << writer.status().message();
    return std::move(writer).value();
  }
  std::optional<std::string> Read(const char* script) {
    return OutputOf(python_, {"-c", script, directory_});
  }

  PosixFileSystem files_;
  std::string python_;
  std::string directory_;
};

TEST_F(RealTensorBoardTest, AnInterruptedAndResumedRunIsReadAsOne) {
  auto writer = Writer("", 1700000000, 0);
  for (int step = 1; step <= 4; ++step) {
    const double value = 1.0 / step;
    ASSERT_TRUE(writer->Write(1700000000.25 + step, step, {{"a", value}, {"b/c", 10}}).ok());
  }
  // Goes on after step 2: what the first file says about 3 and 4 is forgotten.
  writer = Writer("", 1700000100, 3);
  ASSERT_TRUE(writer->Write(1700000103, 3, {{"a", 77}}).ok());
  ASSERT_TRUE(writer->Flush().ok());
  EXPECT_EQ(Read(kReadWithTensorBoard),
            "a 1 1 1700000001.25\n"
            "a 2 0.5 1700000002.25\n"
            "a 3 77 1700000103.00\n"
            "b/c 1 10 1700000001.25\n"
            "b/c 2 10 1700000002.25\n");
}

TEST_F(RealTensorBoardTest, HyperparametersStandBesideTheLastFiguresOfEachRun) {
  for (const bool first : {true, false}) {
    const std::vector<Hyperparameter> hyperparameters = {
        {"block.nesterov", first},
        {"schedule.learning_rate", first ? 0.1 : 0.05},
        {"sync.push_codec", std::string(first ? "1bit" : "fp32")}};
    auto writer = Writer(first ? "one" : "two", 1000, 0);
    ASSERT_TRUE(writer->WriteHyperparameters(1000, hyperparameters).ok());
    ASSERT_TRUE(writer->Write(1001, 640, {{"validation/main/accuracy", 0.5}}).ok());
    ASSERT_TRUE(writer->Write(1002, 1280, {{"validation/main/accuracy", 0.75}}).ok());
    if (first) {
      ASSERT_TRUE(writer->WriteDone(1003).ok());
    }
    ASSERT_TRUE(writer->Flush().ok());
  }
  EXPECT_EQ(Read(kReadHparams),
            "one STATUS_SUCCESS 1000.0\n"
            "  block.nesterov true\n"
            "  schedule.learning_rate 0.1\n"
            "  sync.push_codec \"1bit\"\n"
            "  validation/main/accuracy 0.75 at 1280\n"
            "two STATUS_UNKNOWN 1000.0\n"
            "  block.nesterov false\n"
            "  schedule.learning_rate 0.05\n"
            "  sync.push_codec \"fp32\"\n"
            "  validation/main/accuracy 0.75 at 1280\n");
}

TEST_F(RealTensorBoardTest, ATextIsReadAsOne) {
  auto writer = Writer("", 1000, 0);
  ASSERT_TRUE(writer->WriteText(1001, 640, "settings/changed", "- `job.epochs`: 2 -> 4\n").ok());
  ASSERT_TRUE(writer->Flush().ok());
  EXPECT_EQ(Read(kReadTexts), "settings/changed 640 - `job.epochs`: 2 -> 4\n");
}

TEST_F(RealTensorBoardTest, APictureIsReadAsOne) {
  auto writer = Writer("", 1000, 0);
  const std::string png("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\2\0\0\0\7, and so on", 36);
  ASSERT_TRUE(writer->WritePicture(1001, 640, "validation/objects", png).ok());
  ASSERT_TRUE(writer->Flush().ok());
  EXPECT_EQ(Read(kReadPictures), "validation/objects 640 258x7 36 bytes\n");
}

TEST(PngSizeTest, IsThatOfTheFirstChunk) {
  std::string png("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\2\0\0\0\7", 24);
  ASSERT_TRUE(PngSizeOf(png));
  EXPECT_EQ(PngSizeOf(png)->width, 258u);
  EXPECT_EQ(PngSizeOf(png)->height, 7u);
  for (size_t length = 0; length < png.size(); ++length) {
    EXPECT_FALSE(PngSizeOf(png.substr(0, length))) << length;
  }
  for (const size_t place : {0, 1, 12, 16}) {
    std::string other = png;
    other[place] = '\x7f';
    EXPECT_FALSE(PngSizeOf(other)) << place;
  }
  png.replace(20, 4, 4, '\0');
  EXPECT_FALSE(PngSizeOf(png)) << "no height";
}

// Why a new run removes what an earlier one has left (RemoveEventFiles).
TEST_F(RealTensorBoardTest, OfHyperparametersTheFirstThatAFileSaysCount) {
  for (const double rate : {0.1, 0.2}) {
    auto writer = Writer("", 1000 + rate, 0);
    ASSERT_TRUE(writer->WriteHyperparameters(1000, std::vector<Hyperparameter>{{"lr", rate}}).ok());
  }
  EXPECT_THAT(Read(kReadHparams).value_or(""), testing::HasSubstr("lr 0.1\n"));
  ASSERT_TRUE(RemoveEventFiles(files_, directory_).ok());
  auto writer = Writer("", 1002, 0);
  ASSERT_TRUE(writer->WriteHyperparameters(1002, std::vector<Hyperparameter>{{"lr", 0.2}}).ok());
  EXPECT_THAT(Read(kReadHparams).value_or(""), testing::HasSubstr("lr 0.2\n"));
}

}  // namespace
}  // namespace kumo
