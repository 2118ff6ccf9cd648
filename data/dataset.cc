#include "data/dataset.h"

#include <algorithm>
#include <optional>

namespace kumo {
namespace {

constexpr int64_t kSamplesAtOnce = 256;

}  // namespace

Status ReadTransformed(const Dataset& dataset,
                       std::span<const std::unique_ptr<const Transform>> transforms,
                       const SampleKey& key, Sample* sample) {
  sample->Reset(dataset.fields());
  KUMO_RETURN_IF_ERROR(dataset.ReadKey(key, sample));
  for (size_t t = 0; t < transforms.size(); ++t) {
    transforms[t]->Apply(key, sample);
    const std::optional<int64_t> number = transforms[t]->PartnerOf(key);
    if (!number) continue;
    const SampleKey of_partner = {key.seed, key.epoch, *number};
    Sample& partner = sample->Partner(dataset.fields());
    KUMO_RETURN_IF_ERROR(dataset.ReadKey(of_partner, &partner));
    for (size_t p = 0; p <= t; ++p) transforms[p]->Apply(of_partner, &partner);
    transforms[t]->Mix(key, partner, sample);
  }
  return OkStatus();
}

Status ForEachSample(const Dataset& dataset, int64_t most,
                     const std::function<void(const Sample&)>& see) {
  const int64_t count = std::min(most, dataset.size());
  Sample sample(dataset.fields());
  int64_t kept = 0;  // the first sample that has not been let go
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = count == dataset.size() ? i : i * dataset.size() / count;
    KUMO_RETURN_IF_ERROR(dataset.Read(index, &sample));
    see(sample);
    if (index + 1 - kept < kSamplesAtOnce && i + 1 < count) continue;
    dataset.LetGo({kept, index + 1});
    kept = index + 1;
  }
  return OkStatus();
}

}  // namespace kumo
