#include "common/transport/name_disputes.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace kumo {
namespace {

constexpr TimeUs kSilent = 10 * kSecond;

struct Door {
  std::vector<std::pair<std::string, wire::Header>> sent;
  std::set<std::string> gone;
  NameDisputes names{PeerNames(kSilent, false), [this](const std::string& to, wire::Header header) {
                       if (gone.contains(to)) return false;
                       sent.emplace_back(to, std::move(header));
                       return true;
                     }};
  const std::string first = RoutingId("worker/a/1", 1), second = RoutingId("worker/a/1", 2);

  bool Hears(const std::string& routing_id, TimeUs now) {
    const Status heard = names.Hear(routing_id, "worker/a/1", now);
    EXPECT_TRUE(heard.ok() || heard.code() == StatusCode::kFailedPrecondition);
    return heard.ok();
  }
};

TEST(NameDisputesTest, WhoAnswersIsHeardAndTheOtherIsToldSo) {
  Door door;
  EXPECT_TRUE(door.Hears(door.first, 0));
  EXPECT_TRUE(door.sent.empty());
  EXPECT_FALSE(door.Hears(door.second, 1));
  ASSERT_EQ(door.sent.size(), 1u);
  EXPECT_EQ(door.sent[0].first, door.first);
  EXPECT_EQ(door.sent[0].second.type(), wire::PING);
  const uint64_t number = door.sent[0].second.request();

  door.names.OnPong(door.first, "worker/a/1", number + 1);
  door.names.OnPong(door.second, "worker/a/1", number);
  EXPECT_EQ(door.sent.size(), 1u) << "neither answers what was asked";
  door.names.OnPong(door.first, "worker/a/1", number);
  ASSERT_EQ(door.sent.size(), 2u);
  EXPECT_EQ(door.sent[1].first, door.second);
  EXPECT_EQ(door.sent[1].second.type(), wire::REFUSED);
  EXPECT_EQ(door.sent[1].second.refusal().code(),
            static_cast<uint32_t>(StatusCode::kFailedPrecondition));
  EXPECT_NE(door.sent[1].second.refusal().reason().find("worker/a/1"), std::string::npos);
  EXPECT_EQ(*door.names.Find("worker/a/1"), door.first);
}

TEST(NameDisputesTest, WhoseConnectionIsGoneIsReplacedByTheSecondsFirstWord) {
  Door door;
  EXPECT_TRUE(door.Hears(door.first, 0));
  door.gone.insert(door.first);
  EXPECT_TRUE(door.Hears(door.second, 1));
  EXPECT_TRUE(door.sent.empty());
  EXPECT_EQ(*door.names.Find("worker/a/1"), door.second);
  EXPECT_EQ(door.names.Find("worker/b/1"), nullptr);
}

TEST(NameDisputesTest, WhoIsSilentForSoLongIsReplaced) {
  Door door;
  EXPECT_TRUE(door.Hears(door.first, 0));
  TimeUs now = 1;
  for (; now <= kSilent; now += kSecond) EXPECT_FALSE(door.Hears(door.second, now)) << now;
  EXPECT_TRUE(door.Hears(door.second, now + kSecond));
  EXPECT_FALSE(door.Hears(door.first, now + kSecond)) << "it is the second one now";
  EXPECT_EQ(door.sent.back().first, door.second);
}

}  // namespace
}  // namespace kumo
