#include "data/readers/image_files.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "common/base/file.h"

namespace kumo {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBlockBytes = 256 << 10;  // per read of an archive
constexpr size_t kTarRecord = 512;
constexpr int64_t kMaxFiles = int64_t{1} << 28;

Status TooLong(const std::string& name) {
  return InvalidArgument(name + ": exceeds " + std::to_string(kMaxImageFileBytes) +
                         " bytes, the limit of an image file");
}

// Sequential reader of an archive.
class ArchiveWalk {
 public:
  static Result<ArchiveWalk> Open(const std::string& path) {
    ArchiveWalk walk(path);
    archive* handle = walk.handle_.get();
    if (handle == nullptr) return ResourceExhausted(path + ": no memory to read it");
    archive_read_support_filter_gzip(handle);
    archive_read_support_format_tar(handle);
    // Requires the directory at the end: without it a zip file is truncated.
    archive_read_support_format_zip_seekable(handle);
    if (archive_read_open_filename(handle, path.c_str(), kBlockBytes) != ARCHIVE_OK) {
      return walk.Damaged();
    }
    return walk;
  }

  // The name of the next regular file; none at the end.
  Result<std::optional<std::string>> Next() {
    for (;;) {
      const int code = archive_read_next_header(handle_.get(), &entry_);
      if (code == ARCHIVE_EOF) return CheckEnd();
      if (code != ARCHIVE_OK && code != ARCHIVE_WARN) return Damaged();
      if (archive_entry_filetype(entry_) != AE_IFREG) continue;
      // Without a locale only the form in which the archive was made is available.
      const char* name = archive_entry_pathname(entry_);
      if (name == nullptr) name = archive_entry_pathname_utf8(entry_);
      if (name == nullptr) continue;
      std::string_view text = name;
      while (text.starts_with("./")) text.remove_prefix(2);
      name_ = text;
      return std::optional<std::string>(name_);
    }
  }

  // The content of the file that Next() named, valid until the next call. InvalidArgument if it is
  // too long; any other error is the archive's.
  Result<std::span<const uint8_t>> Content() {
    if (archive_entry_size(entry_) > kMaxImageFileBytes) return TooLong(path_ + "/" + name_);
    content_.clear();
    for (;;) {
      const void* block = nullptr;
      size_t size = 0;
      la_int64_t offset = 0;
      const int code = archive_read_data_block(handle_.get(), &block, &size, &offset);
      if (code == ARCHIVE_EOF) break;
      if (code != ARCHIVE_OK) return Damaged();
      // Holes of a sparse file.
      if (offset < std::ssize(content_) ||
          offset + static_cast<int64_t>(size) > kMaxImageFileBytes) {
        return TooLong(path_ + "/" + name_);
      }
      content_.resize(static_cast<size_t>(offset));
      const auto* bytes = static_cast<const uint8_t*>(block);
      content_.insert(content_.end(), bytes, bytes + size);
    }
    return std::span<const uint8_t>(content_);
  }

