#include "common/job/parameter_layout.h"

#include <algorithm>
#include <set>

#include "common/base/fnv.h"

namespace kumo {
namespace {

constexpr int64_t kAlignment = 16;  // floats: 64 bytes
constexpr int64_t kMaxParameters = int64_t{1} << 36;

int64_t AlignUp(int64_t position) { return (position + kAlignment - 1) / kAlignment * kAlignment; }

std::string Describe(const TensorSpec& tensor) {
  return tensor.name + " " + tensor.ShapeText() + " (" + std::string(SegmentName(tensor.segment)) +
         ")";
}

Status CheckTensor(const TensorSpec& tensor) {
  if (tensor.name.empty()) return InvalidArgument("a tensor has no name");
  const int segment = static_cast<int>(tensor.segment);
  if (segment < 0 || segment >= kSegments) {
    return InvalidArgument("tensor " + tensor.name + " is in unknown segment " +
                           std::to_string(segment));
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
    for (size_t i = 0; i < layout.tensors_.size(); ++i) {
      if (static_cast<int>(layout.tensors_[i].segment) != segment) continue;
      layout.ranges_[i] = {position, position + layout.tensors_[i].size()};
      position = layout.ranges_[i].end;
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
