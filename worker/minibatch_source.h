// Where a data set's minibatches come from on their way into a net: made into inputs by the host,
// sent to the device as bytes, or of samples that the device keeps.
//
// Owned by the Trainer; one thread.
#pragma once

#include <cstdint>
#include <memory>

#include "common/base/status.h"
#include "data/batch_stream.h"
#include "data/dataset.h"
#include "models/backend/input_loader.h"
#include "models/net.h"

namespace kumo {

class MinibatchSource {
 public:
  // options: but for the content, which follows from the device. loader: of a device that makes
  // inputs; null: the host does. reserve: bytes of the device's memory that are to be left to
  // others. dataset and loader are borrowed for life.
  MinibatchSource(const Dataset* dataset, BatchStreamOptions options, InputLoader* loader,
                  int64_t reserve);

  // As BatchStream's.
  void Start(int64_t epoch, Range positions) { stream_->Start(epoch, positions); }
  void Cancel() { stream_->Cancel(); }
  // Loads the next minibatch into the net. Its size; 0 where the range has ended.
  Result<int> LoadNext(Net* net);

 private:
  InputLoader* const loader_;
  std::unique_ptr<DeviceSamples> kept_;  // null: the stream reads them
  std::unique_ptr<BatchStream> stream_;
};

}  // namespace kumo
