#include "models/backend/devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

using testing::HasSubstr;

Status FailureOf(const DeviceOptions& options) { return MakeBackend(options).status(); }

TEST(DevicesTest, TheCpuIsThereAndComesFirst) {
  EXPECT_EQ(MakeBackend({}).value()->name(), "cpu");
  EXPECT_EQ(ListDevices().front(), "cpu");
  EXPECT_GE(ListDevices().size(), 2u) << "a GPU, or why there is none";
  EXPECT_EQ(PciBusIdOf("cpu").value(), std::nullopt);
}

TEST(DevicesTest, WhatIsNoDeviceIsRefusedByName) {
  for (const char* name :
       {"", "gpu", "cuda:", "cuda:x", "cuda:1x", "cuda:-1", "cuda:99999999999"}) {
    const Status status = FailureOf({.device = name});
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(status.message(), HasSubstr("'" + std::string(name) + "'"));
  }
}

TEST(DevicesTest, AGpuThatIsNotThereIsRefusedWithTheReason) {
  const Status status = FailureOf({.device = "cuda:99"});
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("network.device=cuda:99: "));
}

TEST(DevicesTest, TheCpuComputesInFloat32Only) {
  for (const char* precision : {"bf16", "fp16"}) {
    const Status status = FailureOf({.precision = precision});
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message(), HasSubstr(std::string("network.precision=") + precision));
  }
  EXPECT_EQ(FailureOf({.precision = "half"}).code(), StatusCode::kInvalidArgument);
}

TEST(DevicesTest, ThreadsAreBounded) {
  for (const int threads : {0, -1, 1025}) {
    EXPECT_EQ(FailureOf({.threads = threads}).code(), StatusCode::kInvalidArgument) << threads;
  }
}

}  // namespace
}  // namespace kumo
