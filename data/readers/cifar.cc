#include "data/readers/all.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "common/base/file.h"
#include "data/samples/dataset.h"

namespace kumo {
namespace {

const std::vector<int64_t> kExtents = {3, 32, 32};
constexpr int64_t kPixelBytes = 3 * 32 * 32;
constexpr int64_t kSamplesPerRead = 1000;

// Layout of a sample's bytes.
struct Layout {
  int64_t labels = 1;
  int64_t label = 0;  // index of the label that counts

  int64_t bytes() const { return labels + kPixelBytes; }
};

Layout LayoutFor(int classes) {
  if (classes == 100) return {2, 1};
  if (classes == 20) return {2, 0};
  return {1, 0};
}

struct CifarFile {
  std::string path;
  std::unique_ptr<ReadableFile> file;
  int64_t samples = 0;  // used
};

Result<std::vector<std::string>> ListBatches(const std::string& folder) {
  KUMO_ASSIGN_OR_RETURN(std::vector<std::string> names, PosixFileSystem().List(folder));
  std::erase_if(names, [](const std::string& name) {
    return !name.starts_with("data_batch_") || !name.ends_with(".bin");
  });
  if (names.empty()) {
    return InvalidArgument(folder +
                           ": contains no data_batch_*.bin; name the file to read, such as " +
                           JoinPath(folder, "train.bin"));
  }
  std::ranges::sort(names);
  for (std::string& name : names) name = JoinPath(folder, name);
  return names;
}

Result<CifarFile> OpenCifarFile(const std::string& path, const Layout& layout, int classes) {
  CifarFile file{path, nullptr};
  KUMO_ASSIGN_OR_RETURN(file.file, PosixFileSystem().OpenForReading(path));
  const auto size = static_cast<int64_t>(file.file->size());
  file.samples = size / layout.bytes();
  if (file.samples > 0 && size % layout.bytes() == 0) return file;
  return InvalidArgument(path + ": its " + std::to_string(size) + " bytes are not a multiple of " +
                         std::to_string(layout.bytes()) + " bytes, the sample size of CIFAR-" +
                         (layout.labels == 2 ? "100" : "10") +
                         " (data.classes = " + std::to_string(classes) +
                         "); correct data.classes, or download or unpack the file again");
}

// The files, with the number of used samples of each; files beyond the limit are checked too.
Result<std::vector<CifarFile>> OpenFiles(const ReaderRequest& request, const Layout& layout) {
  std::vector<std::string> paths = {request.images};
  std::error_code unknown;
  if (std::filesystem::is_directory(request.images, unknown)) {
    KUMO_ASSIGN_OR_RETURN(paths, ListBatches(request.images));
  }
  std::vector<CifarFile> files;
  int64_t left = request.limit > 0 ? request.limit : INT64_MAX;
  for (const std::string& path : paths) {
    KUMO_ASSIGN_OR_RETURN(CifarFile file, OpenCifarFile(path, layout, request.classes));
    file.samples = std::min(file.samples, left);
    left -= file.samples;
    files.push_back(std::move(file));
  }
  return files;
}

int64_t TotalSamples(const std::vector<CifarFile>& files) {
  int64_t samples = 0;
  for (const CifarFile& file : files) samples += file.samples;
  return samples;
}

Status ReadSamples(const CifarFile& file, const Layout& layout, int classes,
                   std::vector<uint8_t>* pixels, std::vector<int32_t>* labels) {
  std::vector<uint8_t> piece;
  for (int64_t first = 0; first < file.samples; first += kSamplesPerRead) {
    const int64_t count = std::min(kSamplesPerRead, file.samples - first);
    piece.resize(count * layout.bytes());
    KUMO_RETURN_IF_ERROR(file.file->Read(static_cast<uint64_t>(first * layout.bytes()),
                                         std::as_writable_bytes(std::span(piece))));
    for (int64_t i = 0; i < count; ++i) {
      const uint8_t* sample = piece.data() + i * layout.bytes();
      const uint8_t label = sample[layout.label];
      if (label >= classes) {
        return InvalidArgument(file.path + ": label " + std::to_string(label) + " of sample " +
                               std::to_string(first + i) + " (byte " +
                               std::to_string((first + i) * layout.bytes() + layout.label) +
                               ") is not below data.classes = " + std::to_string(classes) +
                               "; correct data.classes, or download the file again");
      }
      labels->push_back(label);
      pixels->insert(pixels->end(), sample + layout.labels, sample + layout.bytes());
    }
  }
  return OkStatus();
}

}  // namespace

Result<DatasetExtents> MeasureCifar(const ReaderRequest& request) {
  KUMO_ASSIGN_OR_RETURN(const auto files, OpenFiles(request, LayoutFor(request.classes)));
  DatasetExtents extents{TotalSamples(files), LabelledImage(kExtents)};
  extents.bytes = extents.samples * BytesOf(extents.fields);
  return extents;
}

Result<std::unique_ptr<Dataset>> OpenCifar(const ReaderRequest& request) {
  const Layout layout = LayoutFor(request.classes);
  KUMO_ASSIGN_OR_RETURN(const auto files, OpenFiles(request, layout));
  std::vector<uint8_t> pixels;
  std::vector<int32_t> labels;
  pixels.reserve(TotalSamples(files) * kPixelBytes);
  labels.reserve(TotalSamples(files));
  for (const CifarFile& file : files) {
    KUMO_RETURN_IF_ERROR(ReadSamples(file, layout, request.classes, &pixels, &labels));
  }
  return std::unique_ptr<Dataset>(std::make_unique<MemoryDataset>(
      request.images, kExtents, request.classes, std::move(pixels), std::move(labels)));
}

}  // namespace kumo
