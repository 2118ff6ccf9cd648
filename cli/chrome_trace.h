// Chrome trace: the recorded spans of a job's processes as one JSON object in the "Trace Event
// Format" of Chrome's tracing and Perfetto, on one common clock.
//
// The offset of a process's clock from server 0's is taken from the order that it answered fastest,
// assuming that it answered halfway through the round trip; the error is at most half of that time.
//
// One thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "proto/trace.pb.h"
#include "proto/wire.pb.h"

namespace kumo {

class ChromeTrace {
 public:
  // Adds a process's report. `payload` is untrusted.
  void Add(const wire::TraceReport& report, const void* payload, size_t bytes);

  // The spans of all processes with a known clock offset.
  std::string Json() const;

  // Processes with a known clock offset, and their spans.
  size_t processes() const;
  uint64_t spans() const;
  // Number of other spans: of processes without a known clock offset, and those that were not kept,
  // sent or relayed.
  uint64_t lost() const;
  // Upper bound of the clock error between processes: half of the longest of the shortest round
  // trips.
  TimeUs uncertainty() const;

 private:
  struct Process {
    std::vector<trace::Span> spans;
    uint64_t dropped = 0;
    TimeUs offset = 0;       // its clock minus server 0's
    TimeUs round_trip = -1;  // -1: not measured
  };

  std::map<std::string, Process> processes_;  // by peer
  uint64_t spans_ = 0;                        // of all processes
  uint64_t not_kept_ = 0;                     // beyond the limit
  uint64_t not_passed_on_ = 0;                // reports
};

}  // namespace kumo
