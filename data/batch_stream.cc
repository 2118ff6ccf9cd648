#include "data/batch_stream.h"

#include <algorithm>
#include <utility>

#include <glog/logging.h>
#include <pthread.h>

namespace kumo {

BatchStream::BatchStream(const Dataset* dataset, const BatchStreamOptions& options)
    : dataset_(*dataset),
      options_(options),
      raw_(dataset_.raw()),
      transform_(dataset_.shape(), options_.pixels) {
  CHECK_GE(options.minibatch, 1);
  CHECK_GE(options.prefetch, 0);
  // A minibatch never holds more samples than there are.
  const int64_t samples = std::min<int64_t>(options.minibatch, dataset_.size());
  slots_.resize(options.prefetch + 1);
  for (Slot& slot : slots_) {
    slot.indices.resize(samples);
    if (options.augmentation.any()) slot.windows.resize(samples);
    if (options.content == BatchContent::kNone) continue;
    slot.labels.resize(samples);
    const int64_t pixels = samples * dataset_.shape().size();
    if (options.content == BatchContent::kPixels) slot.pixels = Buffer<uint8_t>(pixels);
    if (options.content == BatchContent::kInputs) slot.inputs = Buffer<float>(pixels);
  }
  if (options.content == BatchContent::kInputs && !raw_) {
    read_ = Buffer<uint8_t>(samples * dataset_.shape().size());
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
  const int64_t pixels = size * dataset_.shape().size();
  if (!slot.windows.empty()) minibatch.windows = std::span(slot.windows).first(size);
  if (!slot.inputs.empty()) minibatch.inputs = slot.inputs.span().first(pixels);
  if (!slot.pixels.empty()) minibatch.pixels = slot.pixels.span().first(pixels);
  if (!slot.labels.empty()) minibatch.labels = std::span(slot.labels).first(size);
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
  for (int64_t k = 0; k < size && !slot.windows.empty(); ++k) {
    slot.windows[k] = DrawWindow(options_.augmentation, options_.seed, slot.epoch, slot.indices[k]);
  }
  if (options_.content == BatchContent::kPixels) {
    slot.status = ReadPixels(slot.pixels.span(), slot);
  } else if (options_.content == BatchContent::kInputs) {
    slot.status = MakeInputs(slot);
  }
}

Status BatchStream::ReadPixels(std::span<uint8_t> pixels, Slot& slot) const {
  const int64_t size = slot.positions.size();
  return dataset_.Read(std::span(slot.indices).first(size),
                       pixels.first(size * dataset_.shape().size()),
                       std::span(slot.labels).first(size));
}

Status BatchStream::MakeInputs(Slot& slot) {
  const int64_t sample_size = dataset_.shape().size();
  if (!raw_) KUMO_RETURN_IF_ERROR(ReadPixels(read_.span(), slot));
  for (int64_t k = 0; k < slot.positions.size(); ++k) {
    const int64_t index = slot.indices[k];
    const std::span<const uint8_t> image =
        raw_ ? raw_->pixels.subspan(index * sample_size, sample_size)
             : std::as_const(read_).span().subspan(k * sample_size, sample_size);
    if (raw_) slot.labels[k] = raw_->labels[index];
    transform_.Apply(image, slot.windows.empty() ? nullptr : &slot.windows[k],
                     slot.inputs.span().subspan(k * sample_size, sample_size));
  }
  return OkStatus();
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
