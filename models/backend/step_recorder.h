// Recorder of training steps: the parameters of a step, and the repetition of the same work.
//
// A part of Backend. Not thread-safe: one caller at a time.
#pragma once

#include <compare>
#include <functional>
#include <string>

#include "common/optimiser/optimiser.h"
#include "models/tensor/tensor.h"

namespace kumo {

// Parameters of a training step.
struct StepParameters {
  StepStreams streams;
  const Optimiser* optimiser = nullptr;  // the local one, borrowed while steps run; null: none
  // The optimiser's numbers, for decayed and for undecayed weights.
  StepInfo decayed;
  StepInfo undecayed;
  float clip_norm = 0;  // largest L2 norm of the gradients; 0: no limit
};

class StepRecorder {
 public:
  virtual ~StepRecorder() = default;

  // Sets the parameters of the following steps.
  virtual void SetStep(const StepParameters& step) = 0;
  // Identifies the work of a step.
  struct StepKey {
    int batch = 0;
    bool optimises = false;
    // An array that only this work uses, if the other fields do not identify the work.
    const void* state = nullptr;
    auto operator<=>(const StepKey&) const = default;
  };
  // Does `work`, which queues a step. Requires the same work on the same arrays with the same marks
  // for the same key, but for the parameters of SetStep: a device may record the work once and then
  // repeat the recording.
  virtual void Repeat(const StepKey& key, const std::function<void()>& work) = 0;
  // Names the layer whose ops are called from now on, for failures. The name is borrowed until the
  // next call. Null: no layer.
  virtual void SetPlace(const std::string* place) = 0;
};

}  // namespace kumo
