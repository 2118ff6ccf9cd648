// Task: a kind of training that `kumo new --data` knows, with the settings and the network that
// suit it. Each is a source file of this folder and a line in kTasks (new_from_data.cc).
//
// Constant data and pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "cli/new/described_data.h"
#include "cli/new/experiment_lines.h"

namespace kumo {

struct NewTask {
  bool (*fits)(const DescribedData& data);
  // Name of the installed experiment whose network is the model; "": none.
  const char* model = "";
  const char* element = "";  // of a sample with one extent: "token"
  const char* scaling = "";  // reason of data.image_size
  int64_t (*epochs)(int64_t samples);
  // Adds settings of [data], if not null.
  void (*set_data)(const DescribedData& data, ExperimentLines* lines) = nullptr;
  // Adds the sections from [sync] on.
  void (*set_training)(const DescribedData& data, int64_t epochs, ExperimentLines* lines);
  // The network file; null: the model's. name: of a network; model: the model's file, or "".
  std::string (*network)(const std::string& name, const DescribedData& data,
                         const std::string& model) = nullptr;
};

extern const NewTask kTextTask;      // the next token of a text
extern const NewTask kDetectorTask;  // objects in images
extern const NewTask kMasksTask;     // the class of each pixel of images
extern const NewTask kImagesTask;    // a label of images, perhaps with numbers beside them
extern const NewTask kNumbersTask;   // a label of numbers; fits all

inline constexpr int64_t kNewPartitions = 2;  // so that two workers share the work

// The epochs in which `visits` samples are visited, in these limits.
int64_t EpochsFor(int64_t visits, int64_t samples, int64_t least, int64_t most);

}  // namespace kumo
