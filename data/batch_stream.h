// Minibatches of a range of an epoch's positions, read ahead by a thread of the stream's own.
//
// The training loop says which positions it will train on (Start), as early as it knows, and takes
// the minibatches one by one (Next). Ranges queue up: start block r + 1's range while block r still
// trains, and its first minibatches are ready when block r ends. The thread keeps at most
// `prefetch` minibatches ready, in buffers that are allocated once; what a batch holds depends on
// the dataset, the order, the augmentation, the epoch and the positions only, never on `prefetch`
// or on timing.
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
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/job/parameter_layout.h"
#include "common/job/pixels.h"
#include "data/augmentation.h"
#include "data/dataset.h"
#include "data/permutation.h"
#include "data/pixel_transform.h"

namespace kumo {

enum class BatchOrder {
  kShuffled,    // position p of epoch e is sample EpochPermutation(size, seed, e).At(p): training
  kSequential,  // position p is sample p in every epoch: evaluation
};

// What a minibatch brings of its samples, beside which they are and which windows of them are
// meant.
enum class BatchContent {
  kInputs,  // the network's inputs, of those windows, and labels
  kPixels,  // whole images as bytes, and labels: who takes them makes inputs of them
  kNone,    // who takes it has the data set
};

struct BatchStreamOptions {
  BatchOrder order = BatchOrder::kShuffled;
  uint64_t seed = 1;  // of permutations and windows
  int minibatch = 1;  // samples; at least 1
  int prefetch = 4;   // minibatches ready ahead; 0: no thread, Next() reads them itself
  BatchContent content = BatchContent::kInputs;
  Augmentation augmentation{};
  PixelFormula pixels{};  // how inputs are made
};

// Valid until the next call of Next() or Cancel().
struct Minibatch {
  int64_t size = 0;  // samples; 0: no batch, the range has ended
  int64_t epoch = 0;
  Range positions;                     // which of the epoch's positions these are
  std::span<const int64_t> indices{};  // size: the samples, in this order
  std::span<const Window> windows{};   // size; or none: whole images
  // Of size, or none, as BatchContent says. Inputs and pixels: dataset.shape() each, NCHW, 64-byte
  // aligned.
  std::span<const float> inputs{};
  std::span<const uint8_t> pixels{};
  std::span<const int32_t> labels{};
};

class BatchStream {
 public:
  // The dataset is borrowed for the stream's whole life. Requires minibatch >= 1, prefetch >= 0, a
  // mean of the dataset's shape or none.
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
    std::vector<Window> windows;
    Buffer<float> inputs;
    Buffer<uint8_t> pixels;
    std::vector<int32_t> labels;
    Status status;
    int64_t epoch = 0;
    Range positions;
    bool ends_range = false;
  };

  // Takes the next minibatch off the queued ranges and describes it in `entry`.
  void TakeWork(Entry& entry) KUMO_REQUIRES(mutex_);
  void Fill(Entry& entry);
  // The samples of entry.indices.
  Status ReadPixels(std::span<uint8_t> pixels, Entry& entry) const;
  Status MakeInputs(Entry& entry);
  void PrefetchLoop() KUMO_EXCLUDES(mutex_);
  // The next minibatch's entry, filled.
  Entry& WaitForEntry() KUMO_EXCLUDES(mutex_);

  const Dataset& dataset_;
  const BatchStreamOptions options_;
  std::vector<Entry> ring_;  // `prefetch` ready ones and the consumer's
  // Used by whoever fills entries.
  std::optional<EpochPermutation> permutation_;
  int64_t permutation_epoch_ = 0;
  const std::optional<RawSamples> raw_;
  PixelTransform transform_;
  Buffer<uint8_t> read_;  // what inputs are made of, where the data set is not in memory
  // Used by the consumer alone.
  int64_t open_ranges_ = 0;  // started, their end not yet returned
  bool at_end_ = false;      // the batch returned last was its range's last
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
