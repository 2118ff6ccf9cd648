// ONNX models: parsed, imported, and, if both succeed, read again as a network file.
#include "common/job/parameter_layout.h"
#include "models/network.h"
#include "models/onnx/from_onnx.h"
#include "tests/fuzz/fuzzer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto model = kumo::ParseOnnx(std::string(kumo::fuzz::AsText(data, size)));
  if (!model.ok()) return 0;
  std::vector<std::string> gaps;
  const auto imported = kumo::FromOnnx(*model, {}, nullptr, &gaps);
  if (!imported.ok()) {
    kumo::fuzz::Require(!imported.status().message().empty(), "an error without words");
    return 0;
  }
  const auto network =
      kumo::ParseNetwork(kumo::NetworkFileText(imported->network, imported->notes), "input.pbtxt");
  kumo::fuzz::Require(network.ok(), "a network file that cannot be read");
  const auto plan = kumo::PlanNetwork(*network);
  kumo::fuzz::Require(plan.ok(), "a network that cannot be planned");
  kumo::fuzz::Require(plan->parameters.size() == imported->tensors.size(), "other tensors");
  return 0;
}
