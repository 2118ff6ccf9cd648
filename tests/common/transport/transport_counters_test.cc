#include "common/transport/transport_counters.h"

#include <gtest/gtest.h>

namespace kumo {
namespace {

// A header's type is what a peer says, and may be of a later version.
TEST(TransportCounters, ATypeThatIsNotKnownIsInTheSumAlone) {
  TransportCounters counters;
  counters.Sent(wire::PUSH, 100);
  counters.Sent(static_cast<wire::Type>(wire::Type_MAX + 1), 10);
  counters.Sent(static_cast<wire::Type>(-1), 1);
  counters.Taken(wire::PULL, 1000);
  counters.Taken(static_cast<wire::Type>(1 << 20), 1);
  EXPECT_EQ(counters.messages_sent, 3u);
  EXPECT_EQ(counters.bytes_sent, 111u);
  EXPECT_EQ(counters.messages_received, 2u);
  for (int type = 0; type < wire::Type_ARRAYSIZE; ++type) {
    EXPECT_EQ(counters.bytes_sent_by_type[type], type == wire::PUSH ? 100u : 0u);
    EXPECT_EQ(counters.bytes_received_by_type[type], type == wire::PULL ? 1000u : 0u);
  }
}

}  // namespace
}  // namespace kumo
