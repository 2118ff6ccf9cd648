// Reading bar: shows on stderr, if it is a terminal, how many samples a command has read.
//
// Used by one thread at a time.
#pragma once

#include <cstdint>

#include "common/base/clock.h"
#include "common/telemetry/console.h"

namespace kumo {

class ReadingBar {
 public:
  ReadingBar();

  void Show(int64_t read, int64_t samples);
  // Removes the bar; also done by the destructor.
  void Remove() { view_.RemoveBar(); }

 private:
  FdConsole console_;
  ProgressView view_;
  const SteadyClock clock_;
  const TimeUs began_;
  TimeUs shown_ = 0;
};

}  // namespace kumo
