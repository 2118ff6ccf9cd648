// Minibatches of a range of an epoch's positions, read ahead by a thread of the stream's own.
//
// The training loop says which positions it will train on (Start), as early as it knows, and takes
// the minibatches one by one (Next). Ranges queue up: start block r + 1's range while block r still
// trains, and its first minibatches are ready when block r ends. The thread keeps at most
// `prefetch` minibatches ready, in buffers that are allocated once; samples of a minibatch are read
// and transformed by `threads` threads at once. What a batch holds depends on the dataset, the
// order, the transforms, the epoch and the positions only, never on `prefetch`, on `threads` or on
// timing.
//
//   BatchStream stream(train, {.order = BatchOrder::kShuffled, .seed = 1, .minibatch = 64});
//   stream.Start(epoch, plan.PartitionSamples(round, partition));
//   while (true) {
//     KUMO_ASSIGN_OR_RETURN(const Minibatch batch, stream.Next());
//     if (batch.size == 0) break;  // the range has ended
//     ...
//   }
//
// Owned and used by one thread (the consumer): all public methods are called from it. The
// destructor stops and joins the stream's thread, whatever is still queued.
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
#include "data/dataset.h"
#include "data/permutation.h"
#include "data/sample.h"
#include "data/transforms/transform.h"

namespace kumo {

// One where the samples lie in memory, else as many as there are cores, up to 8.
int DefaultReadingThreads(const Dataset& dataset);

enum class BatchOrder {
  kShuffled,    // position p of epoch e is sample EpochPermutation(size, seed, e).At(p): training
  kSequential,  // position p is sample p in every epoch: evaluation
};

struct BatchStreamOptions {
  BatchOrder order = BatchOrder::kShuffled;
  uint64_t seed = 1;  // of permutations and transforms
  int minibatch = 1;  // samples; at least 1
  int prefetch = 4;   // minibatches ready ahead; 0: no thread, Next() reads them itself
  int threads = 1;    // that read samples; 0: as many as DefaultReadingThreads says
  // What is done to each sample; borrowed for the stream's life.
  std::span<const std::unique_ptr<const Transform>> transforms{};
};

// Valid until the next call of Next() or Cancel().
struct Minibatch {
  int64_t size = 0;  // samples; 0: no batch, the range has ended
  int64_t epoch = 0;
  Range positions;                     // which of the epoch's positions these are
  std::span<const int64_t> indices{};  // size: the samples, in this order
  // By the stream's fields, each from a 64-byte boundary on.
  std::span<const std::span<const std::byte>> fields{};

  SampleBatch samples() const { return {static_cast<int>(size), fields}; }
};

class BatchStream {
 public:
  // The dataset is borrowed for the stream's whole life. Requires minibatch >= 1, prefetch >= 0 and
  // threads >= 0.
  BatchStream(const Dataset* dataset, const BatchStreamOptions& options);
  ~BatchStream();
  BatchStream(const BatchStream&) = delete;
  BatchStream& operator=(const BatchStream&) = delete;

  // Queues the minibatches of `positions` of `epoch` behind what is queued already: all full but
  // for the last one, which holds what is left. An empty range has none and just ends. Requires
  // 0 <= positions.begin <= positions.end <= dataset size.
  void Start(int64_t epoch, Range positions);

  // The next minibatch of the oldest unfinished range, or, once after the last of them, a Minibatch
  // of size 0; the call after that goes on with the next range. Waits while the minibatch is being
  // read. Requires a started range that has not ended. An error is the dataset's; it is repeated
  // until Cancel().
  Result<Minibatch> Next();

  // Forgets every started range, entry minibatch and error: the next Start() is the only range.
  void Cancel();

  const Dataset& dataset() const { return dataset_; }
  // Of the minibatches' samples: the data set's after the transforms.
  const Fields& fields() const { return sample_fields_; }
  int minibatch() const { return options_.minibatch; }

 private:
  struct Work {  // a range of which `positions` is still to be read
    int64_t epoch = 0;
    Range positions;
  };
  // An entry of the ring: one minibatch's arrays. The thread that fills it and the consumer never
  // have it at once.
  struct Entry {
    std::vector<int64_t> indices;
    std::vector<Buffer<std::byte>> fields;
    Status status;
    int64_t epoch = 0;
    Range positions;
    bool ends_range = false;
  };

  // Takes the next minibatch off the queued ranges and describes it in `entry`.
  void TakeWork(Entry& entry) KUMO_REQUIRES(mutex_);
  void Fill(Entry& entry);
  // Sample k of the entry, read into `sample` and transformed.
  Status FillSample(int64_t k, Sample* sample, Entry& entry) const;
  void PrefetchLoop() KUMO_EXCLUDES(mutex_);
  // The next minibatch's entry, filled.
  Entry& WaitForEntry() KUMO_EXCLUDES(mutex_);

  const Dataset& dataset_;
  const BatchStreamOptions options_;
  const Fields sample_fields_;
  std::vector<Entry> ring_;  // `prefetch` ready ones and the consumer's
  // Used by whoever fills entries.
  std::optional<EpochPermutation> permutation_;
  int64_t permutation_epoch_ = 0;
  std::vector<Sample> samples_;  // by thread
  ThreadPool pool_;              // one thread less than read: whoever fills is another
  // Used by the consumer alone.
  int64_t open_ranges_ = 0;                         // started, their end not yet returned
  bool at_end_ = false;                             // the batch returned last was its range's last
  std::vector<std::span<const std::byte>> fields_;  // of the batch returned last
  Status failure_;

  Mutex mutex_;
  CondVar work_changed_;   // for the thread: there is work and room for it, or stop
  CondVar batch_changed_;  // for the consumer: a batch is ready
  std::deque<Work> work_ KUMO_GUARDED_BY(mutex_);
  // Minibatches ever made and taken; ring_[i % ring_.size()] holds minibatch i. As at most
  // `prefetch` are made and not taken, the entry being filled is never the one taken last.
  int64_t made_ KUMO_GUARDED_BY(mutex_) = 0;
  int64_t taken_ KUMO_GUARDED_BY(mutex_) = 0;
  int64_t cancels_ KUMO_GUARDED_BY(mutex_) = 0;
  bool stop_ KUMO_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace kumo
