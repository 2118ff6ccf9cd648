#include "common/tensor_files/tensor_file.h"

#include <cstring>
#include <fstream>
#include <limits>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Held {
  std::vector<int64_t> shape;
  std::vector<float> numbers;
  bool operator==(const Held&) const = default;
};
using HeldTensors = std::map<std::string, Held>;

const HeldTensors& Some() {
  static const HeldTensors& some = *[] {
    auto* tensors = new HeldTensors{{"conv1.weight", {{4, 2, 3, 3}, {}}},
                                    {"conv1.bias", {{4}, {}}},
                                    {"a.scalar", {{}, {}}},
                                    {"z.nothing", {{0, 3}, {}}}};
    float next = -3.25f;
    for (auto& [name, held] : *tensors) {
      int64_t size = 1;
      for (const int64_t extent : held.shape) size *= extent;
      held.numbers.resize(size);
      for (float& x : held.numbers) x = next += 0.37f;
    }
    return tensors;
  }();
  return some;
}

std::string EndingOf(TensorFormat format) {
  return format == TensorFormat::kNpz ? ".npz" : ".safetensors";
}

class TensorFileTest : public testing::TestWithParam<TensorFormat> {
 protected:
  std::string Path() { return directory_ / ("weights" + EndingOf(GetParam())); }
  std::string Write(const HeldTensors& tensors) {
    std::vector<NamedTensor> named;
    for (const auto& [name, held] : tensors) named.push_back({name, held.shape, held.numbers});
    const Status written = WriteTensorFile(files_, Path(), GetParam(), named);
    EXPECT_TRUE(written.ok()) << written.message();
    return ReadWholeFile(files_, Path(), 1 << 30).value();
  }
  // All that the file holds, or the error.
  Result<HeldTensors> Read(int64_t most_numbers = 1 << 20) {
    HeldTensors tensors;
    const Status read = ReadTensorFile(files_, Path(), GetParam(),
                                       [&](const FileTensor& tensor) -> Result<std::span<float>> {
                                         Held& held = tensors[tensor.name];
                                         held.shape = tensor.shape;
                                         if (!tensor.unreadable.empty()) {
                                           unreadable_[tensor.name] = tensor.unreadable;
                                           return std::span<float>();
                                         }
                                         if (tensor.size > most_numbers) return std::span<float>();
                                         held.numbers.resize(tensor.size);
                                         return std::span(held.numbers);
                                       });
    if (!read.ok()) return read;
    return tensors;
  }
  Result<HeldTensors> ReadBytes(std::string_view bytes) {
    std::ofstream(Path(), std::ios::binary) << bytes;
    return Read();
  }

  test::ScratchDirectory directory_;
  PosixFileSystem files_;
  std::map<std::string, std::string> unreadable_;
};

INSTANTIATE_TEST_SUITE_P(Formats, TensorFileTest,
                         testing::Values(TensorFormat::kSafetensors, TensorFormat::kNpz),
                         [](const auto& format) {
                           return format.param == TensorFormat::kNpz ? "Npz" : "Safetensors";
                         });

TEST_P(TensorFileTest, WhatIsWrittenIsReadBitForBit) {
  Write(Some());
  const auto read = Read();
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, Some());
  EXPECT_EQ(TensorFormatOf(Path()), GetParam());
}

TEST_P(TensorFileTest, TheSameTensorsMakeTheSameBytes) { EXPECT_EQ(Write(Some()), Write(Some())); }

TEST_P(TensorFileTest, WhatIsNotWantedIsPassedOver) {
  Write(Some());
  const auto read = Read(/*most_numbers=*/4);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_TRUE(read->at("conv1.weight").numbers.empty());
  EXPECT_EQ(read->at("conv1.bias"), Some().at("conv1.bias"));
}

TEST_P(TensorFileTest, AFileThatIsCutOffAnywhereIsRefusedAndNamed) {
  const std::string whole = Write(Some());
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto read = ReadBytes(std::string_view(whole).substr(0, size));
    ASSERT_FALSE(read.ok()) << size;
    ASSERT_EQ(read.status().code(), StatusCode::kDataLoss) << read.status().message();
    ASSERT_THAT(read.status().message(), HasSubstr(Path())) << size;
  }
}

TEST_P(TensorFileTest, AnyChangedByteIsAnErrorOrAnotherFile) {
  const std::string whole = Write(Some());
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ (1 << (i % 8)));
    const auto read = ReadBytes(changed);
    if (read.ok()) continue;
    ASSERT_THAT(read.status().message(), HasSubstr(Path()));
  }
}

TEST_P(TensorFileTest, ANumberThatIsNotFiniteIsRefusedByName) {
  HeldTensors tensors = Some();
  tensors["conv1.bias"].numbers[2] = std::numeric_limits<float>::quiet_NaN();
  Write(tensors);
  EXPECT_THAT(Read().status().message(),
              HasSubstr("conv1.bias: has an element that is not finite"));
}

TEST_P(TensorFileTest, NoFileIsNotFound) {
  EXPECT_EQ(Read().status().code(), StatusCode::kNotFound);
}

