#include "common/job/parameter_layout.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "common/base/fnv.h"

namespace kumo {
namespace {

constexpr int64_t kAlignment = 16;  // floats: 64 bytes
constexpr int64_t kMaxParameters = int64_t{1} << 36;

int64_t AlignUp(int64_t position) { return (position + kAlignment - 1) / kAlignment * kAlignment; }

std::string Describe(const TensorSpec& tensor) {
  std::ostringstream text;
  text << tensor.name << " " << tensor.ShapeText() << " (" << SegmentName(tensor.segment);
  if (tensor.factors.frozen()) {
    text << ", not trainable";
  } else if (tensor.factors.rate != 1.0f) {
    text << ", learning_rate_factor " << tensor.factors.rate;
  }
  if (tensor.factors.decay != 1.0f) text << ", weight_decay_factor " << tensor.factors.decay;
  text << ")";
  return text.str();
}

bool IsFactor(float x) { return std::isfinite(x) && !std::signbit(x); }

Status CheckTensor(const TensorSpec& tensor) {
  if (tensor.name.empty()) return InvalidArgument("a tensor has no name");
  const int segment = static_cast<int>(tensor.segment);
  if (segment < 0 || segment >= kSegments) {
    return InvalidArgument("tensor " + tensor.name + " is in unknown segment " +
                           std::to_string(segment));
  }
  if (!IsFactor(tensor.factors.rate) || !IsFactor(tensor.factors.decay)) {
    return InvalidArgument("tensor " + tensor.name +
                           " has a factor of its learning rate or weight decay that is negative or "
                           "not finite");
  }
  int64_t size = 1;
  for (int64_t extent : tensor.shape) {
    if (extent < 1 || extent > kMaxParameters / size) {
      return InvalidArgument("tensor " + tensor.name + " has an impossible shape " +
                             tensor.ShapeText());
    }
    size *= extent;
  }
  return OkStatus();
}

// The tensors of each group of a segment.
std::vector<std::vector<int>> GroupsOf(const std::vector<TensorSpec>& tensors, Segment segment) {
  std::vector<std::vector<int>> groups;
  std::map<std::pair<float, float>, size_t> places;  // by factors
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].segment != segment) continue;
    const StepFactors& factors = tensors[i].factors;
    const auto [place, is_new] = places.try_emplace({factors.rate, factors.decay}, groups.size());
    if (is_new) groups.emplace_back();
    groups[place->second].push_back(static_cast<int>(i));
  }
  std::stable_partition(groups.begin(), groups.end(), [&](const std::vector<int>& group) {
    return !tensors[group.front()].factors.frozen();
  });
  return groups;
}

}  // namespace

std::string_view SegmentName(Segment segment) {
  switch (segment) {
    case Segment::kDecayed:
      return "decayed";
    case Segment::kUndecayed:
      return "undecayed";
    case Segment::kStatistics:
      return "statistics";
  }
  return "unknown";
}

int64_t TensorSpec::size() const {
  int64_t size = 1;
  for (int64_t extent : shape) size *= extent;
  return size;
}

std::string TensorSpec::ShapeText() const {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

Result<ParameterLayout> ParameterLayout::Make(std::vector<TensorSpec> tensors) {
  if (tensors.empty()) return InvalidArgument("a network without a parameter cannot be trained");
  std::set<std::string_view> names;
  int64_t total = 0;
  for (const TensorSpec& tensor : tensors) {
    KUMO_RETURN_IF_ERROR(CheckTensor(tensor));
    if (!names.insert(tensor.name).second) {
      return InvalidArgument("two tensors are called " + tensor.name);
    }
    total += tensor.size();
    if (total > kMaxParameters) {
      return InvalidArgument("the network has more than " + std::to_string(kMaxParameters) +
                             " parameters");
    }
  }

  ParameterLayout layout;
  layout.tensors_ = std::move(tensors);
  layout.ranges_.resize(layout.tensors_.size());
  int64_t position = 0;
  for (int segment = 0; segment < kSegments; ++segment) {
    position = AlignUp(position);
    layout.segments_[segment].begin = position;
    for (const auto& members : GroupsOf(layout.tensors_, static_cast<Segment>(segment))) {
      position = AlignUp(position);
      StepGroup& group = layout.groups_.emplace_back();
      group.segment = static_cast<Segment>(segment);
      group.factors = layout.tensors_[members.front()].factors;
      group.range.begin = position;
      for (const int i : members) {
        layout.ranges_[i] = {position, position + layout.tensors_[i].size()};
        position = layout.ranges_[i].end;
      }
      group.range.end = position;
    }
    layout.segments_[segment].end = position;
  }
  layout.size_ = AlignUp(position);

  Fnv1a fingerprint;
  for (const TensorSpec& tensor : layout.tensors_) {
    fingerprint.Add(tensor.name);
    fingerprint.Add(uint64_t{tensor.name.size()});
    fingerprint.Add(static_cast<uint64_t>(tensor.segment));
    fingerprint.Add(uint64_t{tensor.shape.size()});
    for (int64_t extent : tensor.shape) fingerprint.Add(static_cast<uint64_t>(extent));
    if (tensor.factors == StepFactors{}) continue;
    fingerprint.Add(uint64_t{std::bit_cast<uint32_t>(tensor.factors.rate)});
    fingerprint.Add(uint64_t{std::bit_cast<uint32_t>(tensor.factors.decay)});
  }
  layout.fingerprint_ = fingerprint.value();
  return layout;
}

int ParameterLayout::TensorAt(int64_t position) const {
  for (size_t i = 0; i < ranges_.size(); ++i) {
    if (position >= ranges_[i].begin && position < ranges_[i].end) return static_cast<int>(i);
  }
  return -1;
}

std::string ParameterLayout::FirstDifference(const ParameterLayout& other) const {
  const size_t common = std::min(tensors_.size(), other.tensors_.size());
  for (size_t i = 0; i < common; ++i) {
    if (tensors_[i] == other.tensors_[i]) continue;
    return "tensor " + std::to_string(i) + " is " + Describe(tensors_[i]) + " on one side and " +
           Describe(other.tensors_[i]) + " on the other";
  }
  if (tensors_.size() == other.tensors_.size()) return "";
  const auto& longer = tensors_.size() > common ? tensors_ : other.tensors_;
  return "tensor " + std::to_string(common) + ", " + Describe(longer[common]) +
         ", exists on one side only";
}

}  // namespace kumo
