#include "models/ops/ops.h"

#include <cstdint>

namespace kumo {

bool IsNonDecreasing(Activation activation) { return !DerivesFromInput(activation); }

// Two numbers have the same value where a function goes down and up again, as GELU and SiLU do.
bool DerivesFromInput(Activation activation) {
  return activation == Activation::kGelu || activation == Activation::kGeluTanh ||
         activation == Activation::kSilu;
}

namespace {

// Windows along one axis, where at least one fits.
int64_t Windows(const PoolingSpec& spec, int64_t size, int kernel) {
  const int64_t room = size + 2 * spec.pad - kernel;
  if (!spec.ceil) return room / spec.stride + 1;
  const int64_t windows = (room + spec.stride - 1) / spec.stride + 1;
  // The last one has to begin in the input or in front of it, as PyTorch wants it.
  return (windows - 1) * spec.stride >= size + spec.pad ? windows - 1 : windows;
}

}  // namespace

Shape PoolingSpec::output() const {
  return {input.channels(), Windows(*this, input.height(), kernel_height),
          Windows(*this, input.width(), kernel_width)};
}

Shape ConvolutionSpec::output() const {
  const int64_t tall = int64_t{kernel_height - 1} * dilation + 1;
  const int64_t wide = int64_t{kernel_width - 1} * dilation + 1;
  return {outputs, (input.height() + 2 * pad - tall) / stride + 1,
          (input.width() + 2 * pad - wide) / stride + 1};
}

ConvolutionSpec ConvolutionSpec::OfGroup() const {
  ConvolutionSpec spec = *this;
  spec.input = input.WithChannels(channels_per_group());
  spec.outputs /= groups;
  spec.groups = 1;
  return spec;
}

int64_t ConvolutionSpec::products() const {
  return output().size() * channels_per_group() * kernel_height * kernel_width;
}

int64_t RearrangeSpec::SourceOf(int64_t i) const {
  int64_t source = offset;
  for (size_t axis = strides.size(); axis-- > 0;) {
    const int64_t extent = output.extent(static_cast<int>(axis));
    source += i % extent * strides[axis];
    i /= extent;
  }
  return source;
}

bool RearrangeSpec::keeps_order() const {
  if (output.size() != input.size()) return false;
  int64_t stride = 1;
  for (size_t axis = strides.size(); axis-- > 0;) {
    const int64_t extent = output.extent(static_cast<int>(axis));
    if (extent > 1 && strides[axis] != stride) return false;
    stride *= extent;
  }
  return true;
}

Shape ConcatSpec::output() const {
  int64_t channels = 0;
  for (const Shape& input : inputs) channels += input.channels();
  return inputs.front().WithChannels(channels);
}

int64_t ProductsOf(const OpSpec& spec) {
  return std::visit(
      []<typename Spec>(const Spec& op) -> int64_t {
        if constexpr (requires { op.products(); }) {
          return op.products();
        } else {
          return 0;
        }
      },
      spec);
}

}  // namespace kumo
