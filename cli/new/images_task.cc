#include <algorithm>

#include "cli/new/labelled.h"
#include "cli/new/task.h"

namespace kumo {
namespace {

constexpr int64_t kSmallestMap = 8;  // height or width that is not halved any more

bool FitsImages(const DescribedData& data) { return data.extents.size() == 3 && data.bytes; }

// Convolutions with batch normalisation; each stage halves height and width and doubles the
// channels.
std::string NetworkOfImages(const std::string& name, const DescribedData& data,
                            const std::string& /*model*/) {
  const bool numbers = data.features > 0;
  int64_t height = data.extents[1], width = data.extents[2];
  std::string text =
      NameLine(name) + InputLine(data.field, "channels: " + std::to_string(data.extents[0]) +
                                                 " height: " + std::to_string(height) +
                                                 " width: " + std::to_string(width));
  if (numbers) text += InputLine("features", "extents: " + std::to_string(data.features));
  text += "\n";
  int64_t outputs = std::max(height, width) > 40 ? 16 : 32;
  for (int stage = 1;; ++stage) {
    const std::string n = std::to_string(stage);
    const std::string from = numbers && stage == 1 ? "inputs: \"input\" " : "";
    text += LayerLine("conv" + n, from + "convolution { outputs: " + std::to_string(outputs) +
                                      " kernel: 3 pad: 1 no_bias: true weight { he_normal {} } }");
    text += LayerLine("norm" + n, "batch_normalisation {}");
    text += LayerLine("relu" + n, "relu {}");
    if (std::min(height, width) < kSmallestMap) break;
    text += LayerLine("pool" + n, "max_pooling { kernel: 2 stride: 2 }");
    height /= 2;
    width /= 2;
    outputs = std::min<int64_t>(256, 2 * outputs);
  }
  text += LayerLine("mean", "global_average_pooling {}");
  if (numbers) {
    // Normalisation brings numbers of all scales to one.
    text += LayerLine("numbers", "inputs: \"features\" batch_normalisation {}");
    text += LayerLine("both", "inputs: \"mean\" inputs: \"numbers\" concat {}");
  }
  return text + LabelLayers(data);
}

}  // namespace

const NewTask kImagesTask = {.fits = FitsImages,
                             .scaling = "images are cropped to this aspect ratio and scaled",
                             .epochs = EpochsOfLabelled,
                             .set_training = SetLabelledTraining,
                             .network = NetworkOfImages};

}  // namespace kumo
