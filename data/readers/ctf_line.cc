#include "data/readers/ctf_line.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "common/base/printable.h"

namespace kumo {
namespace {

constexpr std::string_view kBlanks = " \t";
constexpr size_t kShown = 40;  // bytes of what is wrong, in a message

std::string Quoted(std::string_view text) { return '"' + Printable(text, kShown) + '"'; }

// A line with a place on it.
class Cursor {
 public:
  explicit Cursor(std::string_view line) : line_(line) {}

  int64_t column() const { return static_cast<int64_t>(at_) + 1; }
  bool ended() const { return at_ == line_.size(); }
  char next() const { return line_[at_]; }
  void Skip(size_t bytes) { at_ += bytes; }
  void SkipBlanks() { at_ = std::min(line_.find_first_not_of(kBlanks, at_), line_.size()); }
  // What comes until one of `stops`, which stays.
  std::string_view Until(std::string_view stops) {
    const size_t begin = at_;
    at_ = std::min(line_.find_first_of(stops, at_), line_.size());
    return line_.substr(begin, at_ - begin);
  }

 private:
  const std::string_view line_;
  size_t at_ = 0;
};

template <typename Number>
bool ReadNumber(std::string_view text, Number* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

// A value as it stands, "1.5" or "3:1.5".
Status AddValue(std::string_view text, int64_t column, CtfStream* stream) {
  const size_t colon = text.find(':');
  const bool sparse = colon != std::string_view::npos;
  if (stream->values.empty()) stream->sparse = sparse;
  if (sparse != stream->sparse) {
    return WrongColumn(column, Quoted(text) + " is " + (sparse ? "sparse" : "dense") +
                                   ", the values of |" + stream->name + " before it are not");
  }
  float value = 0;
  if (!ReadNumber(sparse ? text.substr(colon + 1) : text, &value) || !std::isfinite(value)) {
    return WrongColumn(column, Quoted(text) + " is no number");
  }
  if (sparse) {
    int64_t index = 0;
    if (!ReadNumber(text.substr(0, colon), &index) || index < 0) {
      return WrongColumn(column, Quoted(text) + " does not begin with a place from 0 on");
    }
    if (!stream->indices.empty() && index <= stream->indices.back()) {
      return WrongColumn(column, "place " + std::to_string(index) + " of |" + stream->name +
                                     " is not behind the one before it");
    }
    stream->indices.push_back(index);
  }
  stream->values.push_back(value);
  stream->columns.push_back(column);
  return OkStatus();
}

Status ReadStream(Cursor& cursor, CtfStream* stream) {
  while (true) {
    cursor.SkipBlanks();
    if (cursor.ended() || cursor.next() == '|') return OkStatus();
    const int64_t column = cursor.column();
    KUMO_RETURN_IF_ERROR(AddValue(cursor.Until(" \t|"), column, stream));
  }
}

void Clear(CtfStream* stream) {
  stream->column = 0;
  stream->sparse = false;
  stream->values.clear();
  stream->indices.clear();
  stream->columns.clear();
}

}  // namespace

Status WrongColumn(int64_t column, const std::string& what) {
  return InvalidArgument(std::to_string(column) + ": " + what);
}

Status ParseCtfLine(std::string_view line, std::string_view* sequence,
                    std::span<CtfStream> streams) {
  for (CtfStream& stream : streams) Clear(&stream);
  Cursor cursor(line);
  cursor.SkipBlanks();
  const int64_t begin = cursor.column();
  *sequence = cursor.Until(" \t|");
  uint64_t number = 0;
  if (!sequence->empty() && !ReadNumber(*sequence, &number)) {
    return WrongColumn(begin,
                       Quoted(*sequence) + " is not a sequence's number; streams begin with '|'");
  }
  cursor.SkipBlanks();
  while (!cursor.ended()) {
    const int64_t column = cursor.column();
    if (cursor.next() != '|') {
      return WrongColumn(column, Quoted(cursor.Until("|")) + " belongs to no stream");
    }
    cursor.Skip(1);
    const std::string_view name = cursor.Until(" \t|");
    const auto stream = std::ranges::find(streams, name, &CtfStream::name);
    if (stream == streams.end()) {
      cursor.Until("|");
      continue;
    }
    if (stream->column > 0) return WrongColumn(column, "|" + stream->name + " is there twice");
    stream->column = column;
    KUMO_RETURN_IF_ERROR(ReadStream(cursor, &*stream));
  }
  return OkStatus();
}

}  // namespace kumo
