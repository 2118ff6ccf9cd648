#include "cli/new/labelled.h"
#include "cli/new/task.h"

namespace kumo {
namespace {

bool FitsNumbers(const DescribedData& /*data*/) { return true; }

// A perceptron of two hidden layers.
std::string NetworkOfNumbers(const std::string& name, const DescribedData& data,
                             const std::string& /*model*/) {
  int64_t inputs = 1;
  for (const int64_t extent : data.extents) inputs *= extent;
  std::string text =
      NameLine(name) + InputLine(data.field, "extents: " + std::to_string(inputs)) + "\n";
  // Brings features of all scales to one.
  text += LayerLine("norm0", "batch_normalisation {}");
  for (const char* n : {"1", "2"}) {
    text += LayerLine(std::string("hidden") + n,
                      "fully_connected { outputs: " + std::to_string(kHiddenUnits) +
                          " no_bias: true weight { he_normal {} } }");
    text += LayerLine(std::string("norm") + n, "batch_normalisation {}");
    text += LayerLine(std::string("relu") + n, "relu {}");
  }
  return text + LabelLayers(data);
}

}  // namespace

const NewTask kNumbersTask = {.fits = FitsNumbers,
                              .element = "number",
                              .epochs = EpochsOfLabelled,
                              .set_training = SetLabelledTraining,
                              .network = NetworkOfNumbers};

}  // namespace kumo
