// Experiment lines: the text of a short experiment file, with comments in one column.
//
// Owned and used by one thread.
#pragma once

#include <cstdint>
#include <string>

namespace kumo {

class ExperimentLines {
 public:
  void Section(const std::string& name);
  void Set(const std::string& key, const std::string& value, const std::string& why = "");
  void Set(const std::string& key, int64_t value, const std::string& why = "") {
    Set(key, std::to_string(value), why);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace kumo
