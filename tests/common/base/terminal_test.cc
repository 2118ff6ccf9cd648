#include "common/base/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <sstream>
#include <vector>

#include "common/base/rng.h"

namespace kumo {
namespace {

// A terminal of so many columns; 0: one that does not say.
class Terminal {
 public:
  explicit Terminal(int columns) {
    winsize size{};
    size.ws_row = 24;
    size.ws_col = static_cast<unsigned short>(columns);
    EXPECT_EQ(openpty(&control_, &fd_, nullptr, nullptr, &size), 0);
  }
  ~Terminal() {
    close(fd_);
    close(control_);
  }
  int fd() const { return fd_; }

 private:
  int control_ = -1, fd_ = -1;
};

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string WithoutBlanks(std::string text) {
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
  return text;
}

TEST(TerminalColumns, AreWhatTheTerminalSaysOrTheEnvironmentWants) {
  EXPECT_EQ(TerminalColumns(Terminal(132).fd()), 132);
  EXPECT_EQ(TerminalColumns(Terminal(132).fd(), "100"), 100);
  EXPECT_EQ(TerminalColumns(Terminal(132).fd(), "wide"), 132);
  EXPECT_EQ(TerminalColumns(Terminal(132).fd(), "-5"), 132);
  EXPECT_EQ(TerminalColumns(Terminal(0).fd()), 80);
  EXPECT_EQ(TerminalColumns(Terminal(1).fd()), 20);
}

TEST(TerminalColumns, AFileHasNoLimitWhateverTheEnvironmentWants) {
  const int fd = open("/dev/null", O_WRONLY);
  EXPECT_EQ(TerminalColumns(fd), 0);
  EXPECT_EQ(TerminalColumns(fd, "100"), 0);
  close(fd);
}

TEST(Folded, LongLinesAreBrokenAtBlanksAndKeepTheirIndentation) {
  EXPECT_EQ(Folded("  one two three four five six", 20), "  one two three four\n  five six");
  EXPECT_EQ(Folded("note  one two three four five", 20, 6), "note  one two three\n      four five");
  EXPECT_EQ(Folded("short\n\nlines\n", 20), "short\n\nlines\n");
  EXPECT_EQ(Folded(std::string(50, 'x'), 0), std::string(50, 'x'));
}

TEST(Folded, AWordThatIsTooLongIsCut) {
  EXPECT_EQ(Folded("a " + std::string(30, 'x'), 20),
            "a\n" + std::string(20, 'x') + "\n" + std::string(10, 'x'));
}

TEST(Folded, NoLineIsLongerAndNoCharacterIsLost) {
  Rng rng(7, RngPurpose::kTest);
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (uint64_t n = rng.NextBelow(60); n > 0; --n) {
      constexpr const char* kParts[] = {" ", "  ", "a", "bc", "\u00fc", "\n", "xxxxxxxxxxxxx"};
      text += kParts[rng.NextBelow(7)];
    }
    const int columns = 20 + static_cast<int>(rng.NextBelow(30));
    const int hanging = static_cast<int>(rng.NextBelow(8));
    const std::string folded = Folded(text, columns, hanging);
    for (const std::string& line : LinesOf(folded)) ASSERT_LE(ColumnsOf(line), columns) << folded;
    ASSERT_EQ(WithoutBlanks(folded), WithoutBlanks(text));
  }
}

TEST(Shortened, KeepsTheBeginningAndMoreOfTheEnd) {
  EXPECT_EQ(Shortened("/data/mnist/train-images", 12), "/da...images");
  EXPECT_EQ(Shortened("fits", 4), "fits");
  EXPECT_EQ(ColumnsOf(Shortened("\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc", 6)), 6);
  EXPECT_EQ(Shortened("abcdef", 3), "...");
}

}  // namespace
}  // namespace kumo
