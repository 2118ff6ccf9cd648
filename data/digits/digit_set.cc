#include "data/digits/digit_set.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "data/digits/idx_writer.h"
#include "data/digits/synthetic_digits.h"

namespace kumo {
namespace {

// Each file says in its gzip header who drew it and how. The version goes up with every change of
// what is drawn, so that old sets are drawn again.
constexpr char kMark[] = "kumo-data digits ";
constexpr int kVersion = 1;
constexpr int64_t kImagesPerPiece = 4096;  // drawn, then written: bounds the memory to 3 MiB

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

// Somebody's MNIST must not be overwritten by drawings of ours.
Status RefuseForeign(FileSystem& files, const std::string& path) {
  if (!files.Exists(path) || ReadGzipComment(files, path).starts_with(kMark)) {
    return OkStatus();
  }
  return FailedPrecondition(path +
                            " exists and was not drawn by kumo-data; name another directory "
                            "or pass --force to overwrite it");
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

}  // namespace kumo
