#include "data/readers/csv.h"

#include <algorithm>

#include "common/base/text.h"

namespace kumo {
namespace {

constexpr char kQuote = '"';
constexpr char kComma = ',';

Status CutOff(const char* what) {
  return DataLoss(std::string(what) + ", so the file may be truncated; complete it");
}

}  // namespace

Status CheckCsvFields(size_t fields, size_t in_header) {
  if (fields == in_header) return OkStatus();
  return InvalidArgument("has " + Counted(static_cast<int64_t>(fields), "field") +
                         ", but the header " + std::to_string(in_header) +
                         "; put a field with a comma in quotes");
}

CsvReader::CsvReader(std::string_view text) : rest_(text) { rest_ = WithoutByteOrderMark(rest_); }

bool CsvReader::TakeLineEnd() {
  const size_t size = rest_.starts_with('\n') ? 1 : rest_.starts_with("\r\n") ? 2 : 0;
  rest_.remove_prefix(size);
  if (size > 0) ++next_line_;
  return size > 0;
}

Result<bool> CsvReader::Next(std::vector<std::string>* fields) {
  while (TakeLineEnd()) {
  }
  fields->clear();
  if (rest_.empty()) return false;
  line_ = next_line_;
  for (;;) {
    if (fields->size() == kMostCsvFields) {
      return InvalidArgument("has more than " + std::to_string(kMostCsvFields) +
                             " fields; separate lines by line feeds");
    }
    std::string& field = fields->emplace_back();
    KUMO_RETURN_IF_ERROR(rest_.starts_with(kQuote) ? ReadQuoted(&field) : ReadPlain(&field));
    if (TakeLineEnd()) return true;
    if (rest_.empty()) {
      return CutOff("the last line has no newline");
    }
    if (!rest_.starts_with(kComma)) {
      return InvalidArgument(
          "has text behind a closing quote; write a quote within a quoted field twice");
    }
    rest_.remove_prefix(1);
  }
}

Status CsvReader::ReadQuoted(std::string* field) {
  rest_.remove_prefix(1);
  for (;;) {
    const size_t quote = rest_.find(kQuote);
    const std::string_view part = rest_.substr(0, quote);
    if (quote == rest_.npos) return CutOff("a quoted field has no closing quote");
    if (part.find('\0') != part.npos) return InvalidArgument("has a zero byte; save it as UTF-8");
    next_line_ += std::ranges::count(part, '\n');
    field->append(part);
    rest_.remove_prefix(quote + 1);
    if (!rest_.starts_with(kQuote)) return OkStatus();
    field->push_back(kQuote);
    rest_.remove_prefix(1);
  }
}

Status CsvReader::ReadPlain(std::string* field) {
  const size_t end = std::min(rest_.find_first_of(",\n"), rest_.size());
  std::string_view part = rest_.substr(0, end);
  if (rest_.substr(end).starts_with('\n') && part.ends_with('\r')) part.remove_suffix(1);
  if (part.find('\0') != part.npos) return InvalidArgument("has a zero byte; save it as UTF-8");
  if (part.find(kQuote) != part.npos) {
    return InvalidArgument(
        "has a quote within a field without quotes; put the field in quotes, and write the quote "
        "twice");
  }
  if (part.find('\r') != part.npos) {
    return InvalidArgument("has a carriage return without a line feed; end lines with LF or CRLF");
  }
  field->assign(part);
  rest_.remove_prefix(part.size());
  return OkStatus();
}

}  // namespace kumo
