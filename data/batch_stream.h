// Batch stream: minibatches of a range of an epoch's positions, read ahead by a thread of the
// stream.
//
// The training loop announces the positions that it will train on (Start) as early as it knows
// them, and takes the minibatches one by one (Next). Ranges queue up: if block r + 1's range is
// started while block r still trains, its first minibatches are ready when block r ends. The thread
// keeps at most `prefetch` minibatches ready, in buffers that are allocated once; `threads` threads
// read and transform the samples of a minibatch in parallel. The content of a batch depends only on
// dataset, order, transforms, epoch and positions, never on `prefetch`, `threads` or timing.
//
//   BatchStream stream(train, {.order = BatchOrder::kShuffled, .seed = 1, .minibatch = 64});
//   stream.Start(epoch, plan.PartitionSamples(round, partition));
//   while (true) {
//     KUMO_ASSIGN_OR_RETURN(const Minibatch batch, stream.Next());
//     if (batch.size == 0) break;  // the range has ended
//     ...
//   }
//
// Owned and used by one thread (the consumer), which makes all public calls. The destructor stops
// and joins the stream's thread, even if work is queued.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "common/job/fields.h"
#include "common/job/parameter_layout.h"
#include "data/permutation.h"
#include "data/samples/dataset.h"
#include "data/samples/sample.h"
#include "data/transforms/transform.h"

namespace kumo {

enum class BatchOrder {
  kShuffled,    // position p of epoch e is sample EpochPermutation(size, seed, e).At(p): training
  kSequential,  // position p is sample p in every epoch: evaluation
};

struct BatchStreamOptions {
  BatchOrder order = BatchOrder::kShuffled;
  uint64_t seed = 1;  // of permutations and transforms
  int minibatch = 1;  // samples; at least 1
  int prefetch = 4;   // minibatches ready ahead; 0: no thread, Next() reads them itself
  int threads = 1;    // reading threads; 0: 1 for samples in memory, else the cores, at most 8
  // Applied to each sample; must outlive the stream.
  std::span<const std::unique_ptr<const Transform>> transforms{};
};

// Valid until the next call of Next() or Cancel().
struct Minibatch {
  int64_t size = 0;  // samples; 0: the range has ended
  int64_t epoch = 0;
  Range positions;                     // of the epoch
  std::span<const int64_t> indices{};  // sample numbers, in order
  // By field, each aligned to 64 bytes.
  std::span<const std::span<const std::byte>> fields{};
  std::span<const std::span<const int32_t>> counts{};  // SampleBatch::counts

  SampleBatch samples() const { return {static_cast<int>(size), fields, counts}; }
};

class BatchStream {
 public:
  // The dataset must outlive the stream. Requires minibatch >= 1, prefetch >= 0 and threads >= 0.
  BatchStream(const Dataset* dataset, const BatchStreamOptions& options);
  ~BatchStream();
  BatchStream(const BatchStream&) = delete;
  BatchStream& operator=(const BatchStream&) = delete;

  // Queues the minibatches of `positions` of `epoch`: all full, except that the last one holds the
  // rest. An empty range has none. Requires 0 <= positions.begin <= positions.end <= dataset size.
  void Start(int64_t epoch, Range positions);

  // Returns the next minibatch of the oldest unfinished range; after its last one, once, a
  // Minibatch of size 0; then the next range follows. Waits while the minibatch is read. Requires a
  // started range that has not ended. Errors are the dataset's; an error is repeated until
  // Cancel().
  Result<Minibatch> Next();

  // Discards all started ranges, finished minibatches and errors.
  void Cancel();

  const Dataset& dataset() const { return dataset_; }
  // Fields of the minibatches' samples, that is, after the transforms.
  const Fields& fields() const { return sample_fields_; }
  int minibatch() const { return options_.minibatch; }

 private:
  struct Work {  // a range; `positions` is its unread rest
    int64_t epoch = 0;
    Range positions;
  };
  // Entry of the ring: the arrays of one minibatch. Thread and consumer never use one entry at
  // once.
  struct Entry {
    std::vector<int64_t> indices;
    std::vector<Buffer<std::byte>> fields;
    std::vector<std::vector<int32_t>> counts;  // by field; empty for a field that is no list
    Status status;
    int64_t epoch = 0;
    Range positions;
    bool ends_range = false;
  };

  // Takes the next minibatch off the queue and describes it in `entry`.
  void TakeWork(Entry& entry) KUMO_REQUIRES(mutex_);
  void Fill(Entry& entry);
  // Reads sample k of the entry into `sample` and transforms it.
  Status FillSample(int64_t k, Sample* sample, Entry& entry) const;
  void PrefetchLoop() KUMO_EXCLUDES(mutex_);
  // The filled entry of the next minibatch.
  Entry& WaitForEntry() KUMO_EXCLUDES(mutex_);

  const Dataset& dataset_;
  const BatchStreamOptions options_;
  const Fields sample_fields_;
  std::vector<Entry> ring_;  // `prefetch` ready entries and the consumer's
  // Used by the thread that fills entries.
  std::optional<EpochPermutation> permutation_;
  int64_t permutation_epoch_ = 0;
  std::vector<Sample> samples_;  // by thread
  ThreadPool pool_;              // one thread less than `threads`: the filling thread reads too
  // Used by the consumer only.
  int64_t open_ranges_ = 0;                         // started and not ended
  bool at_end_ = false;                             // the last batch was the last of its range
  std::vector<std::span<const std::byte>> fields_;  // of the last batch
  std::vector<std::span<const int32_t>> counts_;    // likewise
  Status failure_;

  Mutex mutex_;
  CondVar work_changed_;   // for the thread: there are work and a free entry, or stop
  CondVar batch_changed_;  // for the consumer: a batch is ready
  std::deque<Work> work_ KUMO_GUARDED_BY(mutex_);
  // Numbers of minibatches made and taken; ring_[i % ring_.size()] holds minibatch i. Invariant:
  // made_ - taken_ <= prefetch, so the entry being filled is never the one taken last.
  int64_t made_ KUMO_GUARDED_BY(mutex_) = 0;
  int64_t taken_ KUMO_GUARDED_BY(mutex_) = 0;
  int64_t cancels_ KUMO_GUARDED_BY(mutex_) = 0;
  bool stop_ KUMO_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last member: it uses the members above
};

}  // namespace kumo
