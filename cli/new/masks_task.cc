#include "cli/new/labelled.h"
#include "cli/new/task.h"

namespace kumo {
namespace {

constexpr int64_t kMasksVisits = 16'000;  // samples that a run visits at least, as scenes_unet

bool FitsMasks(const DescribedData& data) { return data.masks; }

int64_t EpochsOfMasks(int64_t samples) { return EpochsFor(kMasksVisits, samples, 8, 200); }

// As scenes_unet.
void SetMasksTraining(const DescribedData& /*data*/, int64_t /*epochs*/, ExperimentLines* lines) {
  lines->Section("sync");
  lines->Set("mode", "gradient");
  lines->Set("partitions", kNewPartitions, "workers that can share the work");
  lines->Set("minibatch", "8", "16 images a round");
  lines->Section("optimiser");
  lines->Set("type", "adam");
  lines->Section("schedule");
  lines->Set("type", "cosine");
  lines->Set("learning_rate", "0.004");
  lines->Section("evaluation");
  lines->Set("minibatch", "8");
  lines->Section("checkpoint");
  lines->Set("best", "accuracy", "share of the pixels");
}

// The model's layers, which take the number of classes from the data, for another input.
std::string NetworkOfMasks(const std::string& name, const DescribedData& data,
                           const std::string& model) {
  const size_t input = model.find("\ninput {");
  const size_t layers = model.find('\n', input == model.npos ? input : input + 1);
  if (layers == model.npos) return model;
  return "# A small U-Net (scenes_unet's): the class of each pixel of an image whose sides are "
         "multiples of 8.\n" +
         NameLine(name) +
         InputLine(data.field, "channels: " + std::to_string(data.extents[0]) +
                                   " height: " + std::to_string(data.extents[1]) +
                                   " width: " + std::to_string(data.extents[2])) +
         model.substr(layers + 1);
}

}  // namespace

const NewTask kMasksTask = {.fits = FitsMasks,
                            .model = "scenes_unet",
                            .scaling = "whole images are scaled, with their masks",
                            .epochs = EpochsOfMasks,
                            .set_training = SetMasksTraining,
                            .network = NetworkOfMasks};

}  // namespace kumo
