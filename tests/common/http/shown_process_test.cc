#include "common/http/shown_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const ProcessTitle kTitle = {"kumo-server", "server-0", "1", "abc"};

TEST(ShownProcess, ShowsNothingWhereNobodyAsksForIt) {
  const SteadyClock clock;
  const auto shown = ShownProcess::Start("", "http.address", kTitle, &clock);
  ASSERT_TRUE(shown.ok());
  EXPECT_EQ(*shown, nullptr);
}

TEST(ShownProcess, AnAddressThatIsTakenIsAnErrorOfWhoAskedForIt) {
  const SteadyClock clock;
  const auto first = ShownProcess::Start("127.0.0.1:0", "--http", kTitle, &clock);
  ASSERT_TRUE(first.ok());
  const std::string taken = (*first)->address();
  const auto second = ShownProcess::Start(taken, "http.address", kTitle, &clock);
  EXPECT_EQ(second.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(second.status().message(), StartsWith("http.address"));
  EXPECT_THAT(second.status().message(), HasSubstr(taken));
}

TEST(ShownProcess, ABrowserIsGivenANameThatItCanConnectTo) {
  const SteadyClock clock;
  const auto local = ShownProcess::Start("127.0.0.1:0", "--http", kTitle, &clock);
  ASSERT_TRUE(local.ok());
  EXPECT_EQ((*local)->Url("gpu-7"), "http://" + (*local)->address() + "/");
  const auto open = ShownProcess::Start("*:0", "--http", kTitle, &clock);
  ASSERT_TRUE(open.ok());
  const std::string address = (*open)->address();
  EXPECT_EQ((*open)->Url("gpu-7"), "http://gpu-7" + address.substr(address.rfind(':')) + "/");
}

}  // namespace
}  // namespace kumo
