#include "data/readers/all.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <glog/logging.h>

#include "common/base/nearest_float.h"
#include "common/base/printable.h"
#include "common/base/text.h"
#include "data/readers/byte_source.h"

namespace kumo {

namespace {

constexpr size_t kTextPieceBytes = 256 << 10;
constexpr size_t kMaxLineBytes = 64 << 20;
// Memory of a sequence's incomplete samples, without the last line.
constexpr size_t kMaxWaitingBytes = 64 << 20;

std::string Text(float number) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", static_cast<double>(number));
  return text;
}

constexpr std::string_view kBlanks = " \t";

// A line with a stream.
struct Line {
  int64_t number = 0;           // from 1 on
  std::string_view text{};      // without its newline
  std::string_view sequence{};  // the number before the first '|'; "": none
};

// True if the line has more than blanks, a sequence number and comments.
bool HasContent(const Line& line) {
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

// Lines of a file.
class Lines {
 public:
  static Result<Lines> Open(const std::string& path) {
    KUMO_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path));
    return Lines(std::move(source));
  }

  // The next line with content, valid until the next call; none at the end.
  Result<std::optional<Line>> Next() {
    while (true) {
      const size_t end = text_.find('\n', begin_);
      if (end == std::string::npos) {
        KUMO_ASSIGN_OR_RETURN(const bool more, ReadMore());
        if (more) continue;
        if (begin_ == text_.size()) return std::optional<Line>();
        return DataLoss(Where(number_ + 1) +
                        " the last line has no newline, so the file may be truncated; "
                        "end it with a newline");
      }
      Line line{++number_, std::string_view(text_).substr(begin_, end - begin_)};
      begin_ = end + 1;
      if (number_ == 1 && line.text.starts_with(kByteOrderMark)) {
        line.text.remove_prefix(kByteOrderMark.size());
      }
      if (line.text.ends_with('\r')) line.text.remove_suffix(1);
      line.sequence = SequenceOf(line.text);
      if (HasContent(line)) return std::optional(line);
    }
  }

  const std::string& path() const { return source_.path(); }

 private:
  explicit Lines(ByteSource source) : source_(std::move(source)) {}

  std::string Where(int64_t number) const { return path() + ":" + std::to_string(number) + ":"; }

  Result<bool> ReadMore() {
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

  ByteSource source_;
  std::string text_;
  size_t begin_ = 0;  // start of the bytes without a complete line
  int64_t number_ = 0;
};

// Position in a file; line and column count from 1 on. Line 0: none.
struct Place {
  int64_t line = 0;
  int64_t column = 0;
};

// A stream of a sample.
struct CtfStream {
  std::string name;  // to look for
  Place place;
  size_t bytes = 0;           // of its text
  int64_t sparse_values = 0;  // their number; an upper bound if values are skipped
  bool sparse = false;
  std::vector<float> values;
  std::vector<int64_t> indices;  // of sparse values; ascending
  std::vector<int64_t> columns;  // of the values

  bool found() const { return place.line > 0; }
  Place PlaceOf(size_t value) const { return {place.line, columns[value]}; }
};

constexpr size_t kShown = 40;  // bytes of faulty text in a message

// InvalidArgument with a message "2:9: what is wrong" that begins with line and column, to be
// prefixed by the file.
Status Wrong(Place place, const std::string& what) {
  return InvalidArgument(std::to_string(place.line) + ":" + std::to_string(place.column) + ": " +
                         what);
}

std::string Quoted(std::string_view text) { return '"' + Printable(text, kShown) + '"'; }

// A line with a position.
class Cursor {
 public:
  explicit Cursor(const Line& line) : number_(line.number), line_(line.text) {}

