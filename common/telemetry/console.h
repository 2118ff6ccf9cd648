// Console output of a job's progress: on a terminal a progress bar that is redrawn in place;
// elsewhere (a pod's log, a file) plain lines.
//
// One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/telemetry/progress.h"

namespace kumo {

class Console {
 public:
  virtual ~Console() = default;
  // Current width of the terminal in columns; 0 if it is no terminal.
  virtual int Width() const = 0;
  // Best effort: a closed pipe must not stop the training.
  virtual void Write(std::string_view text) = 0;
};

// Console of a file descriptor, which stays open: 1 for stdout. A write never waits for the reader,
// who may pause (Ctrl-S on a terminal, `kumo launch FILE | less`): text that does not fit is held
// until a later write, up to kMostHeld bytes. Then text is dropped until all held text is written,
// and a line says how many lines were dropped. If nobody reads a pipe any more (as in `kumo launch
// FILE | head`), the first line that is lost is logged as a warning. Requires that SIGPIPE is
// ignored.
class FdConsole : public Console {
 public:
  static constexpr size_t kMostHeld = 64 << 10;

  explicit FdConsole(int fd);
  ~FdConsole() override;  // Finish()
  FdConsole(const FdConsole&) = delete;
  FdConsole& operator=(const FdConsole&) = delete;

  int Width() const override;
  void Write(std::string_view text) override;
  // Gives a reader of held text a second, before other output to the descriptor.
  void Finish();

 private:
  int output() const { return own_fd_ >= 0 ? own_fd_ : fd_; }
  // Writes held text until the reader would have to be waited for.
  void WriteHeld();

  const int fd_;
  const int own_fd_;  // the same pipe or terminal, opened without waiting; -1: none
  std::string held_;
  bool drops_ = false;         // until no text is held
  int64_t dropped_lines_ = 0;  // since drops_
  bool told_ = false;          // that nobody reads
};

// Progress view: the bar or the lines, interleaved with the rows of the epoch table.
class ProgressView {
 public:
  // console must outlive the view.
  explicit ProgressView(Console* console) : console_(console) {}
  // Removes the bar, which belongs to a running job.
  ~ProgressView() { RemoveBar(); }

  void Show(const RoundProgress& progress);
  // The first row prints the table's header; the terminal's width then fixes the table's.
  void Show(const EpochResult& result);
  // Prints another line, given without line end, folded at the terminal's width.
  void ShowLine(std::string_view line);
  // Draws another bar, given without line end, that fits the terminal. "": no bar.
  void ShowBar(const std::string& bar);
  // Removes the bar until the next progress. The cursor is then at the start of a line.
  void RemoveBar();

 private:
  Console* const console_;
  std::string bar_;                 // as drawn; empty: none
  std::optional<int> table_width_;  // none before the header is printed
};

}  // namespace kumo