class SafetensorsTest : public TensorFileTest {
 protected:
  static std::string File(const std::string& header, const std::string& numbers) {
    const uint64_t length = header.size();
    std::string bytes(sizeof(length), ' ');
    std::memcpy(bytes.data(), &length, sizeof(length));
    return bytes + header + numbers;
  }
  std::string Refusal(const std::string& header, size_t bytes) {
    return ReadBytes(File(header, std::string(bytes, '\0'))).status().message();
  }
};
INSTANTIATE_TEST_SUITE_P(, SafetensorsTest, testing::Values(TensorFormat::kSafetensors),
                         [](const auto&) { return "Hostile"; });

TEST_P(SafetensorsTest, ALengthThatTheFileDoesNotHaveCostsNothing) {
  std::string bytes(8, '\xff');
  EXPECT_THAT(ReadBytes(bytes).status().message(), HasSubstr("18446744073709551615 bytes"));
  bytes = std::string(8, '\0');
  bytes[4] = 1;  // 4 GiB
  EXPECT_THAT(ReadBytes(bytes + "{}").status().message(), HasSubstr("4294967296 bytes"));
}

TEST_P(SafetensorsTest, OffsetsMustFillTheFileWithoutGapOrOverlap) {
  const auto tensor = [](const char* name, const char* shape, const char* offsets) {
    return std::string("\"") + name + R"(":{"dtype":"F32","shape":)" + shape +
           R"(,"data_offsets":)" + offsets + "}";
  };
  EXPECT_EQ(Refusal("{" + tensor("a", "[1]", "[0,4]") + "," + tensor("b", "[1]", "[4,8]") + "}", 8),
            "");
  EXPECT_THAT(
      Refusal("{" + tensor("a", "[2]", "[0,8]") + "," + tensor("b", "[1]", "[4,8]") + "}", 8),
      HasSubstr("tensor b begins at byte 4, but the previous one ends at 8"));
  EXPECT_THAT(
      Refusal("{" + tensor("a", "[1]", "[0,4]") + "," + tensor("b", "[1]", "[8,12]") + "}", 12),
      HasSubstr("begins at byte 8"));
  EXPECT_THAT(Refusal("{" + tensor("a", "[1]", "[4,8]") + "}", 8), HasSubstr("begins at byte 4"));
  EXPECT_THAT(Refusal("{" + tensor("a", "[1]", "[0,4]") + "}", 5), HasSubstr("the file has 5"));
  EXPECT_THAT(Refusal("{" + tensor("a", "[3]", "[0,12]") + "}", 8), HasSubstr("the file has 8"));
  EXPECT_THAT(Refusal("{" + tensor("a", "[1]", "[4,0]") + "}", 4),
              HasSubstr("end is before its begin"));
  EXPECT_THAT(Refusal("{" + tensor("a", "[2]", "[0,4]") + "}", 4), HasSubstr("has 8 bytes"));
  EXPECT_THAT(Refusal("{" + tensor("a", "[1]", "[0]") + "}", 4), HasSubstr("two numbers"));
  EXPECT_THAT(Refusal("{" + tensor("a", "[4294967296,4294967296]", "[0,0]") + "}", 0),
              HasSubstr("2^36 elements"));
  EXPECT_THAT(Refusal("{" + tensor("a", "[18446744073709551615]", "[0,4]") + "}", 4),
              HasSubstr("2^36 elements"));
  EXPECT_THAT(Refusal("{" + tensor("a", "[1]", "[0,18446744073709551615]") + "}", 4),
              HasSubstr("4 bytes"));
}

TEST_P(SafetensorsTest, AHeaderThatIsNoObjectOfTensorsIsRefused) {
  for (const std::string header :
       {"", "[]", "null", "{", "{\"a\":1}", "{\"a\":{\"shape\":[-1]}}", "{} {}", "{}, \"b\": {}",
        R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
        R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
        R"({"":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})"}) {
    EXPECT_NE(Refusal(header, 4), "") << header;
  }
  EXPECT_NE(Refusal(std::string(1 << 20, '{'), 0), "");
  EXPECT_NE(Refusal("{\"a\":" + std::string(1 << 20, '['), 0), "");
  EXPECT_EQ(Refusal("{}  \n", 0), "");
}

TEST_P(SafetensorsTest, OtherTypesAreWidenedOrNamed) {
  std::string numbers("\x00\x3c\x00\xc0", 4);     // float16: 1, -2
  numbers += std::string("\x80\x3f\x00\xc0", 4);  // bfloat16: 1, -2
  const double doubles[] = {0.5, 1e-300};
  numbers.append(reinterpret_cast<const char*>(doubles), sizeof(doubles));
  numbers += std::string(8, '\0');
  const auto read = ReadBytes(File(
      R"({"__metadata__":{"format":"pt"},"h":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},)"
      R"("b":{"dtype":"BF16","shape":[2],"data_offsets":[4,8]},)"
      R"("d":{"dtype":"F64","shape":[2],"data_offsets":[8,24]},)"
      R"("i":{"dtype":"I64","shape":[],"data_offsets":[24,32]}})",
      numbers));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_THAT(read->at("h").numbers, ElementsAre(1.0f, -2.0f));
  EXPECT_THAT(read->at("b").numbers, ElementsAre(1.0f, -2.0f));
  EXPECT_THAT(read->at("d").numbers, ElementsAre(0.5f, 0.0f));
  EXPECT_EQ(unreadable_,
            (std::map<std::string, std::string>{{"i", "its elements are of type I64"}}));
}

}  // namespace
}  // namespace kumo
