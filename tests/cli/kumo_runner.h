// Runs the real `kumo` with fake servers and workers in a folder of its own.
//
// Single-threaded. Every wait has a limit, after which the test fails.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace kumo {

class KumoTest : public ::testing::Test {
 protected:
  KumoTest();
  ~KumoTest() override;  // kills what the test left running

  struct Ended {
    int code = -1;          // 128 + signal when killed
    std::string out, err;   // without a terminal
    std::string last_line;  // of err
  };

  // What the fake process `name` does: one line per start (fake_process.cc).
  void Script(const std::string& name, const std::string& lines);
  // Starts kumo with `args`; --bin-dir is added where `fakes`.
  void Start(std::vector<std::string> args, bool fakes = true);
  // The same on a terminal of its own, so many columns wide.
  void StartOnTerminal(std::vector<std::string> args, int columns, bool fakes = true);
  // What stands on it so far, with "\r\n" as its line ends.
  const std::string& Screen() const;
  // The person presses keys: "\x03" is Ctrl-C.
  void Type(const std::string& keys);
  Ended Wait();
  Ended Run(std::vector<std::string> args, bool fakes = true);
  void Signal(int signal);

  // Pids of the starts of a fake process, in order.
  std::vector<pid_t> Starts(const std::string& name) const;
  std::string Read(const std::string& name) const;  // a file of the folder, "" without it
  std::vector<std::string> Lines(const std::string& name) const;
  // Polls until `condition` holds, and takes in what comes on the terminal; fails the test after 30
  // seconds.
  void Await(const std::string& what, const std::function<bool()>& condition) const;
  // Every process that any fake ever was has ended.
  bool NothingRuns() const;

  std::string folder_;
  std::string experiment_;  // a valid file in it

 private:
  // In the child: becomes kumo.
  [[noreturn]] void BecomeKumo(std::vector<std::string> args, bool fakes) const;
  void ReadTerminal() const;

  pid_t pid_ = -1;
  int terminal_ = -1;           // its other end
  mutable std::string screen_;  // what came from there
};

}  // namespace kumo
