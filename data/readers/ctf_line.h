// A line of CNTK's text format (CTFDeserializer): named streams of numbers, one sample.
//
//   7 |labels 0 1 0 |features 1.5 2 3e-2 |# anything
//   |labels 1:1 |features 3:1.5 17:0.25
//
// A stream is dense, or sparse where its values say their places ("3:1.5"). What stands before the
// first '|' is the number of a sequence. A stream whose name begins with '#' is a comment.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace kumo {

struct CtfStream {
  std::string name;    // that is looked for
  int64_t column = 0;  // where it begins on the line, from 1 on; 0: it is not there
  bool sparse = false;
  std::vector<float> values;
  std::vector<int64_t> indices;  // of the values, where they are sparse; ascending
  std::vector<int64_t> columns;  // of the values
};

// Makes `streams`, which are told by their names, what the line has of them, and `sequence` what
// stands before. Other streams are passed over. InvalidArgument, in words that a file and a line go
// before: "9: what is wrong", with the column.
Status ParseCtfLine(std::string_view line, std::string_view* sequence,
                    std::span<CtfStream> streams);

// InvalidArgument of that form.
Status WrongColumn(int64_t column, const std::string& what);

}  // namespace kumo
