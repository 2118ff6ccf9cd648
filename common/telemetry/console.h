// Where a person looks: a terminal, on which a progress bar is drawn over itself, or anything else
// (a pod's log, a file), which gets plain lines.
//
// One thread.
#pragma once

#include <optional>
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
  // A bar is of a job that runs: it goes with the view.
  ~ProgressView() { RemoveBar(); }

  void Show(const RoundProgress& progress);
  // The table's header comes with the first row, and the terminal's width then is the table's.
  void Show(const EpochResult& result);
  // Any other line, without a line end; broken where it is wider than the terminal.
  void ShowLine(std::string_view line);
  // A bar of another kind, without a line end: one that fits the terminal. "" is none.
  void ShowBar(const std::string& bar);
  // Until the next progress. The cursor is then at a line's start.
  void RemoveBar();

 private:
  Console* const console_;
  std::string bar_;                 // as it stands on the terminal; empty when there is none
  std::optional<int> table_width_;  // none until its header is shown
};

}  // namespace kumo