  Place place() const { return {number_, static_cast<int64_t>(at_) + 1}; }
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
Status AddValue(std::string_view text, Place place, CtfStream* stream) {
  const size_t colon = text.find(':');
  const bool sparse = colon != std::string_view::npos;
  if (stream->values.empty()) stream->sparse = sparse;
  if (sparse != stream->sparse) {
    return Wrong(place, Quoted(text) + " is " + (sparse ? "sparse" : "dense") +
                            ", but the values of |" + stream->name + " before it are not");
  }
  const std::optional<float> value = NearestFloat(sparse ? text.substr(colon + 1) : text);
  if (!value) return Wrong(place, Quoted(text) + " is no number");
  if (!std::isfinite(*value)) {
    return Wrong(place, Quoted(text) +
                            " exceeds the largest number of float32, 3.4e38; scale the "
                            "values of |" +
                            stream->name);
  }
  if (sparse) {
    const int64_t index = ParseNumber<int64_t>(text.substr(0, colon)).value_or(-1);
    if (index < 0) return Wrong(place, Quoted(text) + " does not begin with an index from 0 on");
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
      return Wrong(sorted.PlaceOf(i), "index " + std::to_string(sorted.indices[i]) + " of |" +
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
    const Place place = cursor.place();
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

enum class StreamValues { kParsed, kSkipped };

// Parses a line into `streams`, by their names. Other streams and comments are skipped. The errors
// of Wrong.
Status ParseCtfLine(const Line& line, StreamValues values, std::span<CtfStream> streams) {
  for (CtfStream& stream : streams) Clear(&stream);
  Cursor cursor(line);
  cursor.SkipBlanks();
  const Place begin = cursor.place();
  const std::string_view first = cursor.Until(" \t|");
  if (first != line.sequence) {
    return Wrong(begin, Quoted(first) + " is no sequence number; streams begin with '|'");
  }
  cursor.SkipBlanks();
  while (!cursor.ended()) {
    const Place place = cursor.place();
    if (cursor.next() != '|') {
      return Wrong(place, Quoted(cursor.Until('|')) + " belongs to no stream");
    }
    cursor.Skip(1);
    const std::string_view name = cursor.Until(" \t|");
    if (name.empty()) {
      return Wrong(place, "'|' without the name of a stream; in a comment write |# instead");
    }
    const auto stream = std::ranges::find(streams, name, &CtfStream::name);
    if (stream == streams.end()) {
      cursor.Until('|');
      continue;
    }
    if (stream->found()) {
      return Wrong(place,
                   "|" + stream->name + " occurs twice on the line; give each sample its own line");
    }
    stream->place = place;
    if (values == StreamValues::kParsed) {
      KUMO_RETURN_IF_ERROR(ReadStream(cursor, &*stream));
      stream->sparse_values = std::ssize(stream->indices);
    } else {
      stream->sparse_values = std::ranges::count(cursor.Until('|'), ':');
    }
    stream->bytes = static_cast<size_t>(cursor.place().column - place.column);
  }
  return OkStatus();
}

// Values of all samples: dense rows, or the present values of each sample.
struct Rows {
  bool sparse = false;
  std::vector<float> values;
  std::vector<int64_t> indices;  // of sparse values in their samples
  std::vector<int64_t> ends;     // of the samples among sparse values
};

class CtfDataset final : public Dataset {
 public:
  CtfDataset(std::string name, Fields fields, int classes, bool sparse)
      : name_(std::move(name)), fields_(std::move(fields)), classes_(classes) {
    rows_.sparse = sparse;
  }

  int64_t size() const override { return std::ssize(labels_) / fields_[kLabel].bytes(); }
  const Fields& fields() const override { return fields_; }
  int classes() const override { return classes_; }
  std::vector<int32_t> SampleClasses() const override {
    std::vector<int32_t> classes(classes_ > 0 ? size() : 0);
    if (classes_ > 0)
      std::ranges::copy(labels_, std::as_writable_bytes(std::span(classes)).begin());
    return classes;
  }
  const std::string& name() const override { return name_; }
  bool in_memory() const override { return true; }
  Status ReadKey(const SampleKey& key, Sample* sample) const override {
    const int64_t index = key.sample;
    CHECK(index >= 0 && index < size()) << name_ << ": sample " << index << " of " << size();
    const int64_t bytes = fields_[kLabel].bytes();
    sample->Borrow(kLabel, std::span(labels_).subspan(index * bytes, bytes));
    const int64_t numbers = fields_[kImage].numbers();
    if (!rows_.sparse) {
      sample->Borrow(kImage,
                     std::as_bytes(std::span(rows_.values).subspan(index * numbers, numbers)));
      return OkStatus();
    }
    const std::span<std::byte> room = sample->Make(kImage, fields_[kImage].bytes());
    const std::span<float> out(reinterpret_cast<float*>(room.data()), numbers);
    std::ranges::fill(out, 0.0f);
    const int64_t begin = index == 0 ? 0 : rows_.ends[index - 1];
    for (int64_t i = begin; i < rows_.ends[index]; ++i) out[rows_.indices[i]] = rows_.values[i];
    return OkStatus();
  }

  // Used while it is filled, before it is shared.
  void Add(const CtfStream& image, std::span<const std::byte> label) {
    rows_.values.insert(rows_.values.end(), image.values.begin(), image.values.end());
    if (rows_.sparse) {
      rows_.indices.insert(rows_.indices.end(), image.indices.begin(), image.indices.end());
      rows_.ends.push_back(std::ssize(rows_.values));
    }
    labels_.insert(labels_.end(), label.begin(), label.end());
  }

 private:
  const std::string name_;
  const Fields fields_;
  const int classes_;
  Rows rows_;
  std::vector<std::byte> labels_;
};

// A sequence: a line, or all adjacent lines of one number.
struct Sequence {
  std::string number;  // "": none
  Place begin;
  int64_t lines = 0;  // read so far
};

// A file whose first sample has been read.
//
// Sample k of a sequence consists of the k-th occurrence of each stream. It is complete when it has
// all streams; the streams of incomplete samples wait.
class CtfFile {
 public:
  static Result<CtfFile> Open(const ReaderRequest& request) {
    KUMO_ASSIGN_OR_RETURN(Lines lines, Lines::Open(request.images));
    CtfFile file(request, std::move(lines));
    KUMO_ASSIGN_OR_RETURN(const bool any, file.Next(StreamValues::kParsed));
    if (!any) return InvalidArgument(request.images + ": contains no samples");
    KUMO_RETURN_IF_ERROR(file.WorkOutFields());
    return file;
  }

  const Fields& fields() const { return fields_; }
  const CtfStream& image() const { return streams_[kImage]; }
  bool sparse() const { return sparse_; }

  // Reads the next sample; false at the end. Check requires parsed values.
  Result<bool> Next(StreamValues values) {
    while (!TakeWaiting()) {
      if (!ahead_) {
        KUMO_ASSIGN_OR_RETURN(ahead_, lines_->Next());
      }
      if (!ContinuesSequence()) {
        KUMO_RETURN_IF_ERROR(At(CheckSequence()));
        if (!ahead_) return false;
        sequence_ = {std::string(ahead_->sequence), {ahead_->number, 1}};
        occurrences_ = {};
      }
      const Line line = *std::exchange(ahead_, std::nullopt);
      ++sequence_.lines;
      KUMO_RETURN_IF_ERROR(At(ParseCtfLine(line, values, streams_)));
      for (int k = 0; k < kStreams; ++k) occurrences_[k] += streams_[k].found() ? 1 : 0;
      if (waiting_bytes_ == 0 && IsComplete()) return true;
      KUMO_RETURN_IF_ERROR(At(Hold()));
    }
    return true;
  }

  // Checks the current sample. Returns its label's bytes, valid until the next sample.
  Result<std::span<const std::byte>> Check() {
    KUMO_RETURN_IF_ERROR(At(CheckImage()));
    if (request_.label_stream.empty()) return std::as_bytes(std::span(&class_, 1));
    if (request_.classes == 0) {
      KUMO_RETURN_IF_ERROR(At(CheckLabelNumbers()));
      return std::as_bytes(std::span(streams_[kLabel].values));
    }
    const Result<int32_t> label = Class();
    if (!label.ok()) return At(label.status());
    class_ = *label;
    return std::as_bytes(std::span(&class_, 1));
  }

 private:
  CtfFile(const ReaderRequest& request, Lines lines)
      : request_(request), lines_(std::make_unique<Lines>(std::move(lines))) {
    streams_[kImage].name = request.image_stream;
    streams_[kLabel].name = request.label_stream;
  }

  Status At(const Status& status) const {
    if (status.ok()) return status;
    return {status.code(), lines_->path() + ":" + status.message()};
  }

  // False for labels that the request does not name.
  bool IsWanted(int stream) const { return stream == kImage || !streams_[stream].name.empty(); }

  // True if the streams of the line that was parsed last are a sample.
  bool IsComplete() const {
    for (int k = 0; k < kStreams; ++k) {
      if (IsWanted(k) && !streams_[k].found()) return false;
    }
    return true;
  }

  bool ContinuesSequence() const {
    return ahead_ && !sequence_.number.empty() && ahead_->sequence == sequence_.number;
  }

  // Makes the next sample the current one, if all its streams wait.
  bool TakeWaiting() {
    for (int k = 0; k < kStreams; ++k) {
      if (IsWanted(k) && waiting_[k].empty()) return false;
    }
    for (int k = 0; k < kStreams; ++k) {
      if (!IsWanted(k)) continue;
      streams_[k] = std::move(waiting_[k].front());
      waiting_[k].pop_front();
      waiting_bytes_ -= WaitingBytes(streams_[k]);
    }
    return true;
  }

  // Keeps the streams of the line that was parsed last until their samples are complete.
  Status Hold() {
    if (waiting_bytes_ > kMaxWaitingBytes) {
      return Wrong(FirstIncomplete(), SequenceText() + " on its first " +
                                          Counted(sequence_.lines, "line", "lines") +
                                          ", and the incomplete samples take more than " +
                                          std::to_string(kMaxWaitingBytes >> 20) +
                                          " MiB; write all streams of a sample on one line");
    }
    for (int k = 0; k < kStreams; ++k) {
      if (!streams_[k].found()) continue;
      waiting_bytes_ += WaitingBytes(streams_[k]);
      waiting_[k].push_back(streams_[k]);
    }
    return OkStatus();
  }

  static size_t WaitingBytes(const CtfStream& stream) { return sizeof stream + stream.bytes; }

  // The first stream without the other one, or else the sequence.
  Place FirstIncomplete() const {
    for (const auto& waiting : waiting_) {
      if (!waiting.empty()) return waiting.front().place;
    }
    return sequence_.begin;
  }

  // "sequence 7 has 3 |features and 1 |labels"
  std::string SequenceText() const {
    std::string text = "sequence " + Printable(sequence_.number, kShown) + " has ";
    for (int k = 0; k < kStreams; ++k) {
      if (!IsWanted(k)) continue;
      text += (k > 0 ? " and " : "") +
              (occurrences_[k] == 0 ? "no" : std::to_string(occurrences_[k])) + " |" +
              streams_[k].name;
    }
    return text;
  }

  // The error of a sequence that ends with an incomplete sample, or without any.
  Status CheckSequence() const {
    if (sequence_.lines == 0 || (waiting_bytes_ == 0 && occurrences_[kImage] > 0)) {
      return OkStatus();
    }
    if (sequence_.lines == 1) {
      const int missing = waiting_[kImage].empty() ? kImage : kLabel;
      return Wrong(FirstIncomplete(), "the line has no |" + streams_[missing].name);
    }
    return Wrong(FirstIncomplete(),
                 SequenceText() + (IsWanted(kLabel) ? "; each sample needs one of each" : ""));
  }

  Status WorkOutFields() {
    const CtfStream& image = streams_[kImage];
    sparse_ = image.sparse || image.values.empty();
    std::vector<int64_t> extents = request_.image_size;
    if (extents.empty()) {
      if (sparse_) {
        return At(Wrong(image.place, "|" + image.name + " is " +
                                         (image.values.empty() ? "empty" : "sparse") +
                                         ", so the number of values is unknown; set "
                                         "data.image_size"));
      }
      extents = {1, std::ssize(image.values), 1};
    }
    fields_ = {{kImageField, NumberType::kFloat32, std::move(extents)},
               {kLabelField, NumberType::kInt32, {}}};
    if (request_.classes > 0 || request_.label_stream.empty()) return OkStatus();
    const CtfStream& label = streams_[kLabel];
    if (label.values.empty()) {
      return At(Wrong(label.place, "|" + label.name + " has no values"));
    }
    fields_[kLabel] = {kLabelField, NumberType::kFloat32, {std::ssize(label.values)}};
    return OkStatus();
  }

  Status CheckImage() const {
    const CtfStream& image = streams_[kImage];
    const int64_t numbers = fields_[kImage].numbers();
    // An empty sparse stream is a row of zeros.
    if (!image.values.empty() && image.sparse != sparse_) {
      return Wrong(image.PlaceOf(0), "|" + image.name + " is " + (sparse_ ? "sparse" : "dense") +
                                         " on the first line, but not here");
    }
    if (!sparse_ && std::ssize(image.values) != numbers) {
      return Wrong(image.place, "|" + image.name + " has " + std::to_string(image.values.size()) +
                                    " values, not " + std::to_string(numbers) + " (" +
                                    ExtentsText(fields_[kImage].extents) + ")");
    }
    if (sparse_ && !image.indices.empty() && image.indices.back() >= numbers) {
      return Wrong(image.PlaceOf(image.columns.size() - 1),
                   "index " + std::to_string(image.indices.back()) + " of |" + image.name +
                       " is not below " + std::to_string(numbers) +
                       " (data.image_size = " + ExtentsText(fields_[kImage].extents) + ")");
    }
    return OkStatus();
  }

  Status CheckLabelNumbers() const {
    const CtfStream& label = streams_[kLabel];
    if (label.sparse) {
      return Wrong(label.PlaceOf(0),
                   "|" + label.name +
                       " is sparse, but with data.classes = 0 labels must be dense "
                       "numbers");
    }
    const int64_t numbers = fields_[kLabel].numbers();
    if (std::ssize(label.values) == numbers) return OkStatus();
    return Wrong(label.place, "|" + label.name + " has " + std::to_string(label.values.size()) +
                                  " values, not " + std::to_string(numbers) +
                                  " as on the first line");
  }

  Result<int32_t> Class() const {
    const CtfStream& label = streams_[kLabel];
    const int64_t classes = request_.classes;
    if (!label.sparse && label.values.size() == 1) {
      const double number = label.values[0];
      if (number >= 0 && number < static_cast<double>(classes) && number == std::floor(number)) {
        return static_cast<int32_t>(number);
      }
      return NoClass(label.PlaceOf(0), "label " + Text(label.values[0]));
    }
    if (!label.sparse && std::ssize(label.values) != classes) {
      return NoClass(label.place, "a label of " + std::to_string(label.values.size()) + " values");
    }
    int64_t place = -1;
    for (size_t i = 0; i < label.values.size(); ++i) {
      if (label.values[i] == 0) continue;
      if (place >= 0 || label.values[i] != 1) {
        return Wrong(label.PlaceOf(i), "|" + label.name + " must be a one-hot vector");
      }
      place = label.sparse ? label.indices[i] : static_cast<int64_t>(i);
      if (place >= classes) return NoClass(label.PlaceOf(i), "label " + std::to_string(place));
    }
    if (place < 0) return Wrong(label.place, "|" + label.name + " has no 1");
    return static_cast<int32_t>(place);
  }

  Status NoClass(Place place, const std::string& what) const {
    return Wrong(place, what +
                            " is no class of data.classes = " + std::to_string(request_.classes) +
                            "; correct data.classes or the file");
  }

  static constexpr int kStreams = 2;  // kImage, kLabel

  const ReaderRequest& request_;
  std::unique_ptr<Lines> lines_;                 // fixed in memory, for ahead_
  std::array<CtfStream, kStreams> streams_;      // of the current sample
  std::optional<Line> ahead_;                    // a line that was read, but not parsed
  Sequence sequence_;                            // of the line that was parsed last
  std::array<int64_t, kStreams> occurrences_{};  // in the sequence, by stream
  // Streams of the samples behind the current one, in their order; of incomplete samples if there
  // are no complete ones.
  std::array<std::deque<CtfStream>, kStreams> waiting_;
  size_t waiting_bytes_ = 0;
  Fields fields_;
  bool sparse_ = false;
  int32_t class_ = 0;  // of the current sample
};

}  // namespace

Result<DatasetExtents> MeasureCtf(const ReaderRequest& request) {
  KUMO_ASSIGN_OR_RETURN(CtfFile file, CtfFile::Open(request));
  DatasetExtents extents{1, file.fields()};
  const bool sparse = file.sparse();
  int64_t values = file.image().sparse_values;
  while (request.limit == 0 || extents.samples < request.limit) {
    KUMO_ASSIGN_OR_RETURN(const bool more, file.Next(StreamValues::kSkipped));
    if (!more) break;
    ++extents.samples;
    values += file.image().sparse_values;
  }
  constexpr int64_t kSparseBytes = sizeof(float) + sizeof(int64_t);
  extents.bytes =
      sparse ? values * kSparseBytes + extents.samples * (static_cast<int64_t>(sizeof(int64_t)) +
                                                          extents.fields[kLabel].bytes())
             : extents.samples * BytesOf(extents.fields);
  return extents;
}

Result<std::unique_ptr<Dataset>> OpenCtf(const ReaderRequest& request) {
  KUMO_ASSIGN_OR_RETURN(CtfFile file, CtfFile::Open(request));
  auto dataset =
      std::make_unique<CtfDataset>(request.images, file.fields(), request.classes, file.sparse());
  for (bool more = true; more;) {
    KUMO_ASSIGN_OR_RETURN(const std::span<const std::byte> label, file.Check());
    if (request.limit == 0 || dataset->size() < request.limit) dataset->Add(file.image(), label);
    KUMO_ASSIGN_OR_RETURN(more, file.Next(StreamValues::kParsed));
  }
  return std::unique_ptr<Dataset>(std::move(dataset));
}

}  // namespace kumo
