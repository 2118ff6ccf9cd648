#include "worker/session/progress.h"

namespace kumo {

void Progress::OnTraining(TimeUs now) {
  if (samples_ == 0) samples_at_s_ = ToSeconds(now);
}

void Progress::OnTrained(const TrainedBlock& block, TimeUs now) {
  compute_ms_ = block.times.compute_ms;
  coding_ms_ = block.times.coding_ms;
  samples_ += block.metrics.samples();
  samples_at_s_ = ToSeconds(now);
}

void Progress::OnPushed(int64_t round, TimeUs now) {
  pushed_ = now;
  acknowledged_ = first_chunk_ = last_chunk_ = std::nullopt;
  round_ = round;
}

void Progress::OnChunk(TimeUs now) {
  if (!pushed_) return;
  if (!first_chunk_) first_chunk_ = now;
  last_chunk_ = now;
}

void Progress::OnVersion() {
  if (!first_chunk_) return;
  const auto milliseconds = [](TimeUs from, TimeUs to) {
    return to > from ? static_cast<double>(to - from) * 1e-3 : 0.0;
  };
  const TimeUs sent = acknowledged_.value_or(*pushed_);
  network_ms_ =
      coding_ms_ + milliseconds(*pushed_, sent) + milliseconds(*first_chunk_, *last_chunk_);
  wait_ms_ = milliseconds(sent, *first_chunk_);
}

void Progress::ForgetTimes() {
  pushed_ = acknowledged_ = first_chunk_ = last_chunk_ = std::nullopt;
  compute_ms_ = network_ms_ = wait_ms_ = std::nullopt;
}

void Progress::Report(wire::WorkerReport* report) const {
  report->set_round(round_);
  report->set_samples(samples_);
  report->set_samples_at_s(samples_at_s_);
  report->clear_compute_ms();
  report->clear_wait_ms();
  report->clear_network_ms();
  if (compute_ms_) report->set_compute_ms(*compute_ms_);
  if (wait_ms_) report->set_wait_ms(*wait_ms_);
  if (network_ms_) report->set_network_ms(*network_ms_);
}

}  // namespace kumo
