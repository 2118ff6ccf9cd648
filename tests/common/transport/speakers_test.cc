#include "common/transport/speakers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Speakers, ReportTheProcessWhoseConnectionHasEndedOnce) {
  Speakers speakers;
  speakers.Accepted(5);
  speakers.Accepted(6);
  EXPECT_FALSE(speakers.Knows(5, "a"));
  EXPECT_TRUE(speakers.Spoke(5, "a"));
  EXPECT_TRUE(speakers.Knows(5, "a"));
  EXPECT_THAT(speakers.TakeGone(), IsEmpty());
  speakers.Closed(6);  // it has not said a word
  speakers.Closed(5);
  speakers.Closed(5);
  EXPECT_THAT(speakers.TakeGone(), ElementsAre("a"));
  EXPECT_THAT(speakers.TakeGone(), IsEmpty());
}

TEST(Speakers, WhatComesAfterTheEndIsLate) {
  Speakers speakers;
  speakers.Accepted(5);
  EXPECT_TRUE(speakers.Spoke(5, "a"));
  speakers.Closed(5);
  EXPECT_FALSE(speakers.Spoke(5, "a"));
  speakers.Accepted(5);  // the descriptor is used again
  EXPECT_TRUE(speakers.Spoke(5, "b"));
  EXPECT_FALSE(speakers.Spoke(5, "a"));
  EXPECT_THAT(speakers.TakeGone(), ElementsAre("a"));
}

// The rest of a connection that has ended may be delivered before its descriptor's new owner
// speaks.
TEST(Speakers, WhoSpeaksLateDoesNotKeepTheDescriptorOfAnother) {
  Speakers speakers;
  speakers.Accepted(5);
  EXPECT_TRUE(speakers.Spoke(5, "a"));
  speakers.Closed(5);
  EXPECT_THAT(speakers.TakeGone(), ElementsAre("a"));
  speakers.Accepted(5);
  speakers.Spoke(5, "a");  // late, or from its new connection: nobody can tell yet
  EXPECT_TRUE(speakers.Spoke(5, "b"));
  EXPECT_THAT(speakers.TakeGone(), ElementsAre("a"));
  EXPECT_FALSE(speakers.Spoke(5, "a"));
  EXPECT_TRUE(speakers.Spoke(5, "b"));
  speakers.Closed(5);
  EXPECT_THAT(speakers.TakeGone(), ElementsAre("b"));
}

// Process a has connected anew, over 6, and its old connection's rest has an id of ZeroMQ's.
TEST(Speakers, AnIdOfZeroMqsOwnIsNoSpeaker) {
  Speakers speakers;
  speakers.Accepted(5);
  EXPECT_FALSE(speakers.Spoke(5, std::string("\0\1\2\3\4", 5)));
  EXPECT_TRUE(speakers.Spoke(5, "b"));
}

TEST(Speakers, AProcessThatHasConnectedAnewIsNotGone) {
  Speakers speakers;
  speakers.Accepted(5);
  EXPECT_TRUE(speakers.Spoke(5, "a"));
  speakers.Accepted(6);
  EXPECT_TRUE(speakers.Spoke(6, "a"));
  speakers.Closed(5);
  EXPECT_THAT(speakers.TakeGone(), IsEmpty());
  speakers.Closed(6);
  EXPECT_THAT(speakers.TakeGone(), ElementsAre("a"));
}

}  // namespace
}  // namespace kumo
