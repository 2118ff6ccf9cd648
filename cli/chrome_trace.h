// What the processes of a job did when, as Chrome's tracing and Perfetto show it: one JSON object
// of the "Trace Event Format", all times by one clock.
//
// A process's clock is compared with server 0's by the order that it answers quickest: the answer
// was given in the middle between sending and hearing, to half of that time.
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
  // Adds what a process reported. `payload` need not be anything that makes sense.
  void Add(const wire::TraceReport& report, const void* payload, size_t bytes);

  // Spans of processes of which it is known by which clock they go.
  std::string Json() const;

  size_t processes() const { return processes_.size(); }
  uint64_t spans() const { return spans_; }
  // That were not kept, sent or passed on.
  uint64_t lost() const;
  // Half of the round trip of the worst of the best: how far off times may be between processes.
  TimeUs uncertainty() const;

 private:
  struct Process {
    std::vector<trace::Span> spans;
    uint64_t dropped = 0;
    TimeUs offset = 0;       // its clock less server 0's
    TimeUs round_trip = -1;  // -1: not measured
  };

  std::map<std::string, Process> processes_;  // by peer
  uint64_t spans_ = 0;                        // of all processes
  uint64_t not_passed_on_ = 0;                // reports
};

}  // namespace kumo
