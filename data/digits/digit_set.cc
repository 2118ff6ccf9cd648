#include "data/digits/digit_set.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <glog/logging.h>

#include "data/digits/synthetic_digits.h"

namespace kumo {

namespace {

// Mark in each file's gzip header: its origin and options. The version increases with every change
// of the drawing, so that old sets are drawn again.
constexpr char kMark[] = "kumo-data digits ";
constexpr int kVersion = 1;
constexpr int64_t kImagesPerPiece = 4096;  // drawn and written at a time: bounds memory to 3 MiB

struct Part {
  DigitSplit split;
  int64_t count;
  std::string images;  // paths
  std::string labels;
  std::string mark;
};

Part MakePart(const DigitSetOptions& options, DigitSplit split) {
  const bool train = split == DigitSplit::kTrain;
  const std::string folder = JoinPath(options.directory, "mnist");
  const std::string stem = train ? "train" : "t10k";
  Part part;
  part.split = split;
  part.count = train ? options.train : options.validation;
  part.images = JoinPath(folder, stem + "-images-idx3-ubyte.gz");
  part.labels = JoinPath(folder, stem + "-labels-idx1-ubyte.gz");
  part.mark = std::string(kMark) + "version=" + std::to_string(kVersion) +
              " seed=" + std::to_string(options.seed) + " " + stem + "=" +
              std::to_string(part.count);
  return part;
}

bool AlreadyThere(FileSystem& files, const Part& part) {
  return ReadGzipComment(files, part.images) == part.mark &&
         ReadGzipComment(files, part.labels) == part.mark;
}

// Protects a downloaded MNIST from being overwritten.
Status RefuseForeign(FileSystem& files, const std::string& path) {
  if (!files.Exists(path) || ReadGzipComment(files, path).starts_with(kMark)) {
    return OkStatus();
  }
  return FailedPrecondition(path +
                            " exists and was not drawn by kumo-data; choose another directory, "
                            "or overwrite it with --force");
}

Status WritePart(FileSystem& files, const Part& part, const DigitSetOptions& options) {
  KUMO_ASSIGN_OR_RETURN(
      IdxWriter images,
      IdxWriter::Create(files, part.images, {part.count, kDigitSide, kDigitSide}, part.mark));
  KUMO_ASSIGN_OR_RETURN(IdxWriter labels,
                        IdxWriter::Create(files, part.labels, {part.count}, part.mark));
  std::vector<uint8_t> pixels(std::min(part.count, kImagesPerPiece) * kDigitPixels);
  std::vector<uint8_t> digits(std::min(part.count, kImagesPerPiece));
  for (int64_t first = 0; first < part.count; first += kImagesPerPiece) {
    const int64_t count = std::min(kImagesPerPiece, part.count - first);
    const auto piece = std::span(pixels).first(count * kDigitPixels);
    DrawDigits(options.seed, part.split, first, options.threads, piece,
               std::span(digits).first(count));
    KUMO_RETURN_IF_ERROR(images.Append(piece));
    KUMO_RETURN_IF_ERROR(labels.Append(std::span(digits).first(count)));
  }
  KUMO_RETURN_IF_ERROR(images.Commit());
  return labels.Commit();
}

}  // namespace

Result<DigitSetOutcome> WriteDigitSet(FileSystem& files, const DigitSetOptions& options) {
  const Part parts[] = {MakePart(options, DigitSplit::kTrain),
                        MakePart(options, DigitSplit::kValidation)};
  if (AlreadyThere(files, parts[0]) && AlreadyThere(files, parts[1]))
    return DigitSetOutcome::kAlreadyThere;
  for (const Part& part : parts) {
    if (options.force) break;
    KUMO_RETURN_IF_ERROR(RefuseForeign(files, part.images));
    KUMO_RETURN_IF_ERROR(RefuseForeign(files, part.labels));
  }
  KUMO_RETURN_IF_ERROR(files.CreateDirectories(DirectoryOf(parts[0].images)));
  for (const Part& part : parts) KUMO_RETURN_IF_ERROR(WritePart(files, part, options));
  return DigitSetOutcome::kDrawn;
}

namespace {

// Level 6 would save 3 % of the size, but take 50 % more time.
constexpr int kLevel = 3;

}  // namespace

struct IdxWriter::State {
  std::string path;
  std::unique_ptr<AtomicFile> file;
  std::string comment;  // zlib reads it while the header is written
  bool deflating = false;
  int64_t missing = 0;  // bytes to be appended
  z_stream stream{};
  gz_header header{};
  std::array<uint8_t, 256 * 1024> output;

