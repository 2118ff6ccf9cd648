#include "data/readers/ctf_line.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/nearest_float.h"
#include "common/base/printable.h"
#include "common/base/text.h"
#include "data/readers/byte_source.h"

namespace kumo {

namespace {

constexpr size_t kTextPieceBytes = 256 << 10;
constexpr size_t kMaxLineBytes = 64 << 20;
constexpr std::string_view kBlanks = " \t";

// True if the line has more than blanks, a sequence number and comments.
bool HasContent(const CtfLine& line) {
  std::string_view rest = line.text;
  rest.remove_prefix(std::min(rest.find_first_not_of(kBlanks), rest.size()));
  rest.remove_prefix(line.sequence.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(kBlanks), rest.size()));
  while (rest.starts_with("|#")) rest.remove_prefix(std::min(rest.find('|', 1), rest.size()));
  return !rest.empty();
}

// The digits at the start of the line, if blanks, '|' or the line's end follow.
std::string_view SequenceOf(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(" \t|"));
  return ParseNumber<uint64_t>(word) ? word : std::string_view();
}

std::string Quoted(std::string_view text) { return '"' + Printable(text, kCtfTextShown) + '"'; }

// A line with a position.
class Cursor {
 public:
  explicit Cursor(const CtfLine& line) : number_(line.number), line_(line.text) {}

  CtfPlace place() const { return {number_, static_cast<int64_t>(at_) + 1}; }
  bool ended() const { return at_ == line_.size(); }
  char next() const { return line_[at_]; }
  void Skip(size_t bytes) { at_ += bytes; }
  void SkipBlanks() { at_ = std::min(line_.find_first_not_of(kBlanks, at_), line_.size()); }
  // The text before one of `stops`, which remains.
  std::string_view Until(std::string_view stops) { return To(line_.find_first_of(stops, at_)); }
  std::string_view Until(char stop) { return To(line_.find(stop, at_)); }

 private:
  std::string_view To(size_t end) {
    const size_t begin = at_;
    at_ = std::min(end, line_.size());
    return line_.substr(begin, at_ - begin);
  }

  const int64_t number_;
  const std::string_view line_;
  size_t at_ = 0;
};

// Parses a value, "1.5" or "3:1.5".
Status AddValue(std::string_view text, CtfPlace place, CtfStream* stream) {
  const size_t colon = text.find(':');
  const bool sparse = colon != std::string_view::npos;
  if (stream->values.empty()) stream->sparse = sparse;
  if (sparse != stream->sparse) {
    return WrongInCtf(place, Quoted(text) + " is " + (sparse ? "sparse" : "dense") +
                                 ", but the values of |" + stream->name + " before it are not");
  }
  const std::optional<float> value = NearestFloat(sparse ? text.substr(colon + 1) : text);
  if (!value) return WrongInCtf(place, Quoted(text) + " is no number");
  if (!std::isfinite(*value)) {
    return WrongInCtf(place, Quoted(text) +
                                 " exceeds the largest number of float32, 3.4e38; scale the "
                                 "values of |" +
                                 stream->name);
  }
  if (sparse) {
    const int64_t index = ParseNumber<int64_t>(text.substr(0, colon)).value_or(-1);
    if (index < 0)
      return WrongInCtf(place, Quoted(text) + " does not begin with an index from 0 on");
    stream->indices.push_back(index);
  }
  stream->values.push_back(*value);
  stream->columns.push_back(place.column);
  return OkStatus();
}

// Sorts sparse values by their indices. The error of Wrong if an index occurs twice.
Status SortIndices(CtfStream* stream) {
  std::vector<int64_t>& indices = stream->indices;
  if (std::ranges::adjacent_find(indices, std::ranges::greater_equal()) == indices.end()) {
    return OkStatus();
  }
  std::vector<size_t> order(indices.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return indices[i]; });
  CtfStream sorted = *stream;
  for (size_t i = 0; i < order.size(); ++i) {
    sorted.values[i] = stream->values[order[i]];
    sorted.indices[i] = stream->indices[order[i]];
    sorted.columns[i] = stream->columns[order[i]];
    if (i > 0 && sorted.indices[i] == sorted.indices[i - 1]) {
      return WrongInCtf(sorted.PlaceOf(i), "index " + std::to_string(sorted.indices[i]) + " of |" +
                                               stream->name + " occurs twice");
    }
  }
  *stream = std::move(sorted);
  return OkStatus();
}

