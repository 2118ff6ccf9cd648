// Image files below a folder, which may be inside an archive: tar (plain or gzip'd) or zip. The
// same path names the same set either way: sets.tar.gz/train is the folder train of the archive, or
// of a folder with that name.
//
// Links are followed, in an archive those that lead to a file of the archive. A folder counts once:
// another link to it, and a link to a folder above it, are unusable entries.
//
// Pure functions of the disk's contents; thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "data/readers/archive_walk.h"
#include "data/samples/data_notes.h"

namespace kumo {

// The endings of images, for messages; IsImageName accepts these.
inline constexpr char kImageEndings[] = "(.jpg, .jpeg, .png)";

// True for the endings of JPEG and PNG, unless the name begins with '.'.
bool IsImageName(std::string_view name);
bool IsPngName(std::string_view name);

// The name of an image's file without its ending.
std::string WithoutEnding(const std::string& image);

struct ImageContainer {
  std::string path;  // of the archive or the folder; "": files have full paths
  bool archive = false;
  std::string inside;  // folder in the archive, without '/' at its ends; "": all of it

  // Name of a file of it, or of the whole for "", in messages.
  std::string Name(const std::string& file) const;
};

// NotFound if `path` is no folder, no archive, and not inside an archive.
Result<ImageContainer> FindContainer(const std::string& path);

// Entries of a container. Names are relative to it and sorted bytewise.
struct ImageListing {
  // An entry that may hold images, but cannot be read: a link to nothing or to a folder that is
  // counted by another name, a folder that cannot be listed, a pipe, a device.
  struct Unusable {
    std::string name;
    std::string why;  // "is a link to a file that does not exist"
  };

  std::vector<std::string> images;   // by IsImageName
  std::vector<std::string> others;   // other files, which are not hidden
  std::vector<std::string> folders;  // at the top
  std::vector<Unusable> unusable;
  LeftOut left_out;  // other files, hidden files and folders
};

// Most memory for the entries of an archive: a few MiB may unpack to any number of names.
inline constexpr int64_t kMostListingBytes = int64_t{1} << 30;

// Lists the entries. Hidden files and folders are not entered, at any level: names that begin with
// '.', and the folders __MACOSX and @eaDir, which hold previews. DataLoss if an archive is damaged
// or truncated; InvalidArgument if a name in it cannot be read, or if a file occurs more than once,
// as after `tar -rf`, since readers would take the older one; ResourceExhausted if the names of an
// archive's files, folders and links take more than most_bytes.
Result<ImageListing> ListImages(const ImageContainer& container,
                                int64_t most_bytes = kMostListingBytes);

// The errors of ListImages for the whole archive of the container; ok for a folder. For readers
// that take files by their names.
Status CheckArchive(const ImageContainer& container);

// Receives the content of one file, by its index among the requested names, or the reason why it is
// missing: NotFound, or InvalidArgument if it exceeds kMaxImageFileBytes. An error ends the walk.
using SeeImage =
    std::function<Status(int64_t index, const Result<std::span<const uint8_t>>& content)>;

// Calls `see` with each of the named files, in the container's order. Names may repeat. The first
// error of `see`, or DataLoss if an archive is damaged.
Status ReadImages(const ImageContainer& container, std::span<const std::string> names,
                  const SeeImage& see);

// Locates the named files without reading them. FailedPrecondition if the archive must be unpacked
// from its start (tar in gzip; zip methods other than deflate, or encrypted). InvalidArgument if a
// file is too long, DataLoss if the archive is damaged. The place of a file that the archive lacks
// is missing().
Result<std::vector<ArchivePlace>> LocateImages(const ImageContainer& container,
                                               std::span<const std::string> names);

}  // namespace kumo
