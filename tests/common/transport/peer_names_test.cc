
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/transport/peer_names.h"

namespace kumo {

namespace {

constexpr TimeUs kSilent = 3 * kSecond;
const PeerName kName = "server/1";
const std::string kFirst = RoutingId(kName, 1);
const std::string kOther = RoutingId(kName, 2);

TEST(PeerNamesTest, RoutingIdsSayTheirNameAndNothingElseDoes) {
  EXPECT_EQ(kFirst, "server/1#0000000000000001");
  EXPECT_EQ(NameIn(kFirst), kName);
  EXPECT_EQ(NameIn(RoutingId("worker/a#b/7", ~uint64_t{0})), "worker/a#b/7");
  EXPECT_EQ(NameIn(RoutingId(std::string(kLongestPeerName, 'x'), 1))->size(), kLongestPeerName);
  for (const std::string& id :
       {std::string(), std::string("server/1"), std::string("#0000000000000001"),
        std::string("server/1#000000000000001"), std::string("server/1#000000000000000X"),
        std::string("server/1-0000000000000001"), std::string("a b#0000000000000001"),
        std::string("a\n#0000000000000001"), std::string("\0\0\0\0\1", 5)}) {
    EXPECT_EQ(NameIn(id), std::nullopt) << id;
  }
}

TEST(PeerNamesTest, WhoAnswersKeepsItsNameAndTheOtherIsRefused) {
  PeerNames names(kSilent, false);
  EXPECT_TRUE(names.Hear(kFirst, kName, 0));
  // Asking goes on for ever: each time the first answers.
  for (TimeUs now = 1; now < 100 * kSilent; now += kSecond / 2) {
    ASSERT_FALSE(names.Hear(kOther, kName, now));
    const auto question = names.Ask(kOther, kName, now);
    ASSERT_TRUE(question);
    EXPECT_EQ(question->to, kFirst);
    EXPECT_EQ(names.Answer(kFirst, kName, question->number), kOther);
    EXPECT_EQ(names.Answer(kFirst, kName, question->number), std::nullopt) << "once";
  }
  EXPECT_EQ(*names.Find(kName), kFirst);
}

TEST(PeerNamesTest, WhoIsSilentLosesItsNameAndIsTheOtherOneFromThenOn) {
  PeerNames names(kSilent, false);
  EXPECT_TRUE(names.Hear(kFirst, kName, 0));
  TimeUs now = 10 * kSecond;
  const TimeUs wanted = now;
  for (; now <= wanted + kSilent; now += kSecond / 2) {
    EXPECT_FALSE(names.Hear(kOther, kName, now));
  }
  EXPECT_TRUE(names.Hear(kOther, kName, now));
  EXPECT_EQ(*names.Find(kName), kOther);
  EXPECT_FALSE(names.Hear(kFirst, kName, now));
  const auto question = names.Ask(kFirst, kName, now);
  EXPECT_EQ(names.Answer(kOther, kName, question->number), kFirst);
}

TEST(PeerNamesTest, WhatTheFirstHasSentEarlierIsNoAnswer) {
  PeerNames names(kSilent, false);
  EXPECT_TRUE(names.Hear(kFirst, kName, 0));
  EXPECT_FALSE(names.Hear(kOther, kName, 1));
  EXPECT_TRUE(names.Hear(kFirst, kName, 2)) << "from before its end, maybe";
  const auto question = names.Ask(kOther, kName, 3);
  EXPECT_EQ(names.Answer(kFirst, kName, question->number + 1), std::nullopt);
  EXPECT_EQ(names.Answer(kOther, kName, question->number), std::nullopt) << "for another";
}

TEST(PeerNamesTest, WhoseConnectionIsGoneIsReplacedAtOnce) {
  PeerNames names(kSilent, false);
  EXPECT_TRUE(names.Hear(kFirst, kName, 0));
  EXPECT_FALSE(names.Hear(kOther, kName, 1));
  names.Replace(kOther, kName, 1);
  EXPECT_TRUE(names.Hear(kOther, kName, 2));
  EXPECT_EQ(*names.Find(kName), kOther);
}

TEST(PeerNamesTest, AQuestionIsRepeatedButNotForEachMessage) {
  PeerNames names(kSilent, false);
  EXPECT_TRUE(names.Hear(kFirst, kName, 0));
  int asked = 0;
  for (TimeUs now = 1; now <= kSecond; now += kMillisecond) {
    EXPECT_FALSE(names.Hear(kOther, kName, now));
    asked += names.Ask(kOther, kName, now).has_value();
  }
  EXPECT_EQ(asked, kSecond / PeerNames::kAskAgain);
}

// Who did not listen, or was not wanted any more, takes no name from who could not answer.
TEST(PeerNamesTest, APauseIsNotTheFirstsSilence) {
  PeerNames names(kSilent, false);
  EXPECT_TRUE(names.Hear(kFirst, kName, 0));
  EXPECT_FALSE(names.Hear(kOther, kName, 1));
  EXPECT_FALSE(names.Hear(kOther, kName, 10 * kSilent));
  EXPECT_EQ(*names.Find(kName), kFirst);
}

TEST(PeerNamesTest, AThirdProcessWaitsForWhatBecomesOfTheSecond) {
  PeerNames names(kSilent, false);
  const std::string third = RoutingId(kName, 3);
  EXPECT_TRUE(names.Hear(kFirst, kName, 0));
  EXPECT_FALSE(names.Hear(kOther, kName, 1));
  EXPECT_FALSE(names.Hear(third, kName, 2));
  EXPECT_EQ(names.Ask(third, kName, 2).has_value(), false);
  const auto question = names.Ask(kOther, kName, 2);
  EXPECT_EQ(names.Answer(kFirst, kName, question->number), kOther);
  EXPECT_FALSE(names.Hear(third, kName, 3));
}

TEST(PeerNamesTest, AWorkersNameIsOneWhateverItsIncarnationWhereThatIsAskedFor) {
  const PeerName one = "worker/a/1", two = "worker/a/2";
  PeerNames apart(kSilent, false);
  EXPECT_TRUE(apart.Hear(RoutingId(one, 1), one, 0));
  EXPECT_TRUE(apart.Hear(RoutingId(two, 2), two, 0));
  EXPECT_TRUE(apart.Find(one) && apart.Find(two));

  PeerNames names(kSilent, true);
  EXPECT_TRUE(names.Hear(RoutingId(one, 1), one, 0));
  EXPECT_FALSE(names.Hear(RoutingId(two, 2), two, 0));
  EXPECT_TRUE(names.Find(one));
  EXPECT_FALSE(names.Find(two)) << "nothing is sent to it by that name";
  names.Replace(RoutingId(two, 2), two, 1);
  EXPECT_FALSE(names.Find(one));
  EXPECT_EQ(*names.Find(two), RoutingId(two, 2));
  EXPECT_TRUE(names.Hear(RoutingId("server/1", 1), "server/1", 0));
  EXPECT_TRUE(names.Hear(RoutingId("server/2", 1), "server/2", 0)) << "of workers alone";
}

TEST(PeerNamesTest, ManyNamesAreForgottenFromTheOldestOn) {
  PeerNames names(kSilent, false);
  const auto name = [](size_t i) { return "client/" + std::to_string(i); };
  for (size_t i = 0; i < 2 * PeerNames::kMostNames; ++i) {
    const auto now = static_cast<TimeUs>(i);
    EXPECT_TRUE(names.Hear(kFirst, kName, now));
    EXPECT_TRUE(names.Hear(RoutingId(name(i), i), name(i), now));
  }
  EXPECT_TRUE(names.Find(kName)) << "it spoke all the time";
  EXPECT_TRUE(names.Find(name(2 * PeerNames::kMostNames - 1)));
  EXPECT_FALSE(names.Find(name(PeerNames::kMostNames / 2)));
}

}  // namespace

namespace {

constexpr TimeUs kDoorSilence = 10 * kSecond;

struct Door {
  std::vector<std::pair<std::string, wire::Header>> sent;
  std::set<std::string> gone;
  NameDisputes names{PeerNames(kDoorSilence, false),
                     [this](const std::string& to, wire::Header header) {
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
  for (; now <= kDoorSilence; now += kSecond) EXPECT_FALSE(door.Hears(door.second, now)) << now;
  EXPECT_TRUE(door.Hears(door.second, now + kSecond));
  EXPECT_FALSE(door.Hears(door.first, now + kSecond)) << "it is the second one now";
  EXPECT_EQ(door.sent.back().first, door.second);
}

}  // namespace

}  // namespace kumo
