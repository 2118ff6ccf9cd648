// The registry's view of the forms: one function each, told about in registry.h.
#pragma once

#include "models/onnx/registry.h"

namespace kumo {

// convolution_forms.cc
OnnxValue ConvolutionForm(const ConvolutionSpec& spec, const OnnxNode& node);
OnnxValue FullyConnectedForm(const FullyConnectedSpec& spec, const OnnxNode& node);
OnnxValue PoolingForm(const PoolingSpec& spec, const OnnxNode& node);

// normalisation_forms.cc
OnnxValue BatchNormalisationForm(const BatchNormalisationSpec& spec, const OnnxNode& node);
OnnxValue GroupNormalisationForm(const GroupNormalisationSpec& spec, const OnnxNode& node);
OnnxValue L2NormalisationForm(const L2NormalisationSpec& spec, const OnnxNode& node);

// sequence_forms.cc
OnnxValue PositionProductForm(const FullyConnectedSpec& spec, const OnnxNode& node);
OnnxValue PositionNormalisationForm(const PositionNormalisationSpec& spec, const OnnxNode& node);
OnnxValue EmbeddingForm(const EmbeddingSpec& spec, const OnnxNode& node);
OnnxValue PositionalEmbeddingForm(const PositionalEmbeddingSpec& spec, const OnnxNode& node);
OnnxValue AttentionForm(const AttentionSpec& spec, const OnnxNode& node);
OnnxValue RearrangeForm(const RearrangeSpec& spec, const OnnxNode& node);

// elementwise_forms.cc
OnnxValue ActivationForm(const ActivationSpec& spec, const OnnxNode& node);
OnnxValue FlattenForm(const FlattenSpec& spec, const OnnxNode& node);
OnnxValue DropoutForm(const DropoutSpec& spec, const OnnxNode& node);
OnnxValue AddForm(const AddSpec& spec, const OnnxNode& node);
OnnxValue MultiplyForm(const MultiplySpec& spec, const OnnxNode& node);
OnnxValue ConcatForm(const ConcatSpec& spec, const OnnxNode& node);

// What an op applies to its result, where it does.
OnnxValue Activated(Activation activation, float slope, const OnnxValue& value,
                    OnnxBuilder* builder);

// Channels, height and width: what ops of planes read. A vector's are n x 1 x 1.
std::vector<int64_t> PlaneExtents(const Shape& shape);

}  // namespace kumo
