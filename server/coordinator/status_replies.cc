#include "server/coordinator/status_replies.h"

#include <algorithm>
#include <utility>

#include "server/coordinator/announcements.h"

namespace kumo {

TimeUs StatusReplies::Interval(int workers) {
  return std::clamp<TimeUs>(workers * kMillisecond, 20 * kMillisecond, kSecond);
}

void StatusReplies::Answer(const PeerName& to, const JobState& job, StepContext* context) {
  wire::Header& header = reply_.message.header;
  if (!header.has_job_status() ||
      context->now >= made_at_ + Interval(header.job_status().workers_size())) {
    header.set_type(wire::STATUS_REPLY);
    *header.mutable_job_status() = Shortened(StatusOf(job, context->now), kMostBytes);
    made_at_ = context->now;
  }
  reply_.to = to;
  context->Do(reply_);
}

wire::JobStatus Shortened(wire::JobStatus status, size_t most_bytes) {
  constexpr size_t kFraming = 2;      // of one worker in the list, at least
  constexpr size_t kLeftOutSize = 8;  // the number of those that are left out, at most
  size_t bytes = status.ByteSizeLong();
  if (bytes > most_bytes) bytes += kLeftOutSize;
  while (bytes > most_bytes && status.workers_size() > 0) {
    const size_t last = status.workers(status.workers_size() - 1).ByteSizeLong() + kFraming;
    bytes -= std::min(bytes, last);
    status.mutable_workers()->RemoveLast();
    status.set_workers_left_out(status.workers_left_out() + 1);
  }
  return status;
}

}  // namespace kumo
