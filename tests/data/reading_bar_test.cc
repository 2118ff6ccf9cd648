#include "data/reading_bar.h"

#include <string>

#include <gtest/gtest.h>

namespace kumo {
namespace {

TEST(ReadingBarTest, ShowsTheShareAndTheTimeLeft) {
  const std::string blanks(15, ' '), cells(15, '=');
  EXPECT_EQ(ReadingBarText(0, 40, 5 * kSecond),
            "reading [" + blanks + blanks + "] 0 of 40 samples");
  EXPECT_EQ(ReadingBarText(20, 40, kSecond / 2),
            "reading [" + cells + blanks + "] 20 of 40 samples");
  EXPECT_EQ(ReadingBarText(20, 40, 5 * kSecond),
            "reading [" + cells + blanks + "] 20 of 40 samples, ETA 5.0 s");
  EXPECT_EQ(ReadingBarText(40, 40, kSecond / 2),
            "reading [" + cells + cells + "] 40 of 40 samples");
}

TEST(ReadingBarTest, WritesNothingUnlessStderrIsATerminal) {
  testing::internal::CaptureStderr();
  {
    ReadingBar bar;
    bar.Show(0, 0);
    bar.Show(1, 2);
    bar.Remove();
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace kumo
