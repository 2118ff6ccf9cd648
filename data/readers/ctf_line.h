// Lines of a CTF file (readers/all.h) and their streams, apart from the samples that they make.
//
// CtfLines is owned and used by one thread; the rest are values and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "data/readers/byte_source.h"

namespace kumo {

// A line with a stream.
struct CtfLine {
  int64_t number = 0;           // from 1 on
  std::string_view text{};      // without its newline
  std::string_view sequence{};  // the number before the first '|'; "": none
};

// Lines of a file.
class CtfLines {
 public:
  static Result<CtfLines> Open(const std::string& path);

  // The next line with content, valid until the next call; none at the end.
  Result<std::optional<CtfLine>> Next();

  const std::string& path() const { return source_.path(); }

 private:
  explicit CtfLines(ByteSource source) : source_(std::move(source)) {}

  std::string Where(int64_t number) const { return path() + ":" + std::to_string(number) + ":"; }
  Result<bool> ReadMore();

  ByteSource source_;
  std::string text_;
  size_t begin_ = 0;  // start of the bytes without a complete line
  int64_t number_ = 0;
};

// Position in a file; line and column count from 1 on. Line 0: none.
struct CtfPlace {
  int64_t line = 0;
  int64_t column = 0;
};

// A stream of a sample.
struct CtfStream {
  std::string name;  // to look for
  CtfPlace place;
  size_t bytes = 0;           // of its text
  int64_t sparse_values = 0;  // their number; an upper bound if values are skipped
  bool sparse = false;
  std::vector<float> values;
  std::vector<int64_t> indices;  // of sparse values; ascending
  std::vector<int64_t> columns;  // of the values

  bool found() const { return place.line > 0; }
  CtfPlace PlaceOf(size_t value) const { return {place.line, columns[value]}; }
};

inline constexpr size_t kCtfTextShown = 40;  // bytes of faulty text in a message

// InvalidArgument with a message "2:9: what is wrong" that begins with line and column, to be
// prefixed by the file.
Status WrongInCtf(CtfPlace place, const std::string& what);

enum class CtfValues { kParsed, kSkipped };

// Parses a line into `streams`, by their names. Other streams and comments are skipped. The errors
// of WrongInCtf.
Status ParseCtfLine(const CtfLine& line, CtfValues values, std::span<CtfStream> streams);

}  // namespace kumo
