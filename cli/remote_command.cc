// kumo remote: runs one program on another host.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "cli/command.h"
#include "cli/launch/child_process.h"
#include "cli/launch/hosts.h"
#include "cli/launch/remote_process.h"
#include "common/base/file.h"
#include "common/base/process/exit_report.h"
#include "common/base/process/signals.h"

namespace kumo {
namespace {

struct RemoteArguments {
  std::string host;
  std::string ssh = "ssh";
  std::string kumo;
  double silence_s = kUsualSilenceS;
  bool serve = false;
};

CommandLine MakeCommandLine(RemoteArguments* args) {
  CommandLine line("kumo remote",
                   "Runs one program on another host through ssh, as kumo launch --hosts does: its "
                   "output comes\nhere, signals go there, and it is killed when this "
                   "process or the connection ends. PROGRAM is a path, or one of Kumo's. It "
                   "runs in this\nworking directory, which "
                   "the other host must have, with this environment's KUMO_ variables.\n"
                   "    kumo remote --host beta -- kumo-worker --version");
  line.AddOption("host", "[USER@]NAME", Allowed(), "Host, as for ssh", &args->host);
  line.AddOption("ssh", "COMMAND", Allowed(),
                 "ssh with options, separated by blanks: \"ssh -p 2222 -i KEY\"", &args->ssh);
  line.AddOption("kumo", "PATH", Allowed(), "Path of kumo on the other host", &args->kumo,
                 "as on this host");
  line.AddOption("silence", "SECONDS", {.min = 0.1, .max = kLongestSilenceS},
                 "Silence of this end after which the other end kills the program",
                 &args->silence_s);
  line.AddFlag("serve", "Be the other end, which ssh starts", &args->serve);
  line.AddNote(
      "Exit codes: the program's; 64 wrong command line, 78 the program cannot be started there, "
      "253 the host\ncannot be reached, or the connection was lost (75 would be the program's).");
  return line;
}

std::vector<std::string> Words(const std::string& text) {
  std::vector<std::string> words;
  for (size_t at = 0; (at = text.find_first_not_of(' ', at)) != std::string::npos;) {
    const size_t end = std::min(text.find(' ', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

// Searches PATH like a shell; returns the name itself if it is not found.
std::string PathOf(const CliEnvironment& environment, const std::string& program) {
  if (program.find('/') != std::string::npos) return program;
  std::istringstream folders(ValueOf(environment.variables, "PATH"));
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string path = JoinPath(folder, program);
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return program;
}

Status ValidateArguments(const RemoteArguments& args, const std::vector<std::string>& program) {
  if (args.serve) return OkStatus();
  if (args.host.empty()) return InvalidArgument("--host is missing");
  const Result<std::vector<Host>> hosts = ParseHosts(args.host);
  KUMO_RETURN_IF_ERROR(hosts.status().WithContext("--host"));
  if (hosts->front().name != args.host) return InvalidArgument("--host: must be one host");
  if (Words(args.ssh).empty()) return InvalidArgument("--ssh: must name a program");
  if (program.empty()) {
    return InvalidArgument("a program is missing: kumo remote --host HOST -- PROGRAM ...");
  }
  return OkStatus();
}

Result<int> Run(const CliEnvironment& environment, const RemoteArguments& args,
                const std::vector<std::string>& program) {
  StopSignals signals({SIGCHLD});
  if (args.serve) return ServeRemote(STDIN_FILENO, &signals);
  remote::Start start;
  start.set_silence_s(args.silence_s);
  std::error_code error;
  start.set_directory(std::filesystem::current_path(error));
  for (const auto& [name, value] : environment.variables) {
    const bool ours = name.starts_with("KUMO_") && name != "KUMO_TERMINATION_LOG";
    if (ours) start.add_environment(name + "=" + value);
  }
  for (const std::string& word : program) start.add_command(word);
  const bool bare = program[0].find('/') == std::string::npos;
  if (bare) start.set_command(0, JoinPath(environment.binary_directory, program[0]));
  RemoteHost host{args.host, Words(args.ssh), args.kumo};
  host.ssh[0] = PathOf(environment, host.ssh[0]);
  if (host.kumo.empty()) host.kumo = JoinPath(environment.binary_directory, "kumo");
  return RunOnHost(host, start, &signals);
}

// Ends like the program did, so that the parent sees the same status.
int EndAs(int code) {
  const int signal = code - 128;
  if (signal <= 0 || signal > SIGSYS) return code;
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  std::signal(signal, SIG_DFL);
  raise(signal);
  return code;
}

}  // namespace

int RunRemote(const CliEnvironment& environment, std::span<const std::string> args) {
  const ExitReporter exit_reporter = environment.ExitReporterOf("kumo remote");
  const auto dashes = std::ranges::find(args, "--");
  const std::vector<std::string> own(args.begin(), dashes);
  const std::vector<std::string> program(dashes == args.end() ? dashes : dashes + 1, args.end());
  RemoteArguments arguments;
  CommandLine line = MakeCommandLine(&arguments);
  if (const auto end = ParseOrEnd(environment, exit_reporter, own, &line,
                                  [&] { return ValidateArguments(arguments, program); }))
    return *end;
  const Result<int> code = Run(environment, arguments, program);
  if (!code.ok()) {
    const int reported = exit_reporter.Report(code.status());
    return code.status().code() == StatusCode::kUnavailable ? kConnectionLost : reported;
  }
  // sshd passes on an exit code, but not the signal that killed a program.
  return arguments.serve ? *code : EndAs(*code);
}

}  // namespace kumo
