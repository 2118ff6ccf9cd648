// Request spans: durations of a worker's requests for a trace, from the first sending of a PUSH or
// a PULL to its answer.
//
// Owned by the driver, on its loop thread.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "common/base/clock.h"
#include "common/trace/tracer.h"
#include "proto/wire.pb.h"

namespace kumo {

class RequestSpans {
 public:
  // tracer must outlive this object.
  explicit RequestSpans(Tracer* tracer) : tracer_(tracer) {}

  void OnSent(int server, const wire::Header& header, TimeUs now);
  void OnArrived(int server, const wire::Header& header, TimeUs now);

 private:
  struct Open {
    trace::Kind kind = trace::KIND_UNSPECIFIED;
    TimeUs begin = 0;
    TraceSubject subject;
  };

  Tracer* const tracer_;
  std::map<std::pair<int, uint64_t>, Open> open_;  // by server and request
};

}  // namespace kumo
