#include "common/telemetry/progress.h"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/telemetry/console.h"

namespace kumo {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

RoundProgress SomeProgress() {
  RoundProgress progress;
  progress.round = 812;
  progress.rounds = 9380;
  progress.samples = 103'936;
  progress.total_samples = 1'200'000;
  progress.epoch = 2;
  progress.epochs = 20;
  progress.figures = {{"loss", 0.18321}, {"accuracy", 0.94412}};
  progress.learning_rate = 0.05;
  progress.samples_per_second = 10234;
  progress.compute_ms = 41.23;
  progress.wait_ms = 1.31;
  progress.network_ms = 0.84;
  progress.bytes_sent = 12 << 20;
  progress.bytes_received = 9 << 20;
  progress.workers = 2;
  progress.slowest = "worker-1";
  progress.eta_seconds = 200;
  return progress;
}

TEST(ProgressTest, LineNamesEverythingThatIsKnown) {
  EXPECT_EQ(FormatProgressLine(SomeProgress()),
            "round 812/9380  epoch 2/20  loss 0.1832  accuracy 0.9441  lr 0.05  "
            "10.2 k samples/s  compute 41.2 | wait 1.3 | network 0.8 ms  "
            "sent 12.0 MiB, received 9.00 MiB  workers 2  slowest worker-1  ETA 3 min 20 s");
}

TEST(ProgressTest, LineOfADivergedJobStillReads) {
  RoundProgress progress = SomeProgress();
  progress.figures[0].value = std::nan("");
  progress.eta_seconds.reset();
  progress.slowest.reset();
  const std::string line = FormatProgressLine(progress);
  EXPECT_THAT(line, HasSubstr("loss nan"));
  EXPECT_THAT(line, EndsWith("workers 2  ETA -"));
}

TEST(ProgressTest, LineOfAJobThatKnowsNothingYetSaysNothing) {
  RoundProgress progress;
  progress.rounds = 10;
  progress.workers = 2;
  EXPECT_EQ(FormatProgressLine(progress),
            "round 0/10  epoch 1/1  sent 0 B, received 0 B  workers 2  ETA -");
  progress.wait_ms = 0;
  EXPECT_THAT(FormatProgressLine(progress), HasSubstr("received 0 B  workers"));
  EXPECT_THAT(FormatProgressLine(progress), HasSubstr("epoch 1/1  wait 0.0 ms  sent"));
}

TEST(ProgressTest, AWorkerThatIsSilentIsNamedFirstOfAll) {
  RoundProgress progress = SomeProgress();
  progress.silent = {{"worker-1", 4.9}};
  EXPECT_THAT(FormatProgressLine(progress), HasSubstr("workers 2  worker-1 silent for 4 s  slow"));
  EXPECT_THAT(FormatProgressBar(progress, 50), EndsWith("8.7%  worker-1 silent for 4 s"));
  progress.silent.push_back({"worker-0", 4});
  progress.silent.push_back({"worker-7", 4});
  EXPECT_THAT(FormatProgressLine(progress), HasSubstr("  worker-1 silent for 4 s and 2 more  "));
}

TEST(ProgressTest, BarNeverIsWiderThanTheTerminal) {
  RoundProgress progress = SomeProgress();
  for (int64_t round = 0; round <= progress.rounds; round += 335) {
    progress.round = round;
    progress.samples = round * 128;
    size_t last = 0;
    for (int width = 0; width < 300; ++width) {
      const std::string bar = FormatProgressBar(progress, width);
      ASSERT_LE(bar.size(), static_cast<size_t>(width)) << bar;
      ASSERT_GE(bar.size() + 40, last) << "a wider terminal lost much: " << bar;
      last = bar.size();
    }
  }
}

// A round of the warm-up is a minibatch, one after it a block of them.
TEST(ProgressTest, BarGrowsWithTheSamplesWhateverTheRoundsAre) {
  RoundProgress progress = SomeProgress();
  progress.total_samples = 100;
  int64_t last = -1;
  for (progress.samples = 0; progress.samples <= 100; ++progress.samples) {
    const std::string bar = FormatProgressBar(progress, 100);
    const auto filled = std::count(bar.begin(), bar.end(), '=');
    ASSERT_GE(filled, last);
    last = filled;
  }
  progress.samples = 0;
  EXPECT_THAT(FormatProgressBar(progress, 20), StartsWith("[>"));
  progress.samples = 3;
  progress.round = 42;
  progress.rounds = 100;
  EXPECT_THAT(FormatProgressBar(progress, 50), HasSubstr("  3.0%  round 42/100"));
  progress.samples = 100;
  EXPECT_EQ(FormatProgressBar(progress, 20), "[===========] 100.0%");
}

TEST(ProgressTest, NarrowBarKeepsWhatMattersMost) {
  EXPECT_EQ(FormatProgressBar(SomeProgress(), 36), "[>          ]   8.7%  round 812/9380");
  const std::string bar = FormatProgressBar(SomeProgress(), 79);
  EXPECT_THAT(bar, HasSubstr("loss 0.1832  accuracy 0.9441"));
  EXPECT_THAT(bar, Not(HasSubstr("sent")));
  EXPECT_THAT(FormatProgressBar(SomeProgress(), 290), HasSubstr("sent 12.0 MiB"));
}

TEST(ProgressTest, TableLooksLikeChainers) {
  EpochResult result;
  result.figures = {{"loss", 0.190816}, {"accuracy", 0.9425174}};
  result.validation = {{"loss", 0.0969388}, {"accuracy", 0.9697}};
  result.elapsed_seconds = 5.39;
  // What chainer.training.extensions.PrintReport prints, but for blanks at a line's end.
  EXPECT_EQ(FormatEpochTableHeader(result),
            "epoch       main/loss   validation/main/loss  main/accuracy  "
            "validation/main/accuracy  elapsed_time");
  EXPECT_EQ(FormatEpochTableRow(result),
            "1           0.190816    0.0969388             0.942517       "
            "0.9697                    5.39");
  result.validation.clear();
  EXPECT_EQ(FormatEpochTableRow(result),
            "1           0.190816                          0.942517       "
            "                          5.39");
}

TEST(ProgressTest, TableFitsATerminalOfEightyColumns) {
  EpochResult result;
  result.figures = {{"loss", 0.190816}, {"accuracy", 0.9425174}};
  result.validation = {{"loss", 0.0969388}, {"accuracy", 0.9697}};
  result.elapsed_seconds = 1234.56;
  EXPECT_EQ(FormatEpochTableHeader(result, 80) + "\n" + FormatEpochTableRow(result, 80),
            "                        validation                 validation\n"
            "epoch       main/loss   /main/loss  main/accuracy  /main/accuracy  elapsed_time\n"
            "1           0.190816    0.0969388   0.942517       0.9697          1234.56");
  EXPECT_EQ(FormatEpochTableHeader(result, 99), FormatEpochTableHeader(result));
  EXPECT_EQ(FormatEpochTableRow(result, 99), FormatEpochTableRow(result));
  EXPECT_EQ(FormatEpochTableHeader(result, 98), FormatEpochTableHeader(result, 80));
}

// Of more metrics than two, what does not fit is left out: what is trained on before the validation
// set, and the last one first.
TEST(ProgressTest, TableLeavesOutFurtherMetricsOnlyWhereTheTerminalIsTooNarrow) {
  EpochResult result;
  result.figures = {{"loss", 1}, {"accuracy", 0.5}, {"top5_accuracy", 0.75}, {"perplexity", 2.75}};
  result.validation = {{"loss", 2}, {"accuracy", 0.25}, {"perplexity", 7.5}};
  EXPECT_THAT(FormatEpochTableHeader(result),
              HasSubstr("  main/top5_accuracy  validation/main/top5_accuracy  main/perplexity  "
                        "validation/main/perplexity  elapsed_time"));
  EXPECT_EQ(
      FormatEpochTableRow(result),
      "1           1           2                     0.5            0.25                      "
      "0.75                                               2.75             7.5                 "
      "        0");
  for (int width = 300; width >= 80; --width) {
    const std::string header = FormatEpochTableHeader(result, width);
    const std::string names = header.substr(header.rfind('\n') + 1);
    EXPECT_LE(names.size(), static_cast<size_t>(width)) << names;
    EXPECT_THAT(names, HasSubstr("main/loss"));
    EXPECT_THAT(names, HasSubstr("elapsed_time"));
  }
  EXPECT_THAT(FormatEpochTableHeader(result, 120),
              AllOf(HasSubstr("/main/top5_accuracy  /main/perplexity"),
                    Not(HasSubstr(" main/top5_accuracy")), Not(HasSubstr(" main/perplexity"))));
  EXPECT_THAT(FormatEpochTableHeader(result, 80), Not(HasSubstr("perplexity")));
}

// Training has no figure of them: each has one column, also in epochs that are not evaluated.
TEST(ProgressTest, MetricsOfEvaluationsStandInTheTableBeforeFurtherOnesOfTraining) {
  EpochResult result;
  result.figures = {{"loss", 3}, {"offset_loss", 1}};
  result.evaluated = {"map", "map_11"};
  const std::string header = FormatEpochTableHeader(result);
  EXPECT_THAT(header, HasSubstr("validation/main/offset_loss  validation/main/map  "
                                "validation/main/map_11  elapsed_time"));
  result.validation = {{"loss", 2}, {"offset_loss", 0.5}, {"map", 0.75}, {"map_11", 0.5}};
  EXPECT_EQ(FormatEpochTableHeader(result), header);
  EXPECT_EQ(FormatEpochTableHeader(result, 80) + "\n" + FormatEpochTableRow(result, 80),
            "                        validation  validation  validation\n"
            "epoch       main/loss   /main/loss  /main/map   /main/map_11  elapsed_time\n"
            "1           3           2           0.75        0.5           0");
  EXPECT_THAT(FormatEpochTableHeader(result, 70), Not(HasSubstr("map_11")));
  EXPECT_THAT(FormatEpochTableHeader(result, 70), HasSubstr("/main/map"));
}

TEST(ProgressTest, TheLineNamesEveryMetricAndGivesTheFurtherOnesUpFirst) {
  RoundProgress progress = SomeProgress();
  progress.figures.push_back({"top5_accuracy", 0.99});
  EXPECT_THAT(FormatProgressLine(progress),
              HasSubstr("loss 0.1832  accuracy 0.9441  top5_accuracy 0.9900  lr 0.05"));
  EXPECT_EQ(FormatProgressBar(progress, 79), FormatProgressBar(SomeProgress(), 79));
}

class FakeConsole : public Console {
 public:
  explicit FakeConsole(int width) : width_(width) {}
  int Width() const override { return width_; }
  void Write(std::string_view text) override { written += text; }

