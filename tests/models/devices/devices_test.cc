#include "models/devices/devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

using testing::HasSubstr;

Status FailureOf(const Experiment::Network& settings) { return MakeBackend(settings).status(); }

Experiment::Network Gpu(int number) {
  Experiment::Network settings;
  settings.device = {Device::Kind::kCuda, number};
  return settings;
}

Experiment::Network CpuWith(Precision precision) {
  Experiment::Network settings;
  settings.precision = precision;
  return settings;
}

TEST(DevicesTest, TheCpuIsThereAndComesFirst) {
  EXPECT_EQ(MakeBackend({}).value()->name(), "cpu");
  EXPECT_EQ(ListDevices().front(), "cpu");
  EXPECT_GE(ListDevices().size(), 2u) << "a GPU, or why there is none";
  EXPECT_EQ(PciBusIdOf(Device()).value(), std::nullopt);
}

TEST(DevicesTest, AGpuThatIsNotThereIsRefusedWithTheReason) {
  const Status status = FailureOf(Gpu(99));
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("network.device=cuda:99: "));
}

TEST(DevicesTest, TheCpuComputesInFloat32Only) {
  for (const Precision precision : {Precision::kBf16, Precision::kFp16}) {
    const Status status = FailureOf(CpuWith(precision));
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message(), HasSubstr("network.precision=" + std::string(WordOf(precision))));
  }
}

}  // namespace
}  // namespace kumo
