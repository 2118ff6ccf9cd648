// Plays kumo-server and kumo-worker: does what the files in the folder $KUMO_FAKE_DIR say.
//
// Its name is "server-<--index>", "worker-<n>" (--name), or "worker" for --check and --evaluate.
// Line k of <name>.do tells what the k-th start does (the last line repeats; no file: "exit 0"):
//   exit CODE [WORDS]                say WORDS on stderr (server-0: and in the
//                                    termination log) and end
//   die SIGNAL                       be killed by a signal
//   run CODE                         run until SIGTERM, then end with CODE
//   stop CODE WORDS                  the same, then log a warning and say WORDS as "exit" does
//   warn CODE WORDS                  log WORDS as a warning, then as "run"
//   mention CODE WORDS               log WORDS as a warning and end
//   ignore                           run and ignore SIGTERM
//   await NAME N CODE                end with CODE when NAME has been started N times
//   follow NAME CODE                 end with CODE when NAME has received SIGTERM
// Each start appends its pid to <name>.starts and its arguments to <name>.args, each SIGTERM a line
// to <name>.terms. Whatever happens it ends by itself after a minute.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

volatile std::sig_atomic_t terminated = 0;
void OnTerm(int) { terminated = 1; }

std::string folder;

std::vector<std::string> Lines(const std::string& name) {
  std::ifstream file(folder + "/" + name);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

void Append(const std::string& name, const std::string& line) {
  std::ofstream(folder + "/" + name, std::ios::app) << line << std::endl;
}

std::string NameOf(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], "--index") == 0) return std::string("server-") + argv[i + 1];
    if (std::strcmp(argv[i], "--name") == 0) return argv[i + 1];
  }
  return "worker";
}

// Looks every few milliseconds whether `done`.
template <typename Condition>
void Until(const std::string& name, Condition done) {
  bool told = false;
  while (!done()) {
    if (terminated != 0 && !told) {
      Append(name + ".terms", "SIGTERM");
      told = true;
    }
    usleep(2000);
  }
  if (terminated != 0 && !told) Append(name + ".terms", "SIGTERM");
}

// As glog does.
void LogWarning(const std::string& words) {
  std::fprintf(stderr, "W20260101 12:00:00.000000 %d fake_process.cc:1] %s\n", getpid(),
               words.c_str());
}

void SayAndLeaveWords(const std::string& name, const std::string& words) {
  if (!words.empty()) std::fprintf(stderr, "%s\n", words.c_str());
  const char* log = std::getenv("KUMO_TERMINATION_LOG");
  if (name == "server-0" && log != nullptr) std::ofstream(log) << words << std::endl;
}

int Act(const std::string& name, const std::string& line) {
  std::istringstream words(line);
  std::string verb, who, rest;
  int number = 0, code = 0;
  words >> verb;
  if (verb == "exit") {
    words >> code;
    words.get();  // further blanks belong to the words
    std::getline(words, rest);
    SayAndLeaveWords(name, rest);
  } else if (verb == "stop" || verb == "warn") {
    words >> code >> std::ws;
    std::getline(words, rest);
    if (verb == "warn") LogWarning(rest);
    Until(name, [] { return terminated != 0; });
    if (verb == "warn") return code;
    LogWarning("SIGTERM");
    SayAndLeaveWords(name, rest);
  } else if (verb == "mention") {
    words >> code >> std::ws;
    std::getline(words, rest);
    LogWarning(rest);
  } else if (verb == "die") {
    words >> number;
    std::signal(number, SIG_DFL);
    raise(number);
  } else if (verb == "run") {
    words >> code;
    Until(name, [] { return terminated != 0; });
  } else if (verb == "ignore") {
    Until(name, [] { return false; });
  } else if (verb == "await") {
    words >> who >> number >> code;
    Until(name, [&] { return static_cast<int>(Lines(who + ".starts").size()) >= number; });
  } else if (verb == "follow") {
    words >> who >> code;
    Until(name, [&] { return !Lines(who + ".terms").empty(); });
  }
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  alarm(60);
  const char* named = std::getenv("KUMO_FAKE_DIR");
  folder = named == nullptr ? "." : named;
  std::signal(SIGTERM, OnTerm);
  const std::string name = NameOf(argc, argv);
  std::string args;
  for (int i = 1; i < argc; ++i) args += (i == 1 ? "" : " ") + std::string(argv[i]);
  Append(name + ".args", args);
  Append(name + ".starts", std::to_string(getpid()));
  const std::vector<std::string> script = Lines(name + ".do");
  if (script.empty()) return 0;
  const size_t start = Lines(name + ".starts").size() - 1;
  return Act(name, script[start < script.size() ? start : script.size() - 1]);
}
