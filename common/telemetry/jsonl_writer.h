// A log that programs read: one JSON object a line, each beginning with the round that it is about:
//   {"round":812,"kind":"progress","loss":0.1832,...}
//
// One thread. Every line is in the system's hands when Write returns.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/file.h"
#include "common/status.h"

namespace kumo {

// The fields of one object, in the order in which they are added. Keys must differ.
class JsonFields {
 public:
  JsonFields& Add(std::string_view key, std::string_view value);
  JsonFields& Add(std::string_view key, const char* value) {
    return Add(key, std::string_view(value));
  }
  // With as many digits as it takes to read the same double back; null when it is not finite,
  // because JSON has no such numbers.
  JsonFields& Add(std::string_view key, double value);
  template <std::integral T>
  JsonFields& Add(std::string_view key, T value) {
    if constexpr (std::same_as<T, bool>) return AddRaw(key, value ? "true" : "false");
    return AddRaw(key, std::to_string(value));
  }
  JsonFields& AddNull(std::string_view key) { return AddRaw(key, "null"); }

  // "\"a\":1,\"b\":null", without braces.
  const std::string& text() const { return text_; }

 private:
  JsonFields& AddRaw(std::string_view key, std::string_view value);

  std::string text_;
};

// `text` as a JSON string, quotes included. What is not UTF-8 becomes U+FFFD.
std::string JsonString(std::string_view text);

class JsonlWriter {
 public:
  // Opens a log that goes on after round `last_round`: lines about later rounds and damaged ones (a
  // crash may leave half a line) are taken out, in one step. -1 starts a new log. files: borrowed
  // during the call.
  static Result<std::unique_ptr<JsonlWriter>> Open(FileSystem& files, const std::string& path,
                                                   int64_t last_round);

  Status Write(int64_t round, const JsonFields& fields);
  // To the disk.
  Status Flush() { return file_->Sync(); }

 private:
  explicit JsonlWriter(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}

  std::unique_ptr<WritableFile> file_;
};

}  // namespace kumo
