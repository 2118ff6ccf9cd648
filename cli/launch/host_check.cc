#include "cli/launch/host_check.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cli/launch/child_process.h"
#include "cli/launch/remote_process.h"
#include "common/base/thread_pool.h"

namespace kumo {

namespace {

constexpr int kAtOnce = 32;

struct HostAnswer {
  Result<ChildEnd> end = Internal("not asked");
  std::string words;
};

// Finds "kumo-worker 0.2.0" in the output, because the host's shell may print text before it.
std::string VersionIn(const std::string& text) {
  const size_t at = ("\n" + text).find("\nkumo-worker ");
  if (at == std::string::npos) return "no kumo-worker";
  return text.substr(at, text.find('\n', at) - at);
}

Status Judge(const std::string& host, const HostAnswer& answer, const std::string& here) {
  KUMO_RETURN_IF_ERROR(answer.end.status());
  if (answer.end->code != 0) {
    return ErrorOf("kumo remote", *answer.end, answer.words).WithContext(host);
  }
  if (VersionIn(answer.words) == here) return OkStatus();
  return FailedPrecondition(host + " has " + VersionIn(answer.words) + ", but this machine has " +
                            here + "; install the same version");
}

}  // namespace

void CheckHosts(const LaunchArguments& args, Preflight* result) {
  const std::vector<std::string> worker = {args.job.experiment.Binary("kumo-worker"), "--version"};
  std::string here;
  ChildSpec local;
  local.command = worker;
  const Result<ChildEnd> asked = RunChild(local, &here);
  if (!asked.ok()) {
    result->problems.push_back(asked.status());
    return;
  }
  std::vector<HostAnswer> answers(args.hosts.size());
  const auto ask = [&](int64_t i) {
    ChildSpec spec;
    spec.command = OnHost(args, args.hosts[i].name, worker);
    answers[i].end = RunChild(spec, &answers[i].words);
  };
  {
    ThreadPool pool(kAtOnce);
    pool.ParallelFor(static_cast<int64_t>(answers.size()), ask);
  }
  for (size_t i = 0; i < answers.size(); ++i) {
    Status status = Judge(args.hosts[i].name, answers[i], VersionIn(here));
    if (!status.ok()) result->problems.push_back(std::move(status));
  }
  if (!result->problems.empty()) return;
  result->passed.push_back("hosts: " + std::to_string(answers.size()) + ", all with " +
                           VersionIn(here));
}

}  // namespace kumo
