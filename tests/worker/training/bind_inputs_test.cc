#include "worker/training/bind_inputs.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "models/backend/cpu/cpu_backend.h"

namespace kumo {
namespace {

TEST(ConnectNetTest, TheSettingThatMakesImageFilesFitIsNamed) {
  model::Network network;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(name: "n" input { channels: 3 height: 8 width: 8 }
         layers { name: "flat" flatten {} }
         layers { name: "fc" fully_connected { outputs: 2 } }
         layers { name: "loss" softmax_cross_entropy {} })",
      &network));
  const auto backend = MakeCpuBackend(1);
  const auto net = Net::Make(network, 4, backend.get()).value();
  const Field label = {kLabelField, NumberType::kInt32, {}};
  const auto connect = [&](const std::string& reader, std::vector<int64_t> extents) {
    return BindInputs(reader, {{kImageField, NumberType::kUint8, std::move(extents)}, label}, {},
                      net.get());
  };
  EXPECT_TRUE(connect("image_folder", {3, 8, 8}).ok());
  EXPECT_THAT(connect("image_folder", {3, 480, 640}).message(),
              testing::EndsWith("; with data.image_size = 3x8x8 all images are made to be that"));
  EXPECT_THAT(connect("idx", {3, 9, 8}).message(), testing::Not(testing::HasSubstr("image_size")));
  // Of the right size, and something else is wrong.
  EXPECT_THAT(BindInputs("image_map", {{kImageField, NumberType::kUint8, {3, 8, 8}}}, {}, net.get())
                  .message(),
              testing::Not(testing::HasSubstr("image_size")));
}

}  // namespace
}  // namespace kumo