Status ReadStream(Cursor& cursor, CtfStream* stream) {
  while (true) {
    cursor.SkipBlanks();
    if (cursor.ended() || cursor.next() == '|') return SortIndices(stream);
    const CtfPlace place = cursor.place();
    KUMO_RETURN_IF_ERROR(AddValue(cursor.Until(" \t|"), place, stream));
  }
}

void Clear(CtfStream* stream) {
  stream->place = {};
  stream->bytes = 0;
  stream->sparse_values = 0;
  stream->sparse = false;
  stream->values.clear();
  stream->indices.clear();
  stream->columns.clear();
}

}  // namespace

Result<CtfLines> CtfLines::Open(const std::string& path) {
  KUMO_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path));
  return CtfLines(std::move(source));
}

Result<std::optional<CtfLine>> CtfLines::Next() {
  while (true) {
    const size_t end = text_.find('\n', begin_);
    if (end == std::string::npos) {
      KUMO_ASSIGN_OR_RETURN(const bool more, ReadMore());
      if (more) continue;
      if (begin_ == text_.size()) return std::optional<CtfLine>();
      return DataLoss(Where(number_ + 1) +
                      " the last line has no newline, so the file may be truncated; "
                      "end it with a newline");
    }
    CtfLine line{++number_, std::string_view(text_).substr(begin_, end - begin_)};
    begin_ = end + 1;
    if (number_ == 1) line.text = WithoutByteOrderMark(line.text);
    if (line.text.ends_with('\r')) line.text.remove_suffix(1);
    line.sequence = SequenceOf(line.text);
    if (HasContent(line)) return std::optional(line);
  }
}

Result<bool> CtfLines::ReadMore() {
  text_.erase(0, begin_);
  begin_ = 0;
  const size_t have = text_.size();
  if (have > kMaxLineBytes) {
    return InvalidArgument(Where(number_ + 1) + " the line is longer than " +
                           std::to_string(kMaxLineBytes) + " bytes");
  }
  text_.resize(have + std::max(have, kTextPieceBytes));
  auto* out = reinterpret_cast<uint8_t*>(text_.data()) + have;
  KUMO_ASSIGN_OR_RETURN(const size_t got, source_.Read({out, text_.size() - have}));
  text_.resize(have + got);
  return got > 0;
}

Status WrongInCtf(CtfPlace place, const std::string& what) {
  return InvalidArgument(std::to_string(place.line) + ":" + std::to_string(place.column) + ": " +
                         what);
}

Status ParseCtfLine(const CtfLine& line, CtfValues values, std::span<CtfStream> streams) {
  for (CtfStream& stream : streams) Clear(&stream);
  Cursor cursor(line);
  cursor.SkipBlanks();
  const CtfPlace begin = cursor.place();
  const std::string_view first = cursor.Until(" \t|");
  if (first != line.sequence) {
    return WrongInCtf(begin, Quoted(first) + " is no sequence number; streams begin with '|'");
  }
  cursor.SkipBlanks();
  while (!cursor.ended()) {
    const CtfPlace place = cursor.place();
    if (cursor.next() != '|') {
      return WrongInCtf(place, Quoted(cursor.Until('|')) + " belongs to no stream");
    }
    cursor.Skip(1);
    const std::string_view name = cursor.Until(" \t|");
    if (name.empty()) {
      return WrongInCtf(place, "'|' without the name of a stream; in a comment write |# instead");
    }
    const auto stream = std::ranges::find(streams, name, &CtfStream::name);
    if (stream == streams.end()) {
      cursor.Until('|');
      continue;
    }
    if (stream->found()) {
      return WrongInCtf(
          place, "|" + stream->name + " occurs twice on the line; give each sample its own line");
    }
    stream->place = place;
    if (values == CtfValues::kParsed) {
      KUMO_RETURN_IF_ERROR(ReadStream(cursor, &*stream));
      stream->sparse_values = std::ssize(stream->indices);
    } else {
      stream->sparse_values = std::ranges::count(cursor.Until('|'), ':');
    }
    stream->bytes = static_cast<size_t>(cursor.place().column - place.column);
  }
  return OkStatus();
}

}  // namespace kumo
