// Files of images below a folder, which may lie inside an archive: tar, plain or gzip'd, or zip.
// What a path names is the same set either way: sets.tar.gz/train is the folder train of the
// archive, or of a folder of that name.
//
// Pure functions of what is on the disk; thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace kumo {

// By its ending, JPEG and PNG; a name that begins with '.' is none.
bool IsImageName(std::string_view name);

struct ImageContainer {
  std::string path;  // of the archive, or of the folder itself; "": files are named by paths
  bool archive = false;
  std::string inside;  // the folder in the archive, without '/' at its ends; "": all of it

  // For messages: a file of it, or the whole of it for "".
  std::string Name(const std::string& file) const;
};

// NotFound where `path` is no folder, no archive, and leads into none.
Result<ImageContainer> FindContainer(const std::string& path);

// The names of its images, relative to the folder and sorted by their bytes: JPEG and PNG by their
// endings; names that begin with '.' do not count. DataLoss where an archive is damaged or cut off.
Result<std::vector<std::string>> ListImages(const ImageContainer& container);

// Gets the content of one file, by its place among the names that were asked for, or why it cannot
// be had: NotFound, or InvalidArgument where it is longer than kMaxImageFileBytes. Its error ends
// the walk.
using SeeImage =
    std::function<Status(int64_t index, const Result<std::span<const uint8_t>>& content)>;
inline constexpr int64_t kMaxImageFileBytes = 256 << 20;

// Shows each of the named files once, in whatever order the container has them. A name may be there
// several times. The first error of `see`, or DataLoss where an archive is damaged.
Status ReadImages(const ImageContainer& container, std::span<const std::string> names,
                  const SeeImage& see);

// Where a file of an archive begins, so that it can be read by itself.
struct ArchivePlace {
  int64_t offset = 0;     // in the archive's file
  int64_t size = 0;       // bytes, once unpacked
  bool deflated = false;  // RFC 1951
};

// Of each of the named files, which are not read. FailedPrecondition where the archive must be
// unpacked from its start to reach one: tar in gzip; a zip of another method than deflate, or
// encrypted. NotFound where it has not one of the names, InvalidArgument where one is too long,
// DataLoss where it is damaged.
Result<std::vector<ArchivePlace>> LocateImages(const ImageContainer& container,
                                               std::span<const std::string> names);

}  // namespace kumo
