#include "common/transport/refusal_log.h"

#include <string>

#include <gtest/gtest.h>

namespace kumo {
namespace {

TEST(RefusalLogTest, OneInAWhileIsSaidWithHowManyWentUnsaid) {
  RefusalLog log;
  const Status why = InvalidArgument("it is too long");
  TimeUs now = 5;
  EXPECT_EQ(log.Note("a", why, now), "message from 'a' refused: it is too long");
  for (int i = 0; i < 7; ++i) EXPECT_EQ(log.Note("a", why, now + i), "");
  now += RefusalLog::kInterval;
  EXPECT_EQ(log.Note("b", why, now - 1), "");
  EXPECT_EQ(log.Note("b", why, now),
            "message from 'b' refused: it is too long (and 8 more since the last message)");
  EXPECT_EQ(log.Note("", why, now + RefusalLog::kInterval),
            "message from '' refused: it is too long");
}

TEST(RefusalLogTest, MessagesAndConnectionsAreSaidInTurn) {
  RefusalLog log;
  EXPECT_EQ(log.Note("connection from here refused", 0), "connection from here refused");
  EXPECT_EQ(log.Note("a", InvalidArgument("no"), 1), "");
  EXPECT_EQ(log.Note("connection from there refused", RefusalLog::kInterval),
            "connection from there refused (and 1 more since the last message)");
}

TEST(RefusalLogTest, ANameOfAnybodysIsShort) {
  RefusalLog log;
  const std::string text = log.Note(std::string(100'000, 'x') + "\n", InvalidArgument("no"), 0);
  EXPECT_LT(text.size(), 200u);
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace kumo
