// A forger (tests/sim/forger.h) in a whole job; the input makes its choices.
#include <glog/logging.h>

#include "tests/fuzz/fuzzer.h"
#include "tests/sim/forger.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  FLAGS_minloglevel = google::GLOG_FATAL;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string complaint = kumo::sim::ComplaintAboutForging({data, size});
  if (!complaint.empty()) kumo::fuzz::Fail(complaint);
  return 0;
}
