#include "worker/minibatch_source.h"

#include <optional>

namespace kumo {

MinibatchSource::MinibatchSource(const Dataset* dataset, BatchStreamOptions options,
                                 InputLoader* loader, int64_t reserve)
    : loader_(loader) {
  if (const std::optional<RawSamples> raw = dataset->raw(); raw && loader_ != nullptr) {
    kept_ = loader_->KeepSamples(raw->pixels, raw->labels, reserve);
  }
  options.content = BatchContent::kInputs;
  if (loader_ != nullptr) options.content = kept_ ? BatchContent::kNone : BatchContent::kPixels;
  stream_ = std::make_unique<BatchStream>(dataset, options);
}

Result<int> MinibatchSource::LoadNext(Net* net) {
  KUMO_ASSIGN_OR_RETURN(const Minibatch minibatch, stream_->Next());
  const int size = static_cast<int>(minibatch.size);
  if (size == 0) return size;
  if (kept_) {
    KUMO_RETURN_IF_ERROR(net->Load(loader_, *kept_, minibatch.indices, minibatch.windows));
  } else if (loader_ != nullptr) {
    KUMO_RETURN_IF_ERROR(
        net->Load(loader_, {size, minibatch.pixels, minibatch.labels, minibatch.windows}));
  } else {
    KUMO_RETURN_IF_ERROR(net->Load({size, minibatch.inputs, minibatch.labels}));
  }
  return size;
}

}  // namespace kumo
