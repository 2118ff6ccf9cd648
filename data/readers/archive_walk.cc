#include "data/readers/archive_walk.h"

#include <archive.h>
#include <archive_entry.h>
#include <locale.h>  // NOLINT(modernize-deprecated-headers): newlocale is POSIX's

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include "common/base/file.h"

namespace kumo {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBlockBytes = 256 << 10;  // per read of an archive
constexpr size_t kTarRecord = 512;
constexpr size_t kLongestPath = 4095;  // bytes, as a path on Linux (PATH_MAX)

// libarchive converts names that a zip marks as UTF-8 to the thread's locale, and drops a name that
// this locale lacks; therefore it sees a locale of UTF-8. Tar archives keep the locale C, in which
// libarchive leaves names as they are.
class LocaleOfUtf8 {
 public:
  LocaleOfUtf8() {
    static const locale_t utf8 = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", locale_t{});
    if (utf8 != locale_t{}) before_ = ::uselocale(utf8);
  }
  ~LocaleOfUtf8() {
    if (before_ != locale_t{}) ::uselocale(before_);
  }
  LocaleOfUtf8(const LocaleOfUtf8&) = delete;
  LocaleOfUtf8& operator=(const LocaleOfUtf8&) = delete;

 private:
  locale_t before_{};
};

// By the first bytes: a file's header or, of an archive without files, the directory's end.
bool StartsAsZip(const std::string& path) {
  PosixFileSystem files;
  const auto file = files.OpenForReading(path);
  std::array<std::byte, 4> start{};
  if (!file.ok() || !(*file)->Read(0, start).ok()) return false;
  constexpr std::array kP{std::byte{'P'}, std::byte{'K'}};
  return std::equal(kP.begin(), kP.end(), start.begin()) && start[2] < std::byte{8};
}

Status TooLong(const std::string& name) {
  return InvalidArgument(name + ": exceeds " + std::to_string(kMaxImageFileBytes) +
                         " bytes, the limit of an image file");
}

}  // namespace

void ArchiveWalk::Free::operator()(archive* handle) const { archive_read_free(handle); }

ArchiveWalk::ArchiveWalk(std::string path, bool zip)
    : path_(std::move(path)), zip_(zip), handle_(archive_read_new()) {}

Result<ArchiveWalk> ArchiveWalk::Open(const std::string& path) {
  ArchiveWalk walk(path, StartsAsZip(path));
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

Result<std::optional<ArchiveEntry>> ArchiveWalk::Next() {
  std::optional<LocaleOfUtf8> locale;
  if (zip_) locale.emplace();
  const int code = archive_read_next_header(handle_.get(), &entry_);
  if (code == ARCHIVE_EOF) return CheckEnd();
  if (code != ARCHIVE_OK && code != ARCHIVE_WARN) return Damaged();
  ++entries_;
  KUMO_ASSIGN_OR_RETURN(name_, Name());
  ArchiveEntry entry{ArchiveEntry::Kind::kOther, name_};
  const auto type = archive_entry_filetype(entry_);
  if (archive_entry_hardlink(entry_) != nullptr || type == AE_IFLNK) {
    entry.kind = ArchiveEntry::Kind::kLink;
    entry.target = Target();
  } else if (type == AE_IFREG) {
    entry.kind = ArchiveEntry::Kind::kFile;
  } else if (type == AE_IFDIR) {
    entry.kind = ArchiveEntry::Kind::kFolder;
  }
  return std::optional(std::move(entry));
}

Result<std::span<const uint8_t>> ArchiveWalk::Content() {
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
    if (offset < std::ssize(content_) || offset + static_cast<int64_t>(size) > kMaxImageFileBytes) {
      return TooLong(path_ + "/" + name_);
    }
    content_.resize(static_cast<size_t>(offset));
    const auto* bytes = static_cast<const uint8_t*>(block);
    content_.insert(content_.end(), bytes, bytes + size);
  }
  return std::span<const uint8_t>(content_);
}

Result<size_t> ArchiveWalk::Read(std::span<uint8_t> out) {
  size_t size = 0;
  while (size < out.size()) {
    const la_ssize_t read = archive_read_data(handle_.get(), out.data() + size, out.size() - size);
    if (read < 0) return Damaged();
    if (read == 0) break;
    size += static_cast<size_t>(read);
  }
  return size;
}

Result<ArchivePlace> ArchiveWalk::Place() {
  archive* handle = handle_.get();
  const auto cannot = [this](const std::string& why) {
    return FailedPrecondition(path_ + ": " + why +
                              ", so images cannot be decoded individually (data.decode = "
                              "demand, or transforms of images in their own sizes, such as "
                              "data.crop_area, data.expand, data.shorter_side); unpack it, or "
                              "repack it as plain .tar or .zip");
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

Status ArchiveWalk::Damaged() const {
  const char* reason = archive_error_string(handle_.get());
  return DataLoss(path_ + ": the tar, tar.gz or zip archive is damaged (" +
                  (reason == nullptr ? "no reason given" : reason) +
                  (name_.empty() ? "" : ", after " + name_) + "); download or create it again");
}

Result<std::string> ArchiveWalk::Name() const {
  const char* stored = archive_entry_pathname(entry_);
  if (stored == nullptr) {
    return InvalidArgument(path_ + ": the name of entry " + std::to_string(entries_) +
                           (name_.empty() ? "" : ", after " + name_ + ",") +
                           " is marked as UTF-8, but is no UTF-8; create the archive again");
  }
  std::string_view name = stored;
  while (name.starts_with("./")) name.remove_prefix(2);
  while (name.ends_with('/')) name.remove_suffix(1);
  if (name.size() > kLongestPath) {
    return InvalidArgument(path_ + ": the name of entry " + std::to_string(entries_) + " has " +
                           std::to_string(name.size()) + " bytes, but a path has at most " +
                           std::to_string(kLongestPath));
  }
  return std::string(name);
}

// Hard links name a file from the archive's root, symbolic links from their own folder.
std::string ArchiveWalk::Target() const {
  const char* hard = archive_entry_hardlink(entry_);
  const char* target = hard != nullptr ? hard : archive_entry_symlink(entry_);
  if (target == nullptr) return "";
  const fs::path whole = hard != nullptr ? fs::path(hard) : fs::path(name_).parent_path() / target;
  std::string normal = whole.lexically_normal().string();
  while (normal.ends_with('/')) normal.pop_back();
  return normal.starts_with('/') || normal == ".." || normal.starts_with("../") ? "" : normal;
}

// The end of a compressed tar is verified by the compression; a plain tar ends with two
// empty records.
Result<std::optional<ArchiveEntry>> ArchiveWalk::CheckEnd() const {
  const bool tar = (archive_format(handle_.get()) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_TAR;
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
  return std::optional<ArchiveEntry>();
}

}  // namespace kumo
