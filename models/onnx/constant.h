// Constant of an ONNX graph that is read: a tensor of the file, or what shape arithmetic and
// transpositions make of tensors.
//
// Values whose elements are shared; immutable, thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "models/onnx/strided_view.h"
#include "proto/onnx.pb.h"

namespace kumo {

// An integer that stands for the size of the batch, and one that follows from it.
inline constexpr int64_t kBatchExtent = std::numeric_limits<int64_t>::min();
inline constexpr int64_t kUnknownExtent = kBatchExtent + 1;

struct OnnxConstant {
  std::string name;  // of the file's tensor whose elements these are; "" for computed ones
  std::vector<int64_t> dims;
  // Elements in C order, in one of the two; booleans are integers.
  std::shared_ptr<const std::vector<float>> floats = nullptr;
  std::shared_ptr<const std::vector<int64_t>> integers = nullptr;

  static OnnxConstant OfFloats(std::vector<int64_t> dims, std::vector<float> elements);
  static OnnxConstant OfIntegers(std::vector<int64_t> dims, std::vector<int64_t> elements);

  bool is_float() const { return floats != nullptr; }
  int64_t size() const {
    return static_cast<int64_t>(is_float() ? floats->size() : integers->size());
  }
  double at(int64_t i) const {
    return is_float() ? (*floats)[i] : static_cast<double>((*integers)[i]);
  }
  // The number that all elements are; none if there are several.
  std::optional<double> Scalar() const;
  // The elements at the places of the view.
  OnnxConstant Taken(const StridedView& view) const;
  OnnxConstant WithDims(std::vector<int64_t> to) const;
};

// Bytes of a file beside the model's: `length` from `offset` on; to the end for a length of -1.
using ReadBeside =
    std::function<Result<std::string>(const std::string& name, int64_t offset, int64_t length)>;

// Most elements of a constant that is computed. The file's bytes bound its own constants.
inline constexpr int64_t kMostComputed = int64_t{1} << 23;

// InvalidArgument if its elements have another type than numbers; DataLoss if they are not as many
// as its shape says. Nothing is allocated for elements that the file does not have.
Result<OnnxConstant> ReadConstant(const onnx::TensorProto& tensor, const ReadBeside& read_beside);

}  // namespace kumo
