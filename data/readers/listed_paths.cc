#include "data/readers/listed_paths.h"

#include <filesystem>
#include <string_view>

#include "common/base/file.h"
#include "common/base/printable.h"

namespace kumo {
namespace {

constexpr std::string_view kInArchive = "@/";

std::string FullPath(const std::string& folder, const std::string& path) {
  return path.starts_with('/') ? path : JoinPath(folder, path);
}

// The container of the images according to the first path: an archive, or any folders.
ImageContainer ContainerOf(const std::string& first) {
  const Result<ImageContainer> found = FindContainer(first);
  // The path of a plain file leads "into" that file, with nothing inside.
  if (!found.ok() || !found->archive || found->inside.empty()) return {};
  return {found->path, true, ""};
}

}  // namespace

Result<std::string> ListedPaths::Take(std::string path) {
  if (inside_) {
    const std::string whole = folder_.empty() ? path : JoinPath(folder_, path);
    return std::filesystem::path(whole).lexically_normal().string();
  }
  if (const size_t at = path.find(kInArchive); at != path.npos) path.erase(at, 1);
  std::string whole = FullPath(folder_, path);
  if (!known_) container_ = ContainerOf(whole);
  known_ = true;
  if (!container_.archive) return whole;
  if (whole.starts_with(container_.path + "/")) return whole.substr(container_.path.size() + 1);
  return InvalidArgument(Printable(path) + " is not in " + container_.path +
                         " like the first image; use images of one archive only");
}

}  // namespace kumo
