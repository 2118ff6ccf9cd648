#include "data/transforms/difficult.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "data/transforms/geometry.h"

namespace kumo {
namespace {

class DropDifficult : public Transform {
 public:
  DropDifficult(std::vector<int> lists, int difficult)
      : lists_(std::move(lists)), difficult_(difficult) {}

  void Apply(const SampleKey& /*key*/, Sample* sample) const override {
    const std::span<const std::byte> flags = sample->field(difficult_);
    std::vector<int64_t> kept;
    for (size_t i = 0; i < flags.size(); ++i) {
      if (flags[i] == std::byte{0}) kept.push_back(static_cast<int64_t>(i));
    }
    for (const int f : lists_) sample->KeepEntries(f, kept);
  }

 private:
  const std::vector<int> lists_;  // of the objects
  const int difficult_;           // one of them
};

}  // namespace

Result<std::unique_ptr<const Transform>> MakeDropDifficult(const TransformRequest& request) {
  std::unique_ptr<const Transform> transform;
  const int difficult = FindObjectFields(request.fields).difficult;
  if (request.training && !request.data.train_difficult && difficult >= 0 &&
      FindPicture(request.fields) >= 0) {
    transform = std::make_unique<DropDifficult>(MovedFields(request.fields).lists, difficult);
  }
  return transform;
}

}  // namespace kumo
