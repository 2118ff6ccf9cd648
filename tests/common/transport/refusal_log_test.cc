#include "common/transport/refusal_log.h"

#include <array>
#include <string>

#include <gtest/gtest.h>

namespace kumo {
namespace {

TEST(RefusalLogTest, OneInAWhileIsSaidWithHowManyWentUnsaid) {
  RefusalLog log;
  const Status why = InvalidArgument("it is too long");
  TimeUs now = 5;
  EXPECT_EQ(log.Note(Refused::kMessage, "a", why, now), "message from 'a' refused: it is too long");
  for (int i = 0; i < 7; ++i) EXPECT_EQ(log.Note(Refused::kMessage, "a", why, now + i), "");
  now += RefusalLog::kInterval;
  EXPECT_EQ(log.Note(Refused::kMessage, "b", why, now - 1), "");
  EXPECT_EQ(log.Note(Refused::kMessage, "b", why, now),
            "message from 'b' refused: it is too long (and 8 more since the last message)");
  EXPECT_EQ(log.Note(Refused::kMessage, "", why, now + RefusalLog::kInterval),
            "message from '' refused: it is too long");
}

TEST(RefusalLogTest, AFloodOfOneKindHidesNoOther) {
  RefusalLog log;
  constexpr std::array kKinds = {Refused::kConnection, Refused::kName, Refused::kMessage};
  for (const Refused flood : kKinds) {
    const TimeUs now = (static_cast<TimeUs>(flood) + 1) * 2 * RefusalLog::kInterval;
    EXPECT_EQ(log.Note(flood, "first", now), "first");
    for (int i = 0; i < 7; ++i) EXPECT_EQ(log.Note(flood, "again", now), "");
    for (const Refused other : kKinds) {
      if (other != flood) {
        EXPECT_EQ(log.Note(other, "another", now), "another");
      }
    }
    EXPECT_EQ(log.Note(flood, "later", now + RefusalLog::kInterval),
              "later (and 7 more since the last message)");
  }
}

TEST(RefusalLogTest, ANameOfAnybodysIsShort) {
  RefusalLog log;
  const std::string text =
      log.Note(Refused::kMessage, std::string(100'000, 'x') + "\n", InvalidArgument("no"), 0);
  EXPECT_LT(text.size(), 200u);
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace kumo
