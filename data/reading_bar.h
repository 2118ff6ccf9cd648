// Reading bar: shows on stderr, if it is a terminal, how many samples a command has read.
//
// Used by one thread at a time.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/clock.h"
#include "common/telemetry/console.h"

namespace kumo {

// "reading [=====     ] 20 of 40 samples, ETA 5.0 s"; no ETA before the first second and the first
// sample. Requires samples > 0.
std::string ReadingBarText(int64_t read, int64_t samples, TimeUs elapsed);

class ReadingBar {
 public:
  ReadingBar();

  // Draws the bar, at most five times a second.
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
