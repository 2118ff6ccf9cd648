// CSV reader: records of a text by RFC 4180. Fields are separated by commas; a field in double
// quotes may hold commas, line ends, and quotes that are written twice. Lines end with LF or CRLF.
// A byte order mark at the start, and empty lines, are passed over.
//
// The memory for a record is bounded by its text. Owned and used by one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace kumo {

inline constexpr size_t kMostCsvFields = 1 << 16;  // of a record

// InvalidArgument unless a record has as many fields as the header.
Status CheckCsvFields(size_t fields, size_t in_header);

class CsvReader {
 public:
  // text: borrowed for the reader's life.
  explicit CsvReader(std::string_view text);

  // Reads the fields of the next record; false at the end. DataLoss if the text ends within a
  // record, also if only its line end is missing; InvalidArgument if quotes are misplaced, the text
  // has zero bytes, or a record more than kMostCsvFields fields. Messages describe the fault, which
  // begins in line().
  Result<bool> Next(std::vector<std::string>* fields);

  // The first line of the last record, from 1 on.
  int64_t line() const { return line_; }

 private:
  Status ReadQuoted(std::string* field);
  Status ReadPlain(std::string* field);
  // Removes a line end at the front.
  bool TakeLineEnd();

  std::string_view rest_;
  int64_t line_ = 0;
  int64_t next_line_ = 1;
};

}  // namespace kumo
