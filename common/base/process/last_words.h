// How a process ends: the last line on stderr says why, and where a termination log can be written
// (Kubernetes reads /dev/termination-log, `kumo launch` names a file of its own) it goes there too.
//
// Used by main only, once, when the other threads have ended.
#pragma once

#include <string>

#include "common/base/process/exit_code.h"
#include "common/base/status.h"

namespace kumo {

class LastWords {
 public:
  // program: what the line begins with, "kumo-worker worker-3". termination_log: an existing file
  // that is replaced, or one whose folder can be written; "" for none. columns: of the terminal
  // behind stderr, at which the line is broken; 0: it stays one line.
  LastWords(std::string program, std::string termination_log, int columns = 0);

  // The environment variable KUMO_TERMINATION_LOG where it is set (by `kumo launch`), else
  // /dev/termination-log where that exists, else "". Called by main.
  static std::string DefaultTerminationLog();

  // Says `words` (line breaks become "; ") and returns the number for main to return. Nothing is
  // said for kDone with empty words. Failing to write the termination log is silent.
  int Say(ExitCode code, const std::string& words) const;
  // The same from a status: nothing and 0 for ok.
  int Say(const Status& status) const;
  // `words` of a process that is done go to the termination log alone, where there are any. 0.
  int Leave(const std::string& words) const;

 private:
  std::string LineOf(const std::string& words) const;
  void WriteLog(const std::string& line) const;

  const std::string program_;
  const std::string termination_log_;
  const int columns_;
};

}  // namespace kumo
