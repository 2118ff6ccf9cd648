#include "common/job/tensor_factors.h"

#include <gtest/gtest.h>

#include "proto/checkpoint.pb.h"
#include "proto/wire.pb.h"

namespace kumo {
namespace {

template <typename Tensor>
class TensorFactorsTest : public testing::Test {};
using Tensors = testing::Types<wire::Tensor, checkpoint::Tensor>;
TYPED_TEST_SUITE(TensorFactorsTest, Tensors);

TYPED_TEST(TensorFactorsTest, WhatIsWrittenIsRead) {
  for (const float rate : {0.0f, 0.5f, 1.0f, 3.0f}) {
    for (const float decay : {0.0f, 0.25f, 1.0f, 2.0f}) {
      TypeParam tensor;
      const StepFactors factors = {.rate = rate, .decay = decay};
      WriteFactors(factors, &tensor);
      TypeParam parsed;
      ASSERT_TRUE(parsed.ParseFromString(tensor.SerializeAsString()));
      EXPECT_EQ(ReadFactors(parsed), factors) << rate << ", " << decay;
    }
  }
}

TYPED_TEST(TensorFactorsTest, FactorsOfOneAddNoByte) {
  TypeParam tensor;
  WriteFactors(StepFactors{}, &tensor);
  EXPECT_EQ(tensor.SerializeAsString(), "");
  EXPECT_EQ(ReadFactors(tensor), StepFactors{});
}

}  // namespace
}  // namespace kumo
