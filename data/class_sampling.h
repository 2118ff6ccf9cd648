// Class sampling: the training samples of an epoch if its classes have given shares
// (data.class_shares).
//
// A view of a data set of n samples, again of n samples. Class c has the samples [B_c, B_c+1) of
// the view, where B_c is n times the sum of the shares of the classes before it, rounded. They are
// draws from the n_c samples of the class: with d_c = B_c+1 - B_c, sample j of epoch e is draw
// k = e d_c + j - B_c, counted through all epochs. Draws go through the class again and again, each
// time in another order: draw k is at position k mod n_c of permutation k div n_c of the class. So
// the samples of a class are drawn equally often, to one draw, at any time.
//
// A draw is a function of the seed, the epoch and its number in the view, so all processes find the
// same. The order of an epoch is the permutation of the view's samples, as of any set. Transforms
// take the number in the view for their random streams: each draw of a sample is augmented anew.
//
// Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/settings/choices.h"
#include "data/samples/dataset.h"

namespace kumo {

class ClassSampling final : public Dataset {
 public:
  // A view of `whole`, which must outlive it. Requires shares.given(). FailedPrecondition, naming
  // data.class_shares, if samples have no classes, if the shares are not one for each class, or if
  // a class with a share has no samples or gets none of an epoch.
  static Result<std::unique_ptr<ClassSampling>> Make(const ClassShares& shares,
                                                     const Dataset* whole);

  // Draws from a class in an epoch.
  int64_t DrawsOf(int64_t number) const { return bounds_[number + 1] - bounds_[number]; }
  // The drawn sample of the whole set. Requires a sample of the view.
  int64_t SampleOf(const SampleKey& key) const;

  int64_t size() const override { return whole_.size(); }
  const Fields& fields() const override { return whole_.fields(); }
  int classes() const override { return whole_.classes(); }
  std::span<const std::string> class_names() const override { return whole_.class_names(); }
  const std::string& name() const override { return whole_.name(); }
  Status ReadKey(const SampleKey& key, Sample* sample) const override;
  bool in_memory() const override { return whole_.in_memory(); }

  // Memory of a view of that many samples.
  static int64_t BytesFor(int64_t samples) {
    return samples * static_cast<int64_t>(sizeof(int64_t));
  }

 private:
  ClassSampling(const Dataset* whole, std::vector<int64_t> bounds,
                const std::vector<int32_t>& class_of);

  int64_t SamplesOf(int64_t number) const { return begins_[number + 1] - begins_[number]; }

  const Dataset& whole_;
  const std::vector<int64_t> bounds_;  // B_c, and n at the end
  std::vector<int64_t> begins_;        // of the classes in samples_, and n at the end
  std::vector<int64_t> samples_;       // of the whole set, by class
};

}  // namespace kumo
