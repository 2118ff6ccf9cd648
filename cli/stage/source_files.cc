#include "cli/stage/source_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "common/base/file.h"
#include "common/base/printable.h"

namespace kumo {
namespace {

// Deeper than any data set: reached only through a link to a folder above.
constexpr int kDeepest = 64;
constexpr int64_t kNanoseconds = 1'000'000'000;

// stat, which follows links; st_mode is 0 on an error.
Result<struct stat> Look(const std::string& path) {
  struct stat found = {};
  if (stat(path.c_str(), &found) == 0) return found;
  const std::string message = Printable(path) + ": " + std::strerror(errno);
  if (errno == ENOENT || errno == ELOOP) {
    std::error_code error;
    const bool link = std::filesystem::is_symlink(path, error);
    return link ? FailedPrecondition(message + ": a dangling link") : NotFound(message);
  }
  return errno == EIO ? DataLoss(message) : FailedPrecondition(message);
}

SourceFile FileOf(const struct stat& found, std::string path) {
  return {std::move(path), static_cast<uint64_t>(found.st_size),
          found.st_mtim.tv_sec * kNanoseconds + found.st_mtim.tv_nsec};
}

Status ListFolder(const std::string& folder, const std::string& below, int depth,
                  std::vector<SourceFile>* files) {
  if (depth > kDeepest) {
    return FailedPrecondition(Printable(folder) + ": more than " + std::to_string(kDeepest) +
                              " folders deep; check for a link to a folder above it");
  }
  PosixFileSystem disk;
  KUMO_ASSIGN_OR_RETURN(const std::vector<std::string> names, disk.List(folder));
  for (const std::string& name : names) {
    if (name.starts_with("..") || name == kStagingFolder) continue;
    const std::string path = JoinPath(folder, name);
    if (!IsName(name)) {
      return FailedPrecondition(Printable(path) + ": a control character in a file's name");
    }
    KUMO_ASSIGN_OR_RETURN(const struct stat found, Look(path));
    const std::string relative = below.empty() ? name : JoinPath(below, name);
    if (S_ISDIR(found.st_mode)) {
      KUMO_RETURN_IF_ERROR(ListFolder(path, relative, depth + 1, files));
    } else if (S_ISREG(found.st_mode)) {
      files->push_back(FileOf(found, relative));
    } else {
      return FailedPrecondition(path + " is neither a file nor a folder, so it cannot be staged");
    }
  }
  return OkStatus();
}

}  // namespace

Result<Source> ListSource(const std::string& source) {
  KUMO_ASSIGN_OR_RETURN(const struct stat found, Look(source));
  if (S_ISREG(found.st_mode)) {
    const std::string folder = DirectoryOf(source);
    return Source{folder, {FileOf(found, std::filesystem::path(source).filename())}};
  }
  if (!S_ISDIR(found.st_mode)) {
    return FailedPrecondition(source + " is neither a file nor a folder, so it cannot be staged");
  }
  Source listed{source, {}};
  KUMO_RETURN_IF_ERROR(ListFolder(source, "", 0, &listed.files));
  if (listed.files.empty()) {
    return FailedPrecondition(source + " contains no files; check that the volume is mounted");
  }
  std::ranges::sort(listed.files, {}, &SourceFile::path);
  return listed;
}

Result<SourceFile> LookAtSourceFile(const std::string& folder, const std::string& path) {
  KUMO_ASSIGN_OR_RETURN(const struct stat found, Look(JoinPath(folder, path)));
  return FileOf(found, path);
}

}  // namespace kumo
