#include "data/readers/all.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <glog/logging.h>

#include "common/base/printable.h"
#include "common/base/text.h"
#include "data/readers/byte_source.h"

namespace kumo {

namespace {

constexpr size_t kTextPieceBytes = 256 << 10;
constexpr size_t kMaxLineBytes = 64 << 20;

std::string Text(float number) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", static_cast<double>(number));
  return text;
}

// Lines of a file, without newlines.
class Lines {
 public:
  static Result<Lines> Open(const std::string& path) {
    KUMO_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path));
    return Lines(std::move(source));
  }

  // The next line that is not empty, valid until the next call; none at the end.
  Result<std::optional<std::string_view>> Next() {
    while (true) {
      const size_t end = text_.find('\n', begin_);
      if (end == std::string::npos) {
        KUMO_ASSIGN_OR_RETURN(const bool more, ReadMore());
        if (more) continue;
        if (begin_ == text_.size()) return std::optional<std::string_view>();
        ++number_;
        return DataLoss(Where() +
                        " the last line has no newline, so the file may be truncated; "
                        "end it with a newline");
      }
      std::string_view line = std::string_view(text_).substr(begin_, end - begin_);
      begin_ = end + 1;
      ++number_;
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!line.empty()) return std::optional(line);
    }
  }

  // "path:line:" for the line that Next returned.
  std::string Where() const { return source_.path() + ":" + std::to_string(number_) + ":"; }

 private:
  explicit Lines(ByteSource source) : source_(std::move(source)) {}

  Result<bool> ReadMore() {
    text_.erase(0, begin_);
    begin_ = 0;
    const size_t have = text_.size();
    if (have > kMaxLineBytes) {
      ++number_;
      return InvalidArgument(Where() + " the line is longer than " + std::to_string(kMaxLineBytes) +
                             " bytes");
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

// A stream of a line.
struct CtfStream {
  std::string name;    // to look for
  int64_t column = 0;  // start on the line, from 1 on; 0: missing
  bool sparse = false;
  std::vector<float> values;
  std::vector<int64_t> indices;  // of sparse values; ascending
  std::vector<int64_t> columns;  // of the values
};

constexpr std::string_view kBlanks = " \t";
constexpr size_t kShown = 40;  // bytes of faulty text in a message

// InvalidArgument with a message "9: what is wrong" that begins with the column, to be prefixed by
// file and line.
Status WrongColumn(int64_t column, const std::string& what) {
  return InvalidArgument(std::to_string(column) + ": " + what);
}

std::string Quoted(std::string_view text) { return '"' + Printable(text, kShown) + '"'; }

// A line with a position.
class Cursor {
 public:
  explicit Cursor(std::string_view line) : line_(line) {}

  int64_t column() const { return static_cast<int64_t>(at_) + 1; }
  bool ended() const { return at_ == line_.size(); }
  char next() const { return line_[at_]; }
  void Skip(size_t bytes) { at_ += bytes; }
  void SkipBlanks() { at_ = std::min(line_.find_first_not_of(kBlanks, at_), line_.size()); }
  // The text before one of `stops`, which remains.
  std::string_view Until(std::string_view stops) {
    const size_t begin = at_;
    at_ = std::min(line_.find_first_of(stops, at_), line_.size());
    return line_.substr(begin, at_ - begin);
  }

 private:
  const std::string_view line_;
  size_t at_ = 0;
};

// Parses a value, "1.5" or "3:1.5".
Status AddValue(std::string_view text, int64_t column, CtfStream* stream) {
  const size_t colon = text.find(':');
  const bool sparse = colon != std::string_view::npos;
  if (stream->values.empty()) stream->sparse = sparse;
  if (sparse != stream->sparse) {
    return WrongColumn(column, Quoted(text) + " is " + (sparse ? "sparse" : "dense") +
                                   ", but the values of |" + stream->name + " before it are not");
  }
  const std::optional<float> value = ParseNumber<float>(sparse ? text.substr(colon + 1) : text);
  if (!value || !std::isfinite(*value)) {
    return WrongColumn(column, Quoted(text) + " is no number");
  }
  if (sparse) {
    const int64_t index = ParseNumber<int64_t>(text.substr(0, colon)).value_or(-1);
    if (index < 0) {
      return WrongColumn(column, Quoted(text) + " does not begin with an index from 0 on");
    }
    if (!stream->indices.empty() && index <= stream->indices.back()) {
      return WrongColumn(column, "index " + std::to_string(index) + " of |" + stream->name +
                                     " is not above the previous one");
    }
    stream->indices.push_back(index);
  }
  stream->values.push_back(*value);
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

// Parses a line into `streams`, by their names, and `sequence`, the text before the first '|'.
// Other streams are skipped. The errors of WrongColumn.
Status ParseCtfLine(std::string_view line, std::string_view* sequence,
                    std::span<CtfStream> streams) {
  for (CtfStream& stream : streams) Clear(&stream);
  Cursor cursor(line);
  cursor.SkipBlanks();
  const int64_t begin = cursor.column();
  *sequence = cursor.Until(" \t|");
  if (!sequence->empty() && !ParseNumber<uint64_t>(*sequence)) {
    return WrongColumn(begin, Quoted(*sequence) + " is no sequence number; streams begin with '|'");
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
    if (stream->column > 0) return WrongColumn(column, "|" + stream->name + " occurs twice");
    stream->column = column;
    KUMO_RETURN_IF_ERROR(ReadStream(cursor, &*stream));
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

// A file whose first line has been read.
class CtfFile {
 public:
  static Result<CtfFile> Open(const ReaderRequest& request) {
    KUMO_ASSIGN_OR_RETURN(Lines lines, Lines::Open(request.images));
    CtfFile file(request, std::move(lines));
    KUMO_ASSIGN_OR_RETURN(const bool any, file.Next());
    if (!any) return InvalidArgument(request.images + ": contains no samples");
    KUMO_RETURN_IF_ERROR(file.WorkOutFields());
    return file;
  }

  const Fields& fields() const { return fields_; }
  const CtfStream& image() const { return streams_[kImage]; }

  // Reads the next line; false at the end.
  Result<bool> Next() {
    KUMO_ASSIGN_OR_RETURN(const auto line, lines_.Next());
    if (!line) return false;
    std::string_view sequence;
    KUMO_RETURN_IF_ERROR(At(ParseCtfLine(*line, &sequence, streams_)));
    if (!sequence.empty() && sequence == sequence_) {
      return At(WrongColumn(
          1, "sequence " + sequence_ + " continues; only sequences of one line are supported"));
    }
    sequence_ = sequence;
    for (const CtfStream& stream : streams_) {
      if (stream.column == 0 && !stream.name.empty())
        return At(WrongColumn(1, "the line has no |" + stream.name));
    }
    return true;
  }
  // The next line's text, unparsed.
  Result<std::optional<std::string_view>> Pass() { return lines_.Next(); }

  // Converts the current line to a sample. Returns its label's bytes, valid until the next line.
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
  CtfFile(const ReaderRequest& request, Lines lines) : request_(request), lines_(std::move(lines)) {
    streams_[kImage].name = request.image_stream;
    streams_[kLabel].name = request.label_stream;
  }

  Status At(const Status& status) const {
    if (status.ok()) return status;
    return {status.code(), lines_.Where() + status.message()};
  }

  Status WorkOutFields() {
    const CtfStream& image = streams_[kImage];
    if (image.values.empty()) {
      return At(WrongColumn(image.column, "|" + image.name +
                                              " has no values, so the first line does not "
                                              "show whether they are sparse"));
    }
    sparse_ = image.sparse;
    std::vector<int64_t> extents = request_.image_size;
    if (extents.empty()) {
      if (sparse_) {
        return At(WrongColumn(image.column, "|" + image.name +
                                                " is sparse, so the number of values is "
                                                "unknown; set data.image_size"));
      }
      extents = {1, std::ssize(image.values), 1};
    }
    fields_ = {{kImageField, NumberType::kFloat32, std::move(extents)},
               {kLabelField, NumberType::kInt32, {}}};
    if (request_.classes > 0 || request_.label_stream.empty()) return OkStatus();
    const CtfStream& label = streams_[kLabel];
    if (label.values.empty()) {
      return At(WrongColumn(label.column, "|" + label.name + " has no values"));
    }
    fields_[kLabel] = {kLabelField, NumberType::kFloat32, {std::ssize(label.values)}};
    return OkStatus();
  }

  Status CheckImage() const {
    const CtfStream& image = streams_[kImage];
    const int64_t numbers = fields_[kImage].numbers();
    // An empty sparse stream is a row of zeros.
    if (!image.values.empty() && image.sparse != sparse_) {
      return WrongColumn(image.columns[0], "|" + image.name + " is " +
                                               (sparse_ ? "sparse" : "dense") +
                                               " on the first line, but not here");
    }
    if (!sparse_ && std::ssize(image.values) != numbers) {
      return WrongColumn(image.column, "|" + image.name + " has " +
                                           std::to_string(image.values.size()) + " values, not " +
                                           std::to_string(numbers) + " (" +
                                           ExtentsText(fields_[kImage].extents) + ")");
    }
    if (sparse_ && !image.indices.empty() && image.indices.back() >= numbers) {
      return WrongColumn(image.columns.back(),
                         "index " + std::to_string(image.indices.back()) + " of |" + image.name +
                             " is not below " + std::to_string(numbers) +
                             " (data.image_size = " + ExtentsText(fields_[kImage].extents) + ")");
    }
    return OkStatus();
  }

  Status CheckLabelNumbers() const {
    const CtfStream& label = streams_[kLabel];
    if (label.sparse) {
      return WrongColumn(label.columns[0],
                         "|" + label.name +
                             " is sparse, but with data.classes = 0 labels must be dense "
                             "numbers");
    }
    const int64_t numbers = fields_[kLabel].numbers();
    if (std::ssize(label.values) == numbers) return OkStatus();
    return WrongColumn(label.column, "|" + label.name + " has " +
                                         std::to_string(label.values.size()) + " values, not " +
                                         std::to_string(numbers) + " as on the first line");
  }

  Result<int32_t> Class() const {
    const CtfStream& label = streams_[kLabel];
    const int64_t classes = request_.classes;
    if (!label.sparse && label.values.size() == 1) {
      const double number = label.values[0];
      if (number >= 0 && number < static_cast<double>(classes) && number == std::floor(number)) {
        return static_cast<int32_t>(number);
      }
      return NoClass(label.columns[0], "label " + Text(label.values[0]));
    }
    if (!label.sparse && std::ssize(label.values) != classes) {
      return NoClass(label.column, "a label of " + std::to_string(label.values.size()) + " values");
    }
    int64_t place = -1;
    for (size_t i = 0; i < label.values.size(); ++i) {
      if (label.values[i] == 0) continue;
      if (place >= 0 || label.values[i] != 1) {
        return WrongColumn(label.columns[i], "|" + label.name + " must be a one-hot vector");
      }
      place = label.sparse ? label.indices[i] : static_cast<int64_t>(i);
      if (place >= classes) return NoClass(label.columns[i], "label " + std::to_string(place));
    }
    if (place < 0) return WrongColumn(label.column, "|" + label.name + " has no 1");
    return static_cast<int32_t>(place);
  }

  Status NoClass(int64_t column, const std::string& what) const {
    return WrongColumn(column,
                       what + " is no class of data.classes = " + std::to_string(request_.classes) +
                           "; correct data.classes or the file");
  }

  const ReaderRequest& request_;
  Lines lines_;
  std::array<CtfStream, 2> streams_;  // kImage, kLabel
  std::string sequence_;              // of the previous line; "": none
  Fields fields_;
  bool sparse_ = false;
  int32_t class_ = 0;  // of the current line
};

}  // namespace

Result<DatasetExtents> MeasureCtf(const ReaderRequest& request) {
  KUMO_ASSIGN_OR_RETURN(CtfFile file, CtfFile::Open(request));
  DatasetExtents extents{1, file.fields()};
  const bool sparse = file.image().sparse;
  int64_t values = std::ssize(file.image().values);
  while (request.limit == 0 || extents.samples < request.limit) {
    KUMO_ASSIGN_OR_RETURN(const auto line, file.Pass());
    if (!line) break;
    ++extents.samples;
    values += std::ranges::count(*line, ':');
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
  auto dataset = std::make_unique<CtfDataset>(request.images, file.fields(), request.classes,
                                              file.image().sparse);
  for (bool more = true; more;) {
    KUMO_ASSIGN_OR_RETURN(const std::span<const std::byte> label, file.Check());
    if (request.limit == 0 || dataset->size() < request.limit) dataset->Add(file.image(), label);
    KUMO_ASSIGN_OR_RETURN(more, file.Next());
  }
  return std::unique_ptr<Dataset>(std::move(dataset));
}

}  // namespace kumo
