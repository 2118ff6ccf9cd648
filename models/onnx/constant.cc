#include "models/onnx/constant.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "common/base/printable.h"
#include "common/base/text.h"

namespace kumo {
namespace {

using onnx::TensorProto;

static_assert(std::endian::native == std::endian::little, "elements are read as they lie");

float FloatOfHalf(uint16_t half) {
  const int exponent = half >> 10 & 31;
  const int fraction = half & 1023;
  float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                  : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  if (exponent == 31) {
    magnitude = fraction == 0 ? std::numeric_limits<float>::infinity()
                              : std::numeric_limits<float>::quiet_NaN();
  }
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

float FloatOfBfloat(uint16_t half) { return std::bit_cast<float>(uint32_t{half} << 16); }

// Keeps the two integers that stand for something else out of a file's.
int64_t Integer(int64_t element) { return std::max(element, kUnknownExtent + 1); }

template <typename Number, typename To, typename Convert>
std::vector<To> Converted(const std::string& bytes, Convert convert) {
  std::vector<To> elements(bytes.size() / sizeof(Number));
  for (size_t i = 0; i < elements.size(); ++i) {
    Number number;
    std::memcpy(&number, bytes.data() + i * sizeof(Number), sizeof(Number));
    elements[i] = convert(number);
  }
  return elements;
}

template <typename To, typename List, typename Convert>
std::vector<To> ConvertedList(const List& list, Convert convert) {
  std::vector<To> elements;
  elements.reserve(list.size());
  for (const auto number : list) elements.push_back(convert(number));
  return elements;
}

// How the elements of a type lie in a tensor.
struct ElementKind {
  TensorProto::DataType type;
  int64_t bytes;
  OnnxConstant (*of_bytes)(const std::string& bytes);
  OnnxConstant (*of_list)(const TensorProto& tensor);
};

template <typename Number>
OnnxConstant IntegersOfBytes(const std::string& bytes) {
  return OnnxConstant::OfIntegers(
      {}, Converted<Number, int64_t>(bytes, [](Number x) { return Integer(int64_t{x}); }));
}

OnnxConstant IntegersOfList(const TensorProto& tensor) {
  return OnnxConstant::OfIntegers(
      {}, ConvertedList<int64_t>(tensor.int32_data(), [](int32_t x) { return int64_t{x}; }));
}

constexpr ElementKind kElementKinds[] = {
    {TensorProto::FLOAT, 4,
     [](const std::string& bytes) {
       return OnnxConstant::OfFloats({}, Converted<float, float>(bytes, [](float x) { return x; }));
     },
     [](const TensorProto& tensor) {
       return OnnxConstant::OfFloats({}, {tensor.float_data().begin(), tensor.float_data().end()});
     }},
    {TensorProto::DOUBLE, 8,
     [](const std::string& bytes) {
       return OnnxConstant::OfFloats(
           {}, Converted<double, float>(bytes, [](double x) { return static_cast<float>(x); }));
     },
     [](const TensorProto& tensor) {
       return OnnxConstant::OfFloats({}, ConvertedList<float>(tensor.double_data(), [](double x) {
                                       return static_cast<float>(x);
                                     }));
     }},
    {TensorProto::FLOAT16, 2,
     [](const std::string& bytes) {
       return OnnxConstant::OfFloats({}, Converted<uint16_t, float>(bytes, FloatOfHalf));
     },
     [](const TensorProto& tensor) {
       return OnnxConstant::OfFloats({}, ConvertedList<float>(tensor.int32_data(), [](int32_t x) {
                                       return FloatOfHalf(static_cast<uint16_t>(x));
                                     }));
     }},
    {TensorProto::BFLOAT16, 2,
     [](const std::string& bytes) {
       return OnnxConstant::OfFloats({}, Converted<uint16_t, float>(bytes, FloatOfBfloat));
     },
     [](const TensorProto& tensor) {
       return OnnxConstant::OfFloats({}, ConvertedList<float>(tensor.int32_data(), [](int32_t x) {
                                       return FloatOfBfloat(static_cast<uint16_t>(x));
                                     }));
     }},
    {TensorProto::INT64, 8, IntegersOfBytes<int64_t>,
     [](const TensorProto& tensor) {
       return OnnxConstant::OfIntegers({}, ConvertedList<int64_t>(tensor.int64_data(), Integer));
     }},
    {TensorProto::INT32, 4, IntegersOfBytes<int32_t>, IntegersOfList},
    {TensorProto::INT8, 1, IntegersOfBytes<int8_t>, IntegersOfList},
    {TensorProto::UINT8, 1, IntegersOfBytes<uint8_t>, IntegersOfList},
    {TensorProto::BOOL, 1, IntegersOfBytes<uint8_t>, IntegersOfList},
};

Result<std::string> BytesBeside(const TensorProto& tensor, int64_t bytes,
                                const ReadBeside& read_beside) {
  std::string name;
  int64_t offset = 0;
  int64_t length = bytes;
  for (const onnx::StringStringEntryProto& entry : tensor.external_data()) {
    if (entry.key() == "location") name = entry.value();
    const auto number = ParseNumber<int64_t>(entry.value());
    if (entry.key() == "offset") offset = number.value_or(-1);
    if (entry.key() == "length") length = number.value_or(-1);
  }
  if (read_beside == nullptr) return InvalidArgument("its elements are in another file");
  // A file in the model's own folder, and no other.
  if (name.empty() || name == "." || name == ".." || name.find('/') != name.npos) {
    return InvalidArgument("its elements are in the file \"" + Printable(name) +
                           "\", which is not in the model's folder");
  }
  if (offset < 0 || length != bytes) {
    return DataLoss("its shape has " + std::to_string(bytes) + " bytes, but not its part of " +
                    Printable(name));
  }
  return read_beside(name, offset, bytes);
}

}  // namespace

OnnxConstant OnnxConstant::OfFloats(std::vector<int64_t> dims, std::vector<float> elements) {
  return {"", std::move(dims), std::make_shared<const std::vector<float>>(std::move(elements)),
          nullptr};
}

OnnxConstant OnnxConstant::OfIntegers(std::vector<int64_t> dims, std::vector<int64_t> elements) {
  return {"", std::move(dims), nullptr,
          std::make_shared<const std::vector<int64_t>>(std::move(elements))};
}

std::optional<double> OnnxConstant::Scalar() const {
  if (size() == 0) return std::nullopt;
  for (int64_t i = 1; i < size(); ++i) {
    if (at(i) != at(0)) return std::nullopt;
  }
  return at(0);
}

OnnxConstant OnnxConstant::Taken(const StridedView& view) const {
  OnnxConstant taken = *this;
  taken.dims = view.extents;
  if (view.size() == size() && view.IsInOrder()) return taken;
  const auto take = [&view](const auto& elements) {
    auto taken_elements = std::remove_cvref_t<decltype(elements)>();
    taken_elements.reserve(static_cast<size_t>(view.size()));
    ForEachPlace(view, [&](int64_t place) { taken_elements.push_back(elements[place]); });
    return std::make_shared<const std::remove_cvref_t<decltype(elements)>>(
        std::move(taken_elements));
  };
  if (is_float()) {
    taken.floats = take(*floats);
  } else {
    taken.integers = take(*integers);
  }
  return taken;
}

OnnxConstant OnnxConstant::WithDims(std::vector<int64_t> to) const {
  OnnxConstant constant = *this;
  constant.dims = std::move(to);
  return constant;
}

Result<OnnxConstant> ReadConstant(const TensorProto& tensor, const ReadBeside& read_beside) {
  const auto wrong = [&tensor](const Status& status) {
    return status.WithContext("tensor " + Printable(tensor.name()));
  };
  const auto* const kind = std::ranges::find(
      kElementKinds, static_cast<TensorProto::DataType>(tensor.data_type()), &ElementKind::type);
  if (kind == std::end(kElementKinds)) {
    return wrong(InvalidArgument("its elements have the type " +
                                 std::to_string(tensor.data_type()) +
                                 " of ONNX, which is neither float, integer nor boolean"));
  }
  const std::vector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  const bool empty = std::ranges::count(dims, 0) > 0 &&
                     std::ranges::count_if(dims, [](int64_t d) { return d < 0; }) == 0;
  const std::optional<int64_t> size = empty ? 0 : SizeOfExtents(dims);
  if (!size) return wrong(DataLoss("its shape is negative or too large"));
  OnnxConstant constant;
  if (tensor.data_location() == TensorProto::EXTERNAL) {
    const Result<std::string> bytes = BytesBeside(tensor, *size * kind->bytes, read_beside);
    if (!bytes.ok()) return wrong(bytes.status());
    constant = kind->of_bytes(*bytes);
  } else if (!tensor.raw_data().empty()) {
    if (std::ssize(tensor.raw_data()) != *size * kind->bytes) {
      return wrong(DataLoss("its shape has " + std::to_string(*size * kind->bytes) +
                            " bytes, the file has " + std::to_string(tensor.raw_data().size())));
    }
    constant = kind->of_bytes(tensor.raw_data());
  } else {
    constant = kind->of_list(tensor);
  }
  if (constant.size() != *size) {
    return wrong(DataLoss("its shape has " + std::to_string(*size) + " elements, the file has " +
                          std::to_string(constant.size())));
  }
  constant.name = tensor.name();
  constant.dims = dims;
  return constant;
}

}  // namespace kumo
