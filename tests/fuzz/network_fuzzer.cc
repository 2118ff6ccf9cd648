// Network files: read, planned, and, where both succeed, laid out in the flat vector.
#include "common/job/parameter_layout.h"
#include "models/network.h"
#include "tests/fuzz/fuzzer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto network =
      kumo::ParseNetwork(std::string(kumo::fuzz::AsText(data, size)), "input.pbtxt");
  if (!network.ok()) return 0;
  const auto plan = kumo::PlanNetwork(*network);
  if (!plan.ok()) return 0;
  const auto layout = kumo::ParameterLayout::Make(plan->tensors());
  if (layout.ok()) kumo::fuzz::Require(layout->size() >= plan->trained_parameters(), "too short");
  return 0;
}
