#include "data/class_sampling.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <glog/logging.h>

#include "common/base/rng.h"
#include "common/settings/option_value.h"
#include "data/permutation.h"

namespace kumo {
namespace {

constexpr size_t kNamedClasses = 5;  // in a message

std::vector<int64_t> BoundsOf(const std::vector<double>& shares, int64_t samples) {
  const double largest = std::ranges::max(shares);  // a sum of huge shares stays finite
  double total = 0;
  for (const double share : shares) total += share / largest;
  std::vector<int64_t> bounds = {0};
  double sum = 0;
  for (const double share : shares) {
    sum += share / largest;
    bounds.push_back(std::llround(static_cast<double>(samples) * sum / total));
  }
  return bounds;
}

// "class 3 (cat)", "classes 3 (cat), 5 (dog) and 7 more"
std::string Named(const Dataset& dataset, const std::vector<int64_t>& classes) {
  const std::span<const std::string> names = dataset.class_names();
  std::string text = classes.size() == 1 ? "class " : "classes ";
  for (size_t i = 0; i < std::min(classes.size(), kNamedClasses); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(classes[i]);
    if (!names.empty()) text += " (" + names[classes[i]] + ")";
  }
  if (classes.size() > kNamedClasses) {
    text += " and " + std::to_string(classes.size() - kNamedClasses) + " more";
  }
  return text;
}

}  // namespace

Result<std::unique_ptr<ClassSampling>> ClassSampling::Make(const ClassShares& shares,
                                                           const Dataset* whole) {
  const std::string problem = "data.class_shares = " + WriteValue(shares) + ", but ";
  const int64_t classes = whole->classes();
  const std::vector<int32_t> class_of = whole->SampleClasses();
  if (class_of.empty() || classes == 0) {
    return FailedPrecondition(problem + "samples of " + whole->name() +
                              " have no classes; remove the setting");
  }
  const std::vector<double> of_class =
      shares.equal ? std::vector<double>(classes, 1.0) : shares.of_class;
  if (std::ssize(of_class) != classes || std::ranges::max(of_class) <= 0) {
    return FailedPrecondition(problem + whole->name() + " has " + std::to_string(classes) +
                              " classes; give a share for each, not 0 for all");
  }
  std::vector<int64_t> bounds = BoundsOf(of_class, whole->size());
  std::vector<int64_t> counts(classes);
  for (const int32_t number : class_of) ++counts[number];
  std::vector<int64_t> empty, never_drawn;
  for (int64_t c = 0; c < classes; ++c) {
    if (of_class[c] <= 0) continue;
    if (counts[c] == 0) empty.push_back(c);
    if (bounds[c + 1] == bounds[c]) never_drawn.push_back(c);
  }
  if (!empty.empty()) {
    return FailedPrecondition(problem + whole->name() + " has no samples of " +
                              Named(*whole, empty) +
                              "; list the shares of all classes with 0 there, or add samples");
  }
  if (!never_drawn.empty()) {
    return FailedPrecondition(problem + "of the " + std::to_string(whole->size()) +
                              " samples of an epoch " + Named(*whole, never_drawn) +
                              " would get none; raise the share, or set it to 0");
  }
  return std::unique_ptr<ClassSampling>(new ClassSampling(whole, std::move(bounds), class_of));
}

ClassSampling::ClassSampling(const Dataset* whole, std::vector<int64_t> bounds,
                             const std::vector<int32_t>& class_of)
    : whole_(*whole),
      bounds_(std::move(bounds)),
      begins_(bounds_.size()),
      samples_(class_of.size()) {
  CHECK_EQ(std::ssize(class_of), whole_.size()) << whole_.name();
  CHECK_EQ(bounds_.back(), whole_.size()) << whole_.name();
  for (const int32_t number : class_of) ++begins_[number + 1];
  for (size_t c = 1; c < begins_.size(); ++c) begins_[c] += begins_[c - 1];
  std::vector<int64_t> next = begins_;
  for (int64_t i = 0; i < std::ssize(class_of); ++i) samples_[next[class_of[i]]++] = i;
}

int64_t ClassSampling::SampleOf(const SampleKey& key) const {
  CHECK(key.sample >= 0 && key.sample < size()) << name() << ": sample " << key.sample;
  const int64_t number = std::ranges::upper_bound(bounds_, key.sample) - bounds_.begin() - 1;
  const int64_t draw = key.epoch * DrawsOf(number) + key.sample - bounds_[number];
  const int64_t samples = SamplesOf(number);
  const EpochPermutation order(samples,
                               Rng(key.seed, RngPurpose::kClassOrder, static_cast<uint64_t>(number),
                                   static_cast<uint64_t>(draw / samples)));
  return samples_[begins_[number] + order.At(draw % samples)];
}

Status ClassSampling::ReadKey(const SampleKey& key, Sample* sample) const {
  SampleKey of_whole = key;
  of_whole.sample = SampleOf(key);
  return whole_.ReadKey(of_whole, sample);
}

}  // namespace kumo
