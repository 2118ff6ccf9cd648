// The warnings and errors that a process logs to a file, as they come.
//
// One thread.
#pragma once

#include <string>
#include <vector>

namespace kumo {

class WarningTail {
 public:
  // What the file holds already is passed over; it need not exist.
  explicit WarningTail(std::string path);

  // What has been logged since the last call, without glog's prefix: time, thread, place in the
  // source. At most the last 20.
  std::vector<std::string> Next();

 private:
  const std::string path_;
  std::string line_;  // so far: without its end yet
  long long offset_ = 0;
};

// The message of a line of glog's at the severity of a warning or an error; "" for any other line.
std::string WarningIn(const std::string& line);

}  // namespace kumo
