#include "common/telemetry/console.h"

#include <fcntl.h>
#include <pty.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

// As after `kumo launch FILE | head`.
TEST(FdConsole, AClosedPipeIsToldOnceAndStopsNobody) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  FdConsole console(ends[1]);
  close(ends[0]);
  testing::internal::CaptureStderr();
  console.Write("round 1\n");
  console.Write("round 2\n");
  const std::string log = testing::internal::GetCapturedStderr();
  const size_t told = log.find("stdout is a closed pipe");
  EXPECT_NE(told, std::string::npos) << log;
  EXPECT_EQ(log.find("stdout is a closed pipe", told + 1), std::string::npos);
  close(ends[1]);
  std::signal(SIGPIPE, before);
}

// A pipe of one page, which nobody reads until told.
class PausedReader {
 public:
  PausedReader() {
    EXPECT_EQ(pipe(ends_), 0);
    fcntl(ends_[1], F_SETPIPE_SZ, 4096);
    fcntl(ends_[0], F_SETFL, O_NONBLOCK);
  }
  ~PausedReader() {
    close(ends_[0]);
    close(ends_[1]);
  }
  int fd() const { return ends_[1]; }
  std::string Read() {
    std::string text;
    char bytes[4096];
    for (ssize_t n = 0; (n = read(ends_[0], bytes, sizeof(bytes))) > 0;) text.append(bytes, n);
    return text;
  }

 private:
  int ends_[2] = {-1, -1};
};

std::string RoundLine(int number) { return "round " + std::to_string(number) + "\n"; }

// As in `kumo launch FILE | less`: the write of a line would wait for the reader.
TEST(FdConsole, AReaderThatPausesStopsNobodyAndGetsAllLinesThatAreHeld) {
  PausedReader reader;
  FdConsole console(reader.fd());
  std::string expected, got;
  for (int i = 0; i < 2000; ++i) {
    console.Write(RoundLine(i));
    expected += RoundLine(i);
  }
  for (int i = 2000; i < 2020; ++i) {
    got += reader.Read();
    console.Write(RoundLine(i));
    expected += RoundLine(i);
  }
  got += reader.Read();
  console.Finish();
  got += reader.Read();
  EXPECT_TRUE(got == expected) << got.size() << " of " << expected.size() << " bytes";
  EXPECT_EQ(fcntl(reader.fd(), F_GETFL) & O_NONBLOCK, 0) << "other programs share the descriptor";
}

TEST(FdConsole, LinesBeyondTheHeldOnesAreDroppedAndCounted) {
  PausedReader reader;
  FdConsole console(reader.fd());
  constexpr int kLines = 40'000;
  for (int i = 0; i < kLines; ++i) console.Write(RoundLine(i));
  std::string got;
  for (int i = 0; i < 100; ++i) {
    got += reader.Read();
    console.Write(i == 99 ? "the last line\n" : "");
  }
  got += reader.Read();
  const size_t note = got.find('(');
  ASSERT_NE(note, std::string::npos);
  EXPECT_LE(note, FdConsole::kMostHeld + 4096);
  const auto lines = std::count(got.begin(), got.begin() + static_cast<long>(note), '\n');
  EXPECT_EQ(got.substr(note), "(" + std::to_string(kLines - lines) +
                                  " lines of progress were dropped, as the output was not "
                                  "read)\nthe last line\n");
}

TEST(FdConsole, ATerminalThatIsStoppedStopsNobody) {
  int master = -1, terminal = -1;
  ASSERT_EQ(openpty(&master, &terminal, nullptr, nullptr, nullptr), 0);
  FdConsole console(terminal);
  ASSERT_EQ(tcflow(terminal, TCOOFF), 0);  // Ctrl-S
  for (int i = 0; i < 100'000; ++i) console.Write(RoundLine(i));
  ASSERT_EQ(tcflow(terminal, TCOON), 0);  // nobody reads, too: the terminal's buffer fills
  for (int i = 0; i < 100'000; ++i) console.Write(RoundLine(i));
  close(master);
  close(terminal);
}

}  // namespace
}  // namespace kumo