  ~State() {
    if (deflating) deflateEnd(&stream);
  }
  Status Deflate(std::span<const uint8_t> bytes, int flush);
};

Status IdxWriter::State::Deflate(std::span<const uint8_t> bytes, int flush) {
  stream.next_in = const_cast<uint8_t*>(bytes.data());  // zlib does not write to it
  stream.avail_in = static_cast<uInt>(bytes.size());
  int code = Z_OK;
  do {
    stream.next_out = output.data();
    stream.avail_out = static_cast<uInt>(output.size());
    code = deflate(&stream, flush);
    CHECK_NE(code, Z_STREAM_ERROR) << path;
    KUMO_RETURN_IF_ERROR(
        file->Append(std::as_bytes(std::span(output).first(output.size() - stream.avail_out))));
  } while (stream.avail_out == 0 || (flush == Z_FINISH && code != Z_STREAM_END));
  return OkStatus();
}

IdxWriter::IdxWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
IdxWriter::IdxWriter(IdxWriter&&) noexcept = default;
IdxWriter& IdxWriter::operator=(IdxWriter&&) noexcept = default;
IdxWriter::~IdxWriter() = default;

Result<IdxWriter> IdxWriter::Create(FileSystem& files, const std::string& path,
                                    const std::vector<int64_t>& extents,
                                    const std::string& comment) {
  auto state = std::make_unique<State>();
  state->path = path;
  state->comment = comment;
  KUMO_ASSIGN_OR_RETURN(state->file, AtomicFile::Create(files, path));
  if (deflateInit2(&state->stream, kLevel, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    return Internal(path + ": zlib does not start");
  }
  state->deflating = true;
  state->header.comment = reinterpret_cast<Bytef*>(state->comment.data());
  state->header.os = 255;  // unknown: the same bytes everywhere
  CHECK_EQ(deflateSetHeader(&state->stream, &state->header), Z_OK);
  std::vector<uint8_t> head = {0, 0, 8, static_cast<uint8_t>(extents.size())};
  state->missing = 1;
  for (const int64_t extent : extents) {
    CHECK(extent > 0 && extent <= UINT32_MAX) << extent;
    state->missing *= extent;
    for (int shift = 24; shift >= 0; shift -= 8) {
      head.push_back(static_cast<uint8_t>(extent >> shift));
    }
  }
  KUMO_RETURN_IF_ERROR(state->Deflate(head, Z_NO_FLUSH));
  return IdxWriter(std::move(state));
}

Status IdxWriter::Append(std::span<const uint8_t> bytes) {
  state_->missing -= static_cast<int64_t>(bytes.size());
  CHECK_GE(state_->missing, 0) << state_->path << ": more bytes than its extents hold";
  return state_->Deflate(bytes, Z_NO_FLUSH);
}

Status IdxWriter::Commit() {
  State& state = *state_;
  CHECK_EQ(state.missing, 0) << state.path << ": fewer bytes than its extents hold";
  KUMO_RETURN_IF_ERROR(state.Deflate({}, Z_FINISH));
  return state.file->Commit();
}

std::string ReadGzipComment(FileSystem& files, const std::string& path) {
  const auto file = files.OpenForReading(path);
  if (!file.ok()) return "";
  std::array<uint8_t, 1024> head;
  const size_t size = std::min<uint64_t>(head.size(), file.value()->size());
  if (!file.value()->Read(0, std::as_writable_bytes(std::span(head).first(size))).ok()) return "";
  z_stream stream{};
  if (inflateInit2(&stream, 15 + 16) != Z_OK) return "";
  std::array<uint8_t, 256> comment{};
  gz_header header{};
  header.comment = comment.data();
  header.comm_max = comment.size() - 1;
  inflateGetHeader(&stream, &header);
  stream.next_in = head.data();
  stream.avail_in = static_cast<uInt>(size);
  uint8_t unused = 0;
  stream.next_out = &unused;
  // Stops after the header, before any content is unpacked.
  inflate(&stream, Z_BLOCK);
  const bool found = header.done == 1 && header.comment != nullptr;
  inflateEnd(&stream);
  return found ? reinterpret_cast<const char*>(comment.data()) : "";
}

}  // namespace kumo
