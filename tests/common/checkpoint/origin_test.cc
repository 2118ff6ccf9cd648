#include "common/checkpoint/origin.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

using testing::ElementsAre;

TEST(Origin, IsTold) {
  checkpoint::Origin origin;
  origin.set_checkpoint("there");
  origin.set_tensors(3);
  origin.set_tensors_taken(2);
  origin.add_left("c: why");
  EXPECT_THAT(LinesOf(origin),
              ElementsAre("starts with 2 of 3 tensors from there", "initialised as usual: c: why"));
}

TEST(Origin, WhatAPeerSendsIsCutToAFewShortPrintableLines) {
  checkpoint::Origin origin;
  origin.set_checkpoint("\033[2J" + std::string(100'000, 'x'));
  for (int i = 0; i < 5000; ++i) origin.add_taken("tensor\n" + std::to_string(i));
  const checkpoint::Origin excerpt = Excerpt(origin);
  EXPECT_EQ(excerpt.checkpoint().size(), 300u);
  EXPECT_EQ(excerpt.checkpoint()[0], '?');
  ASSERT_EQ(excerpt.taken_size(), 200);
  EXPECT_EQ(excerpt.taken(0), "tensor?0");
  EXPECT_EQ(excerpt.taken(199), "and 4801 more");
  EXPECT_EQ(Excerpt(excerpt).SerializeAsString(), excerpt.SerializeAsString());
}

}  // namespace
}  // namespace kumo
