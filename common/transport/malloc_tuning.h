// The allocator settings that large messages need.
#pragma once

namespace kumo {

// Keeps freed memory in the process for the next message. ZeroMQ allocates each received chunk with
// malloc; glibc's defaults map one of 1 MiB anew each time, hand it back when it is freed, and the
// kernel zeroes its pages over and over: most of the cost of receiving. The price: the process
// keeps its high-water mark until it ends.
//
// Call once, first thing in main, before there is a second thread.
void TuneMallocForLargeMessages();

}  // namespace kumo
