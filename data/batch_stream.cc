#include "data/batch_stream.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include <glog/logging.h>
#include <pthread.h>

#include "common/base/cores.h"
#include "common/base/thread.h"

// Synchronisation. Two threads share the ring: the prefetch thread fills entry made_ % size, the
// consumer holds entry (taken_ - 1) % size until its next call. The ring has prefetch + 1 entries,
// and the thread pauses at made_ - taken_ == prefetch, so the two entries always differ, and
// neither thread holds the mutex while samples are read.
//
// Cancellation. Scenario: a lease is lost while the thread fills an entry of the old range. Cancel
// empties the queue and increments cancels_. When the thread has finished, it finds another count
// than when it took the work, and does not publish the entry: made_ stays, and the entry is filled
// again. So Cancel never waits for a read.

namespace kumo {
namespace {

int ThreadsFor(const Dataset& dataset, int asked) {
  CHECK_GE(asked, 0);
  if (asked > 0) return asked;
  return dataset.in_memory() ? 1 : ReadingThreadsFor(UsableCores());
}

}  // namespace

BatchStream::BatchStream(const Dataset* dataset, const BatchStreamOptions& options)
    : dataset_(*dataset),
      options_(options),
      sample_fields_(FieldsAfter(dataset_.fields(), options.transforms)),
      pool_(ThreadsFor(dataset_, options.threads) - 1),
      fields_(dataset_.fields().size()),
      counts_(dataset_.fields().size()) {
  CHECK_GE(options.minibatch, 1);
  CHECK_GE(options.prefetch, 0);
  for (int i = 0; i <= pool_.threads(); ++i) samples_.emplace_back(dataset_.fields());
  // A minibatch never has more samples than the dataset.
  const int64_t samples = std::min<int64_t>(options.minibatch, dataset_.size());
  ring_.resize(options.prefetch + 1);
  for (Entry& entry : ring_) {
    entry.indices.resize(samples);
    for (const Field& field : sample_fields_) {
      entry.fields.emplace_back(samples * field.bytes());
      entry.counts.emplace_back(field.list ? samples : 0);
    }
  }
  if (options.prefetch > 0) {
    thread_ = StartThread([this] { PrefetchLoop(); });
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
  CHECK_GT(open_ranges_, 0) << "Next() requires a range that was started and has not ended";
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
  for (size_t f = 0; f < fields_.size(); ++f) {
    fields_[f] = std::as_const(entry.fields[f]).span().first(size * sample_fields_[f].bytes());
    counts_[f] = std::span(entry.counts[f]).first(sample_fields_[f].list ? size : 0);
  }
  return Minibatch{.size = size,
                   .epoch = entry.epoch,
                   .positions = entry.positions,
                   .indices = std::span(entry.indices).first(size),
                   .fields = fields_,
                   .counts = counts_};
}

void BatchStream::Cancel() {
  {
    MutexLock lock(mutex_);
    work_.clear();
    // The batch that the thread is reading now is recognised by cancels_ and discarded.
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
  // Woken for several minibatches at a time, because each wake-up may cost the consumer its core.
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
  // Each thread draws the next index and reads that sample. So all samples before a failed one are
  // read, and the reported failure does not depend on the number of threads.
  std::atomic<int64_t> next = 0;
  std::atomic<bool> failed = false;
  std::vector<std::pair<int64_t, Status>> ends(samples_.size(), {size, OkStatus()});
  pool_.ParallelFor(std::ssize(samples_), [&](int64_t thread) {
    while (!failed) {
      const int64_t k = next++;
      if (k >= size) return;
      Status status = FillSample(k, &samples_[thread], entry);
      if (status.ok()) continue;
      failed = true;
      ends[thread] = {k, std::move(status)};
    }
  });
  entry.status = std::ranges::min_element(ends, {}, &std::pair<int64_t, Status>::first)->second;
}

Status BatchStream::FillSample(int64_t k, Sample* sample, Entry& entry) const {
  KUMO_RETURN_IF_ERROR(ReadTransformed(dataset_, options_.transforms,
                                       {options_.seed, entry.epoch, entry.indices[k]}, sample));
  for (size_t f = 0; f < entry.fields.size(); ++f) {
    const Field& field = sample_fields_[f];
    const std::span<const std::byte> numbers = sample->field(static_cast<int>(f));
    std::byte* const to = entry.fields[f].data() + k * field.bytes();
    if (field.list) {
      const int64_t count = sample->extents(static_cast<int>(f))[0];
      CHECK(0 <= count && count <= field.extents[0]) << field.name << ": " << count;
      CHECK_EQ(std::ssize(numbers) * field.extents[0], field.bytes() * count) << field.name;
      entry.counts[f][k] = static_cast<int32_t>(count);
      std::fill(to + numbers.size(), to + field.bytes(), std::byte{0});
    } else {
      CHECK_EQ(std::ssize(numbers), field.bytes()) << field.name;
    }
    std::ranges::copy(numbers, to);
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
