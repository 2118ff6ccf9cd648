#include "common/checkpoint/tensor_list.h"

#include <string>
#include <utility>
#include <vector>

namespace kumo {
namespace {

Status Damaged(const checkpoint::Manifest& manifest, const std::string& what) {
  return DataLoss("checkpoint " + manifest.name() + ": its list of tensors " + what);
}

}  // namespace

void SetTensors(const ParameterLayout& layout, checkpoint::Manifest* manifest) {
  manifest->clear_tensors();
  for (size_t i = 0; i < layout.tensors().size(); ++i) {
    const TensorSpec& spec = layout.tensors()[i];
    checkpoint::Tensor* tensor = manifest->add_tensors();
    tensor->set_name(spec.name);
    tensor->mutable_shape()->Add(spec.shape.begin(), spec.shape.end());
    tensor->set_segment(std::string(SegmentName(spec.segment)));
    tensor->set_begin(layout.tensor(static_cast<int>(i)).begin);
  }
}

bool HasTensors(const checkpoint::Manifest& manifest) { return manifest.tensors_size() > 0; }

Result<ParameterLayout> LayoutOf(const checkpoint::Manifest& manifest) {
  std::vector<TensorSpec> specs;
  for (const checkpoint::Tensor& tensor : manifest.tensors()) {
    TensorSpec& spec = specs.emplace_back();
    spec.name = tensor.name();
    spec.shape = {tensor.shape().begin(), tensor.shape().end()};
    int segment = 0;
    while (segment < kSegments && SegmentName(static_cast<Segment>(segment)) != tensor.segment()) {
      ++segment;
    }
    if (segment == kSegments) return Damaged(manifest, "has a segment '" + tensor.segment() + "'");
    spec.segment = static_cast<Segment>(segment);
  }
  Result<ParameterLayout> layout = ParameterLayout::Make(std::move(specs));
  if (!layout.ok()) return Damaged(manifest, "is no network's: " + layout.status().message());
  for (int i = 0; i < manifest.tensors_size(); ++i) {
    if (layout->tensor(i).begin != manifest.tensors(i).begin()) {
      return Damaged(manifest, "has " + manifest.tensors(i).name() + " in another place");
    }
  }
  if (layout->fingerprint() != manifest.fingerprint()) {
    return Damaged(manifest, "is of another network than its weights");
  }
  return layout;
}

}  // namespace kumo
