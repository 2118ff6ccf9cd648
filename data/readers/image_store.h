// The encoded images of a set, each of which can be read by itself, in any order, from a folder, a
// plain tar or a zip archive: nothing of them is in memory but where they lie.
//
// Immutable, hence thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "common/base/status.h"
#include "data/readers/image_files.h"

namespace kumo {

class ImageStore {
 public:
  // An archive is walked through once. FailedPrecondition where it has to be unpacked from its
  // start to reach what is in it: tar in gzip; zip with other methods than deflate, or encrypted.
  // NotFound where an archive lacks one of the names; DataLoss where it is damaged.
  static Result<std::unique_ptr<ImageStore>> Open(const ImageContainer& container,
                                                  std::vector<std::string> names);

  int64_t size() const { return std::ssize(names_); }
  const std::string& name(int64_t index) const { return names_[index]; }
  // Of memory that it takes.
  int64_t bytes() const;
  // Makes `content` the file of names[index]. Requires an index in [0, size()). NotFound,
  // InvalidArgument where it is longer than kMaxImageFileBytes, DataLoss where it ends early.
  Status Read(int64_t index, std::vector<uint8_t>* content) const;

 private:
  ImageStore(ImageContainer container, std::vector<std::string> names)
      : container_(std::move(container)), names_(std::move(names)) {}

  Status ReadFromArchive(const ArchivePlace& place, std::vector<uint8_t>* content) const;

  const ImageContainer container_;
  const std::vector<std::string> names_;
  // Of an archive.
  std::vector<ArchivePlace> places_;  // of the names
  std::unique_ptr<ReadableFile> file_;
};

}  // namespace kumo
