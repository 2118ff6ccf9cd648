#include "models/onnx/registry.h"

#include <algorithm>

#include "models/onnx/forms.h"

namespace kumo {
namespace {

template <typename Spec, OnnxValue (*kWrite)(const Spec& spec, const OnnxNode& node)>
constexpr OnnxForm FormOf() {
  return {Spec::kName, [](const OnnxNode& node) { return kWrite(*node.node.As<Spec>(), node); }};
}

// The one list of forms.
constexpr OnnxForm kForms[] = {
    FormOf<ConvolutionSpec, ConvolutionForm>(),
    FormOf<FullyConnectedSpec, FullyConnectedForm>(),
    FormOf<PoolingSpec, PoolingForm>(),
    FormOf<ActivationSpec, ActivationForm>(),
    FormOf<FlattenSpec, FlattenForm>(),
    FormOf<DropoutSpec, DropoutForm>(),
    FormOf<BatchNormalisationSpec, BatchNormalisationForm>(),
    FormOf<GroupNormalisationSpec, GroupNormalisationForm>(),
    FormOf<L2NormalisationSpec, L2NormalisationForm>(),
    FormOf<PositionNormalisationSpec, PositionNormalisationForm>(),
    FormOf<EmbeddingSpec, EmbeddingForm>(),
    FormOf<PositionalEmbeddingSpec, PositionalEmbeddingForm>(),
    FormOf<AttentionSpec, AttentionForm>(),
    FormOf<RearrangeSpec, RearrangeForm>(),
    FormOf<AddSpec, AddForm>(),
    FormOf<MultiplySpec, MultiplyForm>(),
    FormOf<ConcatSpec, ConcatForm>(),
};

}  // namespace

std::span<const OnnxForm> OnnxForms() { return kForms; }

const OnnxForm* FindOnnxForm(const OpSpec& spec) {
  const std::string_view name =
      std::visit([]<typename Spec>(const Spec&) { return std::string_view(Spec::kName); }, spec);
  const auto* const found = std::ranges::find(kForms, name, &OnnxForm::spec);
  return found == std::end(kForms) ? nullptr : found;
}

}  // namespace kumo
