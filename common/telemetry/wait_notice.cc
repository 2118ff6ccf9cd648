#include "common/telemetry/wait_notice.h"

#include <algorithm>

namespace kumo {
namespace {

// Processes that are started together rarely wait longer for each other.
constexpr TimeUs kFirst = 500 * kMillisecond;
constexpr TimeUs kBetweenChanges = 2 * kSecond;
constexpr TimeUs kAgain = 10 * kSecond;
constexpr TimeUs kAgainAtMost = 60 * kSecond;

}  // namespace

std::optional<std::string> WaitNotice::Update(const std::string& waits_for, TimeUs now) {
  if (waits_for.empty()) {
    *this = WaitNotice();
    return std::nullopt;
  }
  if (!since_) since_ = now;
  if (said_.empty()) {
    if (now - *since_ < kFirst) return std::nullopt;
    again_after_ = kAgain;
  } else {
    const bool changed = waits_for != said_;
    if (now - said_at_ < (changed ? kBetweenChanges : again_after_)) return std::nullopt;
    if (!changed) again_after_ = std::min(2 * again_after_, kAgainAtMost);
  }
  said_ = waits_for;
  said_at_ = now;
  const bool lasts = now - *since_ >= kSecond;
  return "waits for " + waits_for +
         (lasts ? " (" + InWholeSeconds(now - *since_) + " already)" : "");
}

}  // namespace kumo
