#include "data/batch_stream.h"

#include <algorithm>
#include <utility>

#include <glog/logging.h>
#include <pthread.h>

namespace kumo {

BatchStream::BatchStream(const Dataset* dataset, const BatchStreamOptions& options)
    : dataset_(*dataset), options_(options) {
  CHECK_GE(options.minibatch, 1);
  CHECK_GE(options.prefetch, 0);
  // A minibatch never holds more samples than there are.
  const int64_t samples = std::min<int64_t>(options.minibatch, dataset_.size());
  slots_.resize(options.prefetch + 1);
  for (Slot& slot : slots_) {
    slot.indices.resize(samples);
    if (options.indices_only) continue;
    slot.inputs = Buffer<float>(samples * dataset_.shape().size());
    slot.labels.resize(samples);
  }
  if (options.prefetch > 0) {
    thread_ = std::thread([this] { PrefetchLoop(); });
    pthread_setname_np(thread_.native_handle(), "kumo-prefetch");
  }
}

BatchStream::~BatchStream() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
  }
  work_changed_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

void BatchStream::Start(int64_t epoch, Range positions) {
  CHECK(0 <= positions.begin && positions.begin <= positions.end &&
        positions.end <= dataset_.size())
      << dataset_.name() << ": [" << positions.begin << ", " << positions.end << ") of "
      << dataset_.size();
  ++open_ranges_;
  {
    MutexLock lock(mutex_);
    work_.push_back({epoch, positions});
  }
  work_changed_.NotifyOne();
}

Result<Minibatch> BatchStream::Next() {
  if (!failure_.ok()) return failure_;
  CHECK_GT(open_ranges_, 0) << "Next() wants a range that was started and has not ended";
  if (std::exchange(at_end_, false)) {
    --open_ranges_;
    return Minibatch{};
  }
  Slot& slot = WaitForSlot();
  if (!slot.status.ok()) {
    failure_ = std::move(slot.status);
    return failure_;
  }
  const int64_t size = slot.positions.size();
  if (size == 0) {  // an empty range
    --open_ranges_;
    return Minibatch{};
  }
  at_end_ = slot.ends_range;
  Minibatch minibatch{.size = size,
                      .epoch = slot.epoch,
                      .positions = slot.positions,
                      .indices = std::span(slot.indices).first(size)};
  if (!options_.indices_only) {
    minibatch.inputs = slot.inputs.span().first(size * dataset_.shape().size());
    minibatch.labels = std::span(slot.labels).first(size);
  }
  return minibatch;
}

void BatchStream::Cancel() {
  {
    MutexLock lock(mutex_);
    work_.clear();
    // What the thread is reading just now is told by the count and thrown away when it is read.
    ++cancels_;
    taken_ = made_;
  }
  work_changed_.NotifyOne();
  open_ranges_ = 0;
  at_end_ = false;
  failure_ = OkStatus();
}

BatchStream::Slot& BatchStream::WaitForSlot() {
  if (options_.prefetch == 0) {
    {
      MutexLock lock(mutex_);
      TakeWork(slots_[0]);
    }
    Fill(slots_[0]);
    return slots_[0];
  }
  MutexLock lock(mutex_);
  while (taken_ == made_) batch_changed_.Wait(mutex_);
  Slot& slot = slots_[taken_++ % slots_.size()];
  // Woken for several minibatches at a time: each time may cost the consumer its core.
  if (made_ - taken_ <= options_.prefetch / 2) work_changed_.NotifyOne();
  return slot;
}

void BatchStream::TakeWork(Slot& slot) {
  Work& work = work_.front();
  const int64_t end = std::min(work.positions.begin + options_.minibatch, work.positions.end);
  slot.epoch = work.epoch;
  slot.positions = {work.positions.begin, end};
  slot.ends_range = end == work.positions.end;
  work.positions.begin = end;
  if (slot.ends_range) work_.pop_front();
}

void BatchStream::Fill(Slot& slot) {
  const int64_t size = slot.positions.size();
  if (options_.order == BatchOrder::kShuffled &&
      (!permutation_ || permutation_epoch_ != slot.epoch)) {
    permutation_.emplace(dataset_.size(), options_.seed, slot.epoch);
    permutation_epoch_ = slot.epoch;
  }
  for (int64_t k = 0; k < size; ++k) {
    const int64_t position = slot.positions.begin + k;
    slot.indices[k] =
        options_.order == BatchOrder::kShuffled ? permutation_->At(position) : position;
  }
  if (options_.indices_only) return;
  slot.status = dataset_.Read(std::span(slot.indices).first(size), options_.scale,
                              slot.inputs.span().first(size * dataset_.shape().size()),
                              std::span(slot.labels).first(size));
}

void BatchStream::PrefetchLoop() {
  while (true) {
    Slot* slot = nullptr;
    int64_t cancels = 0;
    {
      MutexLock lock(mutex_);
      while (!stop_ && (work_.empty() || made_ - taken_ == options_.prefetch)) {
        work_changed_.Wait(mutex_);
      }
      if (stop_) return;
      slot = &slots_[made_ % slots_.size()];
      TakeWork(*slot);
      cancels = cancels_;
    }
    Fill(*slot);
    MutexLock lock(mutex_);
    if (cancels == cancels_) {
      ++made_;
      batch_changed_.NotifyOne();
    }
  }
}

}  // namespace kumo