  // What a terminal shows after all that was written.
  std::vector<std::string> Screen() const {
    std::vector<std::string> lines(1);
    size_t column = 0;
    for (const char c : written) {
      if (c == '\r') {
        column = 0;
      } else if (c == '\n') {
        lines.emplace_back();
        column = 0;
      } else {
        std::string& line = lines.back();
        if (line.size() <= column) line.resize(column + 1, ' ');
        line[column++] = c;
      }
    }
    for (std::string& line : lines) line.erase(line.find_last_not_of(' ') + 1);
    return lines;
  }

  std::string written;

 private:
  const int width_;
};

TEST(ProgressViewTest, ElsewhereThanOnATerminalThereArePlainLines) {
  FakeConsole console(0);
  {
    ProgressView view(&console);
    view.Show(SomeProgress());
    view.Show(EpochResult{});
    view.Show(EpochResult{});
    view.Show(SomeProgress());
  }
  EXPECT_EQ(console.written.find('\r'), std::string::npos);
  EXPECT_EQ(console.written, FormatProgressLine(SomeProgress()) + "\n" +
                                 FormatEpochTableHeader({}) + "\n" + FormatEpochTableRow({}) +
                                 "\n" + FormatEpochTableRow({}) + "\n" +
                                 FormatProgressLine(SomeProgress()) + "\n");
}

TEST(ProgressViewTest, OnATerminalTheBarIsRedrawnBelowTheTable) {
  FakeConsole console(140);
  RoundProgress longer = SomeProgress();
  longer.slowest = "worker-with-a-long-name";
  {
    ProgressView view(&console);
    view.Show(longer);
    view.Show(SomeProgress());
    EXPECT_THAT(console.Screen(), testing::ElementsAre(FormatProgressBar(SomeProgress(), 139)));
    view.Show(EpochResult{});
    view.ShowLine("hello");
    RoundProgress done = SomeProgress();
    done.samples = done.total_samples;
    view.Show(done);
    EXPECT_THAT(console.Screen(),
                testing::ElementsAre(FormatEpochTableHeader({}), FormatEpochTableRow({}), "hello",
                                     FormatProgressBar(done, 139)));
  }
  EXPECT_THAT(console.Screen(), testing::ElementsAre(FormatEpochTableHeader({}),
                                                     FormatEpochTableRow({}), "hello", ""))
      << "the bar of a job that has ended is gone";
}

TEST(ProgressViewTest, WhatATerminalEchoesWhereTheBarIsGoesWithIt) {
  FakeConsole console(80);
  ProgressView view(&console);
  view.Show(SomeProgress());
  console.Write("^C");
  view.ShowLine("stopping");
  view.RemoveBar();
  EXPECT_THAT(console.Screen(), testing::ElementsAre("stopping", ""));
}

TEST(ProgressViewTest, NoLineIsWiderThanTheTerminal) {
  FakeConsole console(80);
  ProgressView view(&console);
  view.Show(EpochResult{});
  view.Show(SomeProgress());
  view.ShowLine("model   " + std::string(60, 'x') + " " + std::string(40, 'y'));
  for (const std::string& line : console.Screen()) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_THAT(console.Screen(), testing::Contains("  " + std::string(40, 'y')));
}

}  // namespace
}  // namespace kumo
