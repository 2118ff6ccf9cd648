// Training steps: what each is done with, and that they are the same work again and again.
#pragma once

#include <compare>
#include <functional>
#include <string>

#include "common/optimiser/optimiser.h"
#include "models/tensor.h"

namespace kumo {

// What changes from one training step to the next.
struct StepParameters {
  StepStreams streams;
  const Optimiser* optimiser = nullptr;  // the local one, borrowed while steps run; null: none
  // The optimiser's, for weights that are decayed and for those that are not.
  StepInfo decayed;
  StepInfo undecayed;
  float clip_norm = 0;  // most that the gradients' L2 norm may be; 0: any
};

class StepRecorder {
 public:
  virtual ~StepRecorder() = default;

  // Sets what the steps from now on are done with.
  virtual void SetStep(const StepParameters& step) = 0;
  // Does `work`, which queues a step. For the same key it is always the same work on the same
  // arrays with the same marks, but for what SetStep sets: a device may record it once and then
  // repeat what it has recorded.
  struct StepKey {
    int batch = 0;
    bool optimises = false;
    const void* state =
        nullptr;  // what else tells works apart: an array that only one of them uses
    auto operator<=>(const StepKey&) const = default;
  };
  virtual void Repeat(const StepKey& key, const std::function<void()>& work) = 0;
  // Failures from now on name this layer, for which ops are called; the name is borrowed until the
  // next one. Null: no layer.
  virtual void SetPlace(const std::string* place) = 0;
};

}  // namespace kumo
