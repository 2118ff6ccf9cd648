// Where a person looks: a terminal, on which a progress bar is drawn over itself, or anything else
// (a pod's log, a file), which gets plain lines.
//
// One thread.
#pragma once

#include <string>
#include <string_view>

#include "common/telemetry/progress.h"

namespace kumo {

class Console {
 public:
  virtual ~Console() = default;
  // Columns of the terminal now; 0 when it is none.
  virtual int Width() const = 0;
  // Best effort: a closed pipe must not stop the training.
  virtual void Write(std::string_view text) = 0;
};

// A file descriptor, borrowed: 1 for stdout.
class FdConsole : public Console {
 public:
  explicit FdConsole(int fd) : fd_(fd) {}
  int Width() const override;
  void Write(std::string_view text) override;

 private:
  const int fd_;
};

// The bar or the lines, and the table of the epochs between them.
class ProgressView {
 public:
  // console: borrowed for life.
  explicit ProgressView(Console* console) : console_(console) {}
  ~ProgressView() { EndBar(); }

  void Show(const RoundProgress& progress);
  // The table's header comes with the first row.
  void Show(const EpochResult& result);
  // Any other line, without a line end.
  void ShowLine(std::string_view line);
  // Leaves the bar standing and goes to a fresh line.
  void EndBar();

 private:
  // Draws `bar` over the bar that is there.
  void DrawBar(const std::string& bar);

  Console* const console_;
  std::string bar_;  // as it stands on the terminal; empty when there is none
  bool header_shown_ = false;
};

}  // namespace kumo
