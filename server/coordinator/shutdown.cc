#include "server/coordinator/shutdown.h"

#include <algorithm>
#include <string>

namespace kumo {
void Shutdown::OnFinished(TimeUs now) { until_ = now + limit_; }

void Shutdown::WaitFor(int others, TimeUs until) {
  others_ = others;
  until_ = until;
}

void Shutdown::OnBye() { others_ = std::max(others_ - 1, 0); }

bool Shutdown::IsOver(const MemberTable& members, TimeUs now) {
  if (until_ == 0) until_ = now + limit_;
  return AllKnow(members) || now >= until_;
}

Status Shutdown::Outcome(Phase phase, const StopPoint& stop) const {
  if (phase == Phase::kFailed) return failure_;
  if (stop.version() < 0) return OkStatus();
  return Unavailable("stopped after round " + std::to_string(stop.version()) +
                     ", which is saved: start the job again to go on from there");
}

void Shutdown::FillIn(Phase phase, const StopPoint& stop, int64_t version,
                      wire::Header* header) const {
  if (phase == Phase::kFailed) {
    header->mutable_refusal()->set_code(static_cast<uint32_t>(failure_.code()));
    header->mutable_refusal()->set_reason(failure_.message());
  }
  wire::Orders* orders = header->mutable_orders();
  orders->set_finished(phase == Phase::kFinished);
  orders->set_stopped(phase == Phase::kFinished && stop.version() >= 0);
  // Who joins now would go on beyond it: chunk 0 has said so with the version before. Orders do
  // not say it earlier: should server 0 die before that version is kept twice, nobody knows of the
  // stop any more.
  if (stop.IsReachedBy(version)) orders->set_stop_at(stop.version());
}

}  // namespace kumo
