// Image store: random access to the encoded images of a set in a folder or an archive.
//
// Immutable and thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "common/base/status.h"
#include "data/readers/image_files.h"
#include "data/readers/image_header.h"

namespace kumo {

class ImageStore {
 public:
  struct Options {
    // Bytes of memory for the encoded images of an archive that must be unpacked from its start; 0:
    // such an archive is refused.
    int64_t room = 0;
    // Files that an archive lacks are errors of their reading, as missing files of a folder always
    // are.
    bool may_lack_files = false;
  };
  // Scans an archive once; only the locations of its files are in memory, or, of one that must be
  // unpacked from its start (tar in gzip; zip methods other than deflate, or encrypted), the
  // encoded files. FailedPrecondition if they exceed options.room. NotFound if an archive lacks a
  // name; DataLoss if it is damaged.
  static Result<std::unique_ptr<ImageStore>> Open(const ImageContainer& container,
                                                  std::vector<std::string> names,
                                                  const Options& options);
  static Result<std::unique_ptr<ImageStore>> Open(const ImageContainer& container,
                                                  std::vector<std::string> names) {
    return Open(container, std::move(names), {});
  }

  int64_t size() const { return std::ssize(names_); }
  // The file in messages.
  std::string Name(int64_t index) const { return container_.Name(names_[index]); }
  // Memory in use.
  int64_t bytes() const;
  // Reads the file names[index] into `content`. Requires an index in [0, size()). NotFound,
  // InvalidArgument if it exceeds kMaxImageFileBytes, DataLoss if it is truncated.
  Status Read(int64_t index, std::vector<uint8_t>* content) const;
  // Reads the image's header; `buffer` is memory to reuse. The errors of Read and
  // ImageDecoder::ReadHeader.
  Result<ImageHeader> ReadHeader(int64_t index, std::vector<uint8_t>* buffer) const;

 private:
  ImageStore(ImageContainer container, std::vector<std::string> names)
      : container_(std::move(container)), names_(std::move(names)) {}

  Status TakeAll(int64_t room);
  Status CheckAllThere() const;
  // The first `most` bytes, or all.
  Status ReadStart(int64_t index, int64_t most, std::vector<uint8_t>* content) const;

  const ImageContainer container_;
  const std::vector<std::string> names_;
  // For an archive, by name; of an archive in memory only their sizes count.
  std::vector<ArchivePlace> places_;
  std::unique_ptr<ReadableFile> file_;
  std::vector<std::vector<uint8_t>> contents_;  // by name, of an archive in memory
};

}  // namespace kumo
