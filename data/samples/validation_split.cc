#include "data/samples/validation_split.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <glog/logging.h>

#include "common/base/rng.h"

namespace kumo {
namespace {

constexpr uint64_t kSplitSeed = 1;

// Stretch `number` of `count` equal ones, which differ by at most one sample.
Range StretchOf(int64_t samples, int64_t number, int64_t count) {
  const int64_t quotient = samples / count, remainder = samples % count;
  const int64_t begin = number * quotient + std::min(number, remainder);
  return {begin, begin + quotient + (number < remainder ? 1 : 0)};
}

std::vector<int64_t> SamplesOf(int64_t samples, double share, SplitPart part) {
  const std::vector<SplitPart> parts = PartsOfSamples(samples, share);
  std::vector<int64_t> of;
  for (int64_t i = 0; i < samples; ++i) {
    if (parts[i] == part) of.push_back(i);
  }
  return of;
}

class PartOfDataset final : public Dataset {
 public:
  PartOfDataset(std::shared_ptr<const Dataset> whole, std::vector<int64_t> samples, SplitPart part)
      : whole_(std::move(whole)),
        samples_(std::move(samples)),
        part_(part),
        name_(whole_->name() +
              (part == SplitPart::kTraining ? " (training part)" : " (validation part)")) {}

  int64_t size() const override { return std::ssize(samples_); }
  const Fields& fields() const override { return whole_->fields(); }
  int classes() const override { return whole_->classes(); }
  std::span<const std::string> class_names() const override { return whole_->class_names(); }
  std::vector<int32_t> SampleClasses() const override {
    const std::vector<int32_t> of_whole = whole_->SampleClasses();
    std::vector<int32_t> classes;
    if (of_whole.empty()) return classes;
    for (const int64_t sample : samples_) classes.push_back(of_whole[sample]);
    return classes;
  }
  // Notes of the whole set, by one of the parts only.
  const DataNotes& notes() const override {
    return part_ == SplitPart::kTraining ? whole_->notes() : Dataset::notes();
  }
  const std::string& name() const override { return name_; }
  Status ReadKey(const SampleKey& key, Sample* sample) const override {
    CHECK(key.sample >= 0 && key.sample < size()) << name_ << ": sample " << key.sample;
    SampleKey of_whole = key;
    of_whole.sample = samples_[key.sample];
    return whole_->ReadKey(of_whole, sample);
  }
  bool in_memory() const override { return whole_->in_memory(); }
  // The samples between these belong to the other part; pages come back when they are read.
  void LetGo(Range samples) const override {
    if (samples.size() > 0) {
      whole_->LetGo({samples_[samples.begin], samples_[samples.end - 1] + 1});
    }
  }

 private:
  const std::shared_ptr<const Dataset> whole_;
  const std::vector<int64_t> samples_;  // of the whole set, ascending
  const SplitPart part_;
  const std::string name_;
};

}  // namespace

int64_t ValidationSamples(int64_t samples, double share) {
  CHECK_GE(samples, 2);
  const auto wanted = static_cast<int64_t>(std::llround(share * static_cast<double>(samples)));
  return std::clamp<int64_t>(wanted, 1, samples - 1);
}

std::vector<SplitPart> PartsOfSamples(int64_t samples, double share) {
  const int64_t validation = ValidationSamples(samples, share);
  std::vector<SplitPart> parts(samples, SplitPart::kTraining);
  for (int64_t number = 0; number < validation; ++number) {
    const Range stretch = StretchOf(samples, number, validation);
    Rng rng(kSplitSeed, RngPurpose::kValidationSplit, static_cast<uint64_t>(number));
    const auto place = static_cast<int64_t>(rng.NextBelow(static_cast<uint64_t>(stretch.size())));
    parts[stretch.begin + place] = SplitPart::kValidation;
  }
  return parts;
}

std::unique_ptr<Dataset> PartOf(std::shared_ptr<const Dataset> whole, double share, SplitPart part,
                                int64_t limit) {
  std::vector<int64_t> samples = SamplesOf(whole->size(), share, part);
  if (limit > 0 && std::ssize(samples) > limit) samples.resize(limit);
  return std::make_unique<PartOfDataset>(std::move(whole), std::move(samples), part);
}

}  // namespace kumo