  // The location of the file that Next() named.
  Result<ArchivePlace> Place() {
    archive* handle = handle_.get();
    const auto cannot = [this](const std::string& why) {
      return FailedPrecondition(
          path_ + ": " + why +
          ", so images cannot be decoded individually (data.decode = "
          "demand, data.crop_area, data.shorter_side); unpack it, or repack it "
          "as plain .tar or .zip");
    };
    if (archive_filter_count(handle) > 1) return cannot("it is compressed as a whole");
    if (archive_entry_is_encrypted(entry_) != 0) return cannot("it is encrypted");
    if (archive_entry_sparse_count(entry_) > 0) return cannot(name_ + " has holes");
    ArchivePlace place;
    place.size = archive_entry_size(entry_);
    if (place.size > kMaxImageFileBytes) return TooLong(path_ + "/" + name_);
    // The bytes read so far end with the file's header.
    place.offset = archive_filter_bytes(handle, 0);
    if ((archive_format(handle) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_ZIP) {
      const std::string format = archive_format_name(handle);  // "ZIP 2.0 (deflation)"
      place.deflated = format.ends_with("(deflation)");
      if (!place.deflated && !format.ends_with("(uncompressed)")) {
        return cannot(name_ + " is compressed by another method than deflate, " + format);
      }
    }
    return place;
  }

 private:
  struct Free {
    void operator()(archive* handle) const { archive_read_free(handle); }
  };

  explicit ArchiveWalk(std::string path) : path_(std::move(path)), handle_(archive_read_new()) {}

  Status Damaged() const {
    const char* reason = archive_error_string(handle_.get());
    return DataLoss(path_ + ": the tar, tar.gz or zip archive is damaged (" +
                    (reason == nullptr ? "no reason given" : reason) +
                    (name_.empty() ? "" : ", after " + name_) + "); download or create it again");
  }

  // The end of a compressed tar is verified by the compression; that of a plain tar is two empty
  // records.
  Result<std::optional<std::string>> CheckEnd() const {
    const bool tar =
        (archive_format(handle_.get()) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_TAR;
    if (tar && archive_filter_count(handle_.get()) == 1) {
      PosixFileSystem files;
      KUMO_ASSIGN_OR_RETURN(const auto file, files.OpenForReading(path_));
      std::array<std::byte, 2 * kTarRecord> end{};
      bool whole = file->size() >= end.size() && file->size() % kTarRecord == 0;
      if (whole) {
        KUMO_RETURN_IF_ERROR(file->Read(file->size() - end.size(), end));
        whole = std::ranges::all_of(end, [](std::byte b) { return b == std::byte{0}; });
      }
      if (!whole) {
        return DataLoss(path_ +
                        ": the empty records at the end of the tar archive are missing, so it "
                        "is truncated; download or create it again");
      }
    }
    return std::optional<std::string>();
  }

  std::string path_;
  std::unique_ptr<archive, Free> handle_;
  archive_entry* entry_ = nullptr;  // of the handle
  std::string name_;
  std::vector<uint8_t> content_;
};

// The name relative to the folder `inside`; none for files elsewhere.
std::optional<std::string> Below(const std::string& inside, const std::string& name) {
  if (inside.empty()) return name;
  if (!name.starts_with(inside) || name.size() <= inside.size() + 1 || name[inside.size()] != '/') {
    return std::nullopt;
  }
  return name.substr(inside.size() + 1);
}

Result<std::vector<std::string>> ListArchive(const ImageContainer& container) {
  KUMO_ASSIGN_OR_RETURN(ArchiveWalk walk, ArchiveWalk::Open(container.path));
  std::vector<std::string> names;
  for (;;) {
    KUMO_ASSIGN_OR_RETURN(const std::optional<std::string> name, walk.Next());
    if (!name) return names;
    const std::optional<std::string> below = Below(container.inside, *name);
    if (below && IsImageName(*below)) names.push_back(*below);
  }
}

Result<std::vector<std::string>> ListFolder(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  fs::recursive_directory_iterator walk(folder, fs::directory_options::follow_directory_symlink,
                                        error);
  for (; !error && walk != fs::recursive_directory_iterator(); walk.increment(error)) {
    const std::string name = walk->path().string().substr(folder.size() + 1);
    std::error_code unknown;
    if (IsImageName(name) && walk->is_regular_file(unknown)) names.push_back(name);
    if (std::ssize(names) > kMaxFiles) return ResourceExhausted(folder + ": too many files");
  }
  if (error) return Unavailable(folder + ": cannot list the folder: " + error.message());
  return names;
}

Status ReadFolder(const ImageContainer& container, std::span<const std::string> names,
                  const SeeImage& see) {
  PosixFileSystem files;
  for (int64_t i = 0; i < std::ssize(names); ++i) {
    const Result<std::string> text =
        ReadWholeFile(files, JoinPath(container.path, names[i]), kMaxImageFileBytes);
    if (!text.ok()) {
      KUMO_RETURN_IF_ERROR(see(i, text.status()));
      continue;
    }
    const std::span<const std::byte> bytes = AsBytes(*text);
    KUMO_RETURN_IF_ERROR(
        see(i, std::span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size())));
  }
  return OkStatus();
}

// Calls `see` with each of the named files by index in the order of the archive; missing names are
// NotFound.
using SeeEntry = std::function<Status(ArchiveWalk& walk, std::span<const int64_t> indices)>;
Status WalkThrough(const ImageContainer& container, std::span<const std::string> names,
                   const SeeEntry& see,
                   const std::function<Status(int64_t index, const Status& missing)>& see_missing) {
  std::unordered_map<std::string_view, std::vector<int64_t>> wanted;
  for (int64_t i = 0; i < std::ssize(names); ++i) wanted[names[i]].push_back(i);
  KUMO_ASSIGN_OR_RETURN(ArchiveWalk walk, ArchiveWalk::Open(container.path));
  while (!wanted.empty()) {
    KUMO_ASSIGN_OR_RETURN(const std::optional<std::string> name, walk.Next());
    if (!name) break;
    const std::optional<std::string> below = Below(container.inside, *name);
    const auto found = below ? wanted.find(*below) : wanted.end();
    if (found == wanted.end()) continue;
    KUMO_RETURN_IF_ERROR(see(walk, found->second));
    wanted.erase(found);
  }
  for (const auto& [name, indices] : wanted) {
    const Status missing =
        NotFound(container.Name(std::string(name)) + ": no such file in the archive");
    for (const int64_t index : indices) KUMO_RETURN_IF_ERROR(see_missing(index, missing));
  }
  return OkStatus();
}

Status ReadArchive(const ImageContainer& container, std::span<const std::string> names,
                   const SeeImage& see) {
  return WalkThrough(
      container, names,
      [&see](ArchiveWalk& walk, std::span<const int64_t> indices) -> Status {
        const Result<std::span<const uint8_t>> content = walk.Content();
        if (!content.ok() && content.status().code() != StatusCode::kInvalidArgument) {
          return content.status();
        }
        for (const int64_t index : indices) KUMO_RETURN_IF_ERROR(see(index, content));
        return OkStatus();
      },
      see);
}

}  // namespace

bool IsImageName(std::string_view name) {
  const size_t slash = name.rfind('/');
  const std::string_view base = slash == name.npos ? name : name.substr(slash + 1);
  if (base.starts_with('.')) return false;
  const size_t dot = base.rfind('.');
  if (dot == base.npos) return false;
  std::string ending(base.substr(dot));
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

std::string ImageContainer::Name(const std::string& file) const {
  const std::string folder = inside.empty() ? path : JoinPath(path, inside);
  return file.empty() ? folder : JoinPath(folder, file);
}

Result<ImageContainer> FindContainer(const std::string& path) {
  fs::path rest = path;
  std::string inside;
  while (!rest.empty()) {
    std::error_code error;
    const fs::file_status status = fs::status(rest, error);
    if (fs::is_directory(status)) {
      if (!inside.empty()) break;
      std::string folder = rest.string();
      while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
      return ImageContainer{folder, false, ""};
    }
    if (fs::is_regular_file(status)) return ImageContainer{rest.string(), true, inside};
    const std::string name = rest.filename().string();
    if (!name.empty()) inside = inside.empty() ? name : JoinPath(name, inside);
    if (rest == rest.parent_path()) break;
    rest = rest.parent_path();
  }
  return NotFound(path + ": no such folder or archive");
}

Result<std::vector<std::string>> ListImages(const ImageContainer& container) {
  KUMO_ASSIGN_OR_RETURN(std::vector<std::string> names,
                        container.archive ? ListArchive(container) : ListFolder(container.path));
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice != names.end()) {
    return InvalidArgument(container.Name(*twice) + ": occurs more than once in the archive");
  }
  return names;
}

Status ReadImages(const ImageContainer& container, std::span<const std::string> names,
                  const SeeImage& see) {
  return container.archive ? ReadArchive(container, names, see) : ReadFolder(container, names, see);
}

Result<std::vector<ArchivePlace>> LocateImages(const ImageContainer& container,
                                               std::span<const std::string> names) {
  std::vector<ArchivePlace> places(names.size());
  KUMO_RETURN_IF_ERROR(WalkThrough(
      container, names,
      [&places](ArchiveWalk& walk, std::span<const int64_t> indices) -> Status {
        KUMO_ASSIGN_OR_RETURN(const ArchivePlace place, walk.Place());
        for (const int64_t index : indices) places[index] = place;
        return OkStatus();
      },
      [](int64_t, const Status& missing) { return missing; }));
  return places;
}

}  // namespace kumo
