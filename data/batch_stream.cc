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
  ring_.resize(options.prefetch + 1);
  for (Entry& entry : ring_) {
    entry.indices.resize(samples);
    if (options.augmentation.any()) entry.windows.resize(samples);
    if (options.content == BatchContent::kNone) continue;
    entry.labels.resize(samples);
    const int64_t pixels = samples * dataset_.shape().size();
    if (options.content == BatchContent::kPixels) entry.pixels = Buffer<uint8_t>(pixels);
    if (options.content == BatchContent::kInputs) entry.inputs = Buffer<float>(pixels);
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
  Entry& entry = WaitForEntry();
  if (!entry.status.ok()) {
    failure_ = std::move(entry.status);
    return failure_;
  }
  const int64_t size = entry.positions.size();
  if (size == 0) {  // an empty range
    --open_ranges_;
    return Minibatch{};
  }
  at_end_ = entry.ends_range;
  Minibatch minibatch{.size = size,
                      .epoch = entry.epoch,
                      .positions = entry.positions,
                      .indices = std::span(entry.indices).first(size)};
  const int64_t pixels = size * dataset_.shape().size();
  if (!entry.windows.empty()) minibatch.windows = std::span(entry.windows).first(size);
  if (!entry.inputs.empty()) minibatch.inputs = entry.inputs.span().first(pixels);
  if (!entry.pixels.empty()) minibatch.pixels = entry.pixels.span().first(pixels);
  if (!entry.labels.empty()) minibatch.labels = std::span(entry.labels).first(size);
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

BatchStream::Entry& BatchStream::WaitForEntry() {
  if (options_.prefetch == 0) {
    {
      MutexLock lock(mutex_);
      TakeWork(ring_[0]);
    }
    Fill(ring_[0]);
    return ring_[0];
  }
  MutexLock lock(mutex_);
  while (taken_ == made_) batch_changed_.Wait(mutex_);
  Entry& entry = ring_[taken_++ % ring_.size()];
  // Woken for several minibatches at a time: each time may cost the consumer its core.
  if (made_ - taken_ <= options_.prefetch / 2) work_changed_.NotifyOne();
  return entry;
}

void BatchStream::TakeWork(Entry& entry) {
  Work& work = work_.front();
  const int64_t end = std::min(work.positions.begin + options_.minibatch, work.positions.end);
  entry.epoch = work.epoch;
  entry.positions = {work.positions.begin, end};
  entry.ends_range = end == work.positions.end;
  work.positions.begin = end;
  if (entry.ends_range) work_.pop_front();
}

void BatchStream::Fill(Entry& entry) {
  const int64_t size = entry.positions.size();
  if (options_.order == BatchOrder::kShuffled &&
      (!permutation_ || permutation_epoch_ != entry.epoch)) {
    permutation_.emplace(dataset_.size(), options_.seed, entry.epoch);
    permutation_epoch_ = entry.epoch;
  }
  for (int64_t k = 0; k < size; ++k) {
    const int64_t position = entry.positions.begin + k;
    entry.indices[k] =
        options_.order == BatchOrder::kShuffled ? permutation_->At(position) : position;
  }
  for (int64_t k = 0; k < size && !entry.windows.empty(); ++k) {
    entry.windows[k] =
        DrawWindow(options_.augmentation, options_.seed, entry.epoch, entry.indices[k]);
  }
  if (options_.content == BatchContent::kPixels) {
    entry.status = ReadPixels(entry.pixels.span(), entry);
  } else if (options_.content == BatchContent::kInputs) {
    entry.status = MakeInputs(entry);
  }
}

Status BatchStream::ReadPixels(std::span<uint8_t> pixels, Entry& entry) const {
  const int64_t size = entry.positions.size();
  return dataset_.Read(std::span(entry.indices).first(size),
                       pixels.first(size * dataset_.shape().size()),
                       std::span(entry.labels).first(size));
}

Status BatchStream::MakeInputs(Entry& entry) {
  const int64_t sample_size = dataset_.shape().size();
  if (!raw_) KUMO_RETURN_IF_ERROR(ReadPixels(read_.span(), entry));
  for (int64_t k = 0; k < entry.positions.size(); ++k) {
    const int64_t index = entry.indices[k];
    const std::span<const uint8_t> image =
        raw_ ? raw_->pixels.subspan(index * sample_size, sample_size)
             : std::as_const(read_).span().subspan(k * sample_size, sample_size);
    if (raw_) entry.labels[k] = raw_->labels[index];
    transform_.Apply(image, entry.windows.empty() ? nullptr : &entry.windows[k],
                     entry.inputs.span().subspan(k * sample_size, sample_size));
  }
  return OkStatus();
}

void BatchStream::PrefetchLoop() {
  while (true) {
    Entry* entry = nullptr;
    int64_t cancels = 0;
    {
      MutexLock lock(mutex_);
      while (!stop_ && (work_.empty() || made_ - taken_ == options_.prefetch)) {
        work_changed_.Wait(mutex_);
      }
      if (stop_) return;
      entry = &ring_[made_ % ring_.size()];
      TakeWork(*entry);
      cancels = cancels_;
    }
    Fill(*entry);
    MutexLock lock(mutex_);
    if (cancels == cancels_) {
      ++made_;
      batch_changed_.NotifyOne();
    }
  }
}

}  // namespace kumo
