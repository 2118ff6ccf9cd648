#include "common/settings/experiment.h"

#include <algorithm>
#include <cmath>

namespace kumo {

CodecSettings Experiment::Sync::SettingsOfCodecs() const {
  const auto kept = static_cast<int>(std::lround(topk_percent * 40.96));
  return {static_cast<float>(push_threshold), std::clamp(kept, 1, 4096), topk_values,
          static_cast<float>(residual_factor)};
}

const Codec& Experiment::Sync::PushCodec() const { return CodecOf(push_codec, SettingsOfCodecs()); }

const Codec& Experiment::Sync::PullCodec() const { return CodecOf(pull_codec, SettingsOfCodecs()); }

// Dense contributions would be decoded once by the servers and once by each worker, for little.
bool Experiment::RelaysContributions() const {
  constexpr size_t kManyNumbers = size_t{1} << 20;
  const Codec& push = sync.PushCodec();
  return sync.relay && sync.mode == SyncMode::kBlock && push.traits().sparse &&
         TraitsOf(block).averages && evaluation.average_samples == 0 &&
         sync.partitions * push.EncodedBytes(kManyNumbers) <
             sync.PullCodec().EncodedBytes(kManyNumbers);
}

int64_t Experiment::Sync::ChunkUnit() const {
  return static_cast<int64_t>(std::max(PushCodec().group(), PullCodec().group()));
}

}  // namespace kumo
