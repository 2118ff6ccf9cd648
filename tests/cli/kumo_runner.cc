#include "tests/cli/kumo_runner.h"

#include <fcntl.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace kumo {
namespace {

// Gone, or dead and not yet reaped by whoever adopted it.
bool Runs(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const size_t name_end = text.rfind(')');
  if (!file || name_end == std::string::npos) return false;
  const char state = text[name_end + 2];
  return state != 'Z' && state != 'X';
}

void Redirect(const std::string& path, int to) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  dup2(fd, to);
}

}  // namespace

KumoTest::KumoTest() {
  const std::string pattern = ::testing::TempDir() + "kumo_test_XXXXXX";
  std::vector<char> name(pattern.begin(), pattern.end());
  name.push_back('\0');
  folder_ = mkdtemp(name.data());
  std::filesystem::create_directory(folder_ + "/bin");
  for (const char* binary : {"kumo-server", "kumo-worker"}) {
    std::filesystem::create_symlink(KUMO_FAKE_PROCESS, folder_ + "/bin/" + binary);
  }
  experiment_ = folder_ + "/x.conf";
  std::ofstream(experiment_) << "[network]\nfile = net.pbtxt\n[output]\ndirectory = " << folder_
                             << "/out\n";
}

KumoTest::~KumoTest() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (terminal_ >= 0) close(terminal_);
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    if (entry.path().extension() != ".starts") continue;
    for (const pid_t pid : Starts(entry.path().stem().string())) {
      if (Runs(pid)) kill(pid, SIGKILL);
    }
  }
  std::filesystem::remove_all(folder_);
}

void KumoTest::Script(const std::string& name, const std::string& lines) {
  std::ofstream(folder_ + "/" + name + ".do") << lines << "\n";
}

void KumoTest::BecomeKumo(std::vector<std::string> args, bool fakes) const {
  args.insert(args.begin(), KUMO_BINARY);
  if (fakes) args.insert(args.end(), {"--bin-dir", folder_ + "/bin"});
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  argv.push_back(nullptr);
  setenv("KUMO_FAKE_DIR", folder_.c_str(), 1);
  setenv("KUMO_TERMINATION_LOG", (folder_ + "/termination-log").c_str(), 1);
  unsetenv("KUMO_DATA");
  unsetenv("COLUMNS");
  execv(argv[0], argv.data());
  _exit(127);
}

void KumoTest::Start(std::vector<std::string> args, bool fakes) {
  pid_ = fork();
  ASSERT_GE(pid_, 0);
  if (pid_ > 0) return;
  Redirect(folder_ + "/kumo.out", STDOUT_FILENO);
  Redirect(folder_ + "/kumo.err", STDERR_FILENO);
  BecomeKumo(std::move(args), fakes);
}

void KumoTest::StartOnTerminal(std::vector<std::string> args, int columns, bool fakes) {
  winsize size{};
  size.ws_row = 24;
  size.ws_col = static_cast<unsigned short>(columns);
  if (terminal_ >= 0) close(terminal_);
  screen_.clear();
  pid_ = forkpty(&terminal_, nullptr, nullptr, &size);
  ASSERT_GE(pid_, 0);
  if (pid_ == 0) BecomeKumo(std::move(args), fakes);
  fcntl(terminal_, F_SETFL, O_NONBLOCK);
}

const std::string& KumoTest::Screen() const {
  ReadTerminal();
  return screen_;
}

void KumoTest::Type(const std::string& keys) {
  ASSERT_EQ(write(terminal_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
}

// Ends with EIO when nobody has the terminal open any more.
void KumoTest::ReadTerminal() const {
  if (terminal_ < 0) return;
  char bytes[4096];
  ssize_t n;
  while ((n = read(terminal_, bytes, sizeof(bytes))) > 0) screen_.append(bytes, n);
}

KumoTest::Ended KumoTest::Wait() {
  int status = 0;
  Await("the end of kumo", [&] { return waitpid(pid_, &status, WNOHANG) == pid_; });
  pid_ = -1;
  Ended ended;
  ended.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  ended.out = Read("kumo.out");
  ended.err = Read("kumo.err");
  const std::vector<std::string> lines = Lines("kumo.err");
  if (!lines.empty()) ended.last_line = lines.back();
  return ended;
}

KumoTest::Ended KumoTest::Run(std::vector<std::string> args, bool fakes) {
  Start(std::move(args), fakes);
  return Wait();
}

void KumoTest::Signal(int signal) { ASSERT_EQ(kill(pid_, signal), 0); }

std::vector<pid_t> KumoTest::Starts(const std::string& name) const {
  std::vector<pid_t> pids;
  for (const std::string& line : Lines(name + ".starts")) pids.push_back(std::stoi(line));
  return pids;
}

std::string KumoTest::Read(const std::string& name) const {
  std::ifstream file(folder_ + "/" + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> KumoTest::Lines(const std::string& name) const {
  std::istringstream text(Read(name));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

void KumoTest::Await(const std::string& what, const std::function<bool()>& condition) const {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    ReadTerminal();
    if (std::chrono::steady_clock::now() > limit) {
      FAIL() << "waited 30 s for " << what << "; so far: " << Read("kumo.err") << screen_;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

bool KumoTest::NothingRuns() const {
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    if (entry.path().extension() != ".starts") continue;
    for (const pid_t pid : Starts(entry.path().stem().string())) {
      if (Runs(pid)) return false;
    }
  }
  return true;
}

}  // namespace kumo
