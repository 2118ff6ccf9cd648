#include "data/readers/all.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <glog/logging.h>

#include "common/base/printable.h"
#include "common/base/text.h"
#include "data/readers/ctf_line.h"

namespace kumo {

namespace {

// Memory of a sequence's incomplete samples, without the last line.
constexpr size_t kMaxWaitingBytes = 64 << 20;

std::string Text(float number) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", static_cast<double>(number));
  return text;
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
  CtfPlace begin;
  int64_t lines = 0;  // read so far
};

// A file whose first sample has been read.
//
// Sample k of a sequence consists of the k-th occurrence of each stream. It is complete when it has
// all streams; the streams of incomplete samples wait.
class CtfFile {
 public:
  static Result<CtfFile> Open(const ReaderRequest& request) {
    KUMO_ASSIGN_OR_RETURN(CtfLines lines, CtfLines::Open(request.images));
    CtfFile file(request, std::move(lines));
    KUMO_ASSIGN_OR_RETURN(const bool any, file.Next(CtfValues::kParsed));
    if (!any) return InvalidArgument(request.images + ": contains no samples");
    KUMO_RETURN_IF_ERROR(file.WorkOutFields());
    return file;
  }

  const Fields& fields() const { return fields_; }
  const CtfStream& image() const { return streams_[kImage]; }
  bool sparse() const { return sparse_; }

  // Reads the next sample; false at the end. Check requires parsed values.
  Result<bool> Next(CtfValues values) {
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
      const CtfLine line = *std::exchange(ahead_, std::nullopt);
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
  CtfFile(const ReaderRequest& request, CtfLines lines)
      : request_(request), lines_(std::make_unique<CtfLines>(std::move(lines))) {
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
      return WrongInCtf(FirstIncomplete(), SequenceText() + " on its first " +
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
  CtfPlace FirstIncomplete() const {
    for (const auto& waiting : waiting_) {
      if (!waiting.empty()) return waiting.front().place;
    }
    return sequence_.begin;
  }

  // "sequence 7 has 3 |features and 1 |labels"
  std::string SequenceText() const {
    std::string text = "sequence " + Printable(sequence_.number, kCtfTextShown) + " has ";
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
      return WrongInCtf(FirstIncomplete(), "the line has no |" + streams_[missing].name);
    }
    return WrongInCtf(FirstIncomplete(),
                      SequenceText() + (IsWanted(kLabel) ? "; each sample needs one of each" : ""));
  }

  Status WorkOutFields() {
    const CtfStream& image = streams_[kImage];
    sparse_ = image.sparse || image.values.empty();
    std::vector<int64_t> extents = request_.image_size;
    if (extents.empty()) {
      if (sparse_) {
        return At(WrongInCtf(image.place, "|" + image.name + " is " +
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
      return At(WrongInCtf(label.place, "|" + label.name + " has no values"));
    }
    fields_[kLabel] = {kLabelField, NumberType::kFloat32, {std::ssize(label.values)}};
    return OkStatus();
  }

  Status CheckImage() const {
    const CtfStream& image = streams_[kImage];
    const int64_t numbers = fields_[kImage].numbers();
    // An empty sparse stream is a row of zeros.
    if (!image.values.empty() && image.sparse != sparse_) {
      return WrongInCtf(image.PlaceOf(0), "|" + image.name + " is " +
                                              (sparse_ ? "sparse" : "dense") +
                                              " on the first line, but not here");
    }
    if (!sparse_ && std::ssize(image.values) != numbers) {
      return WrongInCtf(image.place, "|" + image.name + " has " +
                                         std::to_string(image.values.size()) + " values, not " +
                                         std::to_string(numbers) + " (" +
                                         ExtentsText(fields_[kImage].extents) + ")");
    }
    if (sparse_ && !image.indices.empty() && image.indices.back() >= numbers) {
      return WrongInCtf(image.PlaceOf(image.columns.size() - 1),
                        "index " + std::to_string(image.indices.back()) + " of |" + image.name +
                            " is not below " + std::to_string(numbers) +
                            " (data.image_size = " + ExtentsText(fields_[kImage].extents) + ")");
    }
    return OkStatus();
  }

  Status CheckLabelNumbers() const {
    const CtfStream& label = streams_[kLabel];
    if (label.sparse) {
      return WrongInCtf(label.PlaceOf(0),
                        "|" + label.name +
                            " is sparse, but with data.classes = 0 labels must be dense "
                            "numbers");
    }
    const int64_t numbers = fields_[kLabel].numbers();
    if (std::ssize(label.values) == numbers) return OkStatus();
    return WrongInCtf(label.place, "|" + label.name + " has " +
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
      return NoClass(label.PlaceOf(0), "label " + Text(label.values[0]));
    }
    if (!label.sparse && std::ssize(label.values) != classes) {
      return NoClass(label.place, "a label of " + std::to_string(label.values.size()) + " values");
    }
    int64_t place = -1;
    for (size_t i = 0; i < label.values.size(); ++i) {
      if (label.values[i] == 0) continue;
      if (place >= 0 || label.values[i] != 1) {
        return WrongInCtf(label.PlaceOf(i), "|" + label.name + " must be a one-hot vector");
      }
      place = label.sparse ? label.indices[i] : static_cast<int64_t>(i);
      if (place >= classes) return NoClass(label.PlaceOf(i), "label " + std::to_string(place));
    }
    if (place < 0) return WrongInCtf(label.place, "|" + label.name + " has no 1");
    return static_cast<int32_t>(place);
  }

  Status NoClass(CtfPlace place, const std::string& what) const {
    return WrongInCtf(place,
                      what + " is no class of data.classes = " + std::to_string(request_.classes) +
                          "; correct data.classes or the file");
  }

  static constexpr int kStreams = 2;  // kImage, kLabel

  const ReaderRequest& request_;
  std::unique_ptr<CtfLines> lines_;              // fixed in memory, for ahead_
  std::array<CtfStream, kStreams> streams_;      // of the current sample
  std::optional<CtfLine> ahead_;                 // a line that was read, but not parsed
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
    KUMO_ASSIGN_OR_RETURN(const bool more, file.Next(CtfValues::kSkipped));
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
    KUMO_ASSIGN_OR_RETURN(more, file.Next(CtfValues::kParsed));
  }
  return std::unique_ptr<Dataset>(std::move(dataset));
}

}  // namespace kumo
