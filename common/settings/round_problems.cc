#include "common/settings/round_problems.h"

#include <algorithm>
#include <cstdint>
#include <string>

namespace kumo {
namespace {

// The largest divisor of n that is no larger than `most`; both are at least 1.
int DivisorUpTo(int n, int most) {
  int divisor = std::min(n, most);
  while (n % divisor != 0) --divisor;
  return divisor;
}

// The smallest multiple of `of` that is at least n.
int64_t MultipleFrom(int n, int of) { return (int64_t{n} + of - 1) / of * of; }

// The setting `whole` is no multiple of the setting `part`.
SettingProblem NoMultiple(const std::string& part, int parts, const std::string& whole, int n) {
  return {part, " = " + std::to_string(parts) + ": " + whole + " = " + std::to_string(n) +
                    " is no multiple of it; set it to " + std::to_string(DivisorUpTo(n, parts)) +
                    ", or " + whole + " to " + std::to_string(MultipleFrom(n, parts))};
}

}  // namespace

std::vector<SettingProblem> ProblemsOfRounds(const Experiment::Sync& sync) {
  std::vector<SettingProblem> problems;
  if (sync.minibatch % sync.minibatch_parts != 0) {
    problems.push_back(
        NoMultiple("sync.minibatch_parts", sync.minibatch_parts, "sync.minibatch", sync.minibatch));
  }
  const std::string overlap = " = " + std::to_string(sync.overlap) + ": must be ";
  if (sync.mode == SyncMode::kGradient && sync.overlap > kMostDelay) {
    problems.push_back({"sync.overlap", overlap + "at most " + std::to_string(kMostDelay) +
                                            " in gradient mode, where it is a delay in rounds"});
  }
  if (sync.mode != SyncMode::kBlock) return problems;
  if (sync.block % sync.fragments != 0) {
    problems.push_back(NoMultiple("sync.fragments", sync.fragments, "sync.block", sync.block));
  } else if (const int round = sync.RoundMinibatches(); sync.overlap >= round) {
    problems.push_back(
        {"sync.overlap",
         overlap + "less than " +
             (sync.fragments > 1 ? "sync.block / sync.fragments = " : "sync.block = ") +
             std::to_string(round) + "; set it to at most " + std::to_string(round - 1)});
  }
  return problems;
}

}  // namespace kumo
