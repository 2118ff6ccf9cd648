#include "common/base/folder_walk.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <map>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "common/base/file.h"

namespace kumo {
namespace {

using Kind = FolderEntry::Kind;

// Identifies a real folder of this machine.
struct FolderId {
  dev_t device = 0;
  ino_t inode = 0;
  auto operator<=>(const FolderId&) const = default;
};

struct ListedName {
  std::string name;
  bool regular = false;  // known without asking for its status
};

std::string Reason(int error) { return std::generic_category().message(error); }

// The names in a folder, sorted. Returns errno, or 0. The listing often tells what is a regular
// file, which saves a request for each file of a network file system.
int List(const std::string& folder, std::vector<ListedName>* names) {
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(folder.c_str()), &::closedir);
  if (!stream) return errno;
  errno = 0;
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names->push_back({std::string(name), entry->d_type == DT_REG});
    errno = 0;
  }
  std::ranges::sort(*names, {}, &ListedName::name);
  return errno;
}

class Walk {
 public:
  Walk(const std::string& root, const SeeFolderEntry& see) : root_(root), see_(see) {}

  Status Run() {
    struct stat found {};
    if (::stat(root_.c_str(), &found) != 0) return Failed(errno);
    const FolderId id{found.st_dev, found.st_ino};
    seen_.emplace(id, "");
    const int error = Enter(id, "");
    return error == 0 ? OkStatus() : Failed(error);
  }

 private:
  Status Failed(int error) const {
    const std::string what = root_ + ": cannot list the folder: " + Reason(error);
    if (error == ENOENT || error == ENOTDIR) return NotFound(what);
    return error == EACCES || error == EPERM ? FailedPrecondition(what) : Unavailable(what);
  }

  // Returns errno if the folder cannot be listed, or 0.
  int Enter(const FolderId& id, const std::string& below) {
    std::vector<ListedName> names;
    const int error = List(below.empty() ? root_ : JoinPath(root_, below), &names);
    if (error != 0) return error;
    above_.emplace_back(id, below);
    for (const ListedName& listed : names) {
      const std::string path = below.empty() ? listed.name : JoinPath(below, listed.name);
      if (listed.regular) {
        see_({Kind::kFile, path});
      } else {
        Examine(path);
      }
    }
    above_.pop_back();
    return 0;
  }

  void Examine(const std::string& path) {
    const std::string whole = JoinPath(root_, path);
    struct stat found {};
    if (::stat(whole.c_str(), &found) != 0) {
      see_({Kind::kUnusable, path, WhyMissing(whole, errno)});
      return;
    }
    if (S_ISREG(found.st_mode)) {
      see_({Kind::kFile, path});
      return;
    }
    if (!S_ISDIR(found.st_mode)) {
      see_({Kind::kUnusable, path, "is neither a file nor a folder"});
      return;
    }
    const FolderId id{found.st_dev, found.st_ino};
    const auto loop = std::ranges::find(above_, id, &Above::first);
    if (loop != above_.end()) {
      const std::string above = loop->second.empty() ? root_ : JoinPath(root_, loop->second);
      see_({Kind::kUnusable, path, "is a link to " + above + ", a folder above it"});
      return;
    }
    const auto first = seen_.find(id);
    const bool enter = first == seen_.end()
                           ? see_({Kind::kFolder, path})
                           : see_({Kind::kRepeated, path,
                                   "is the same folder as " + JoinPath(root_, first->second)});
    if (!enter) return;
    seen_.emplace(id, path);
    if (const int error = Enter(id, path); error != 0) {
      see_({Kind::kUnusable, path, "cannot be listed: " + Reason(error)});
    }
  }

  static std::string WhyMissing(const std::string& path, int error) {
    struct stat link {};
    const bool is_link = ::lstat(path.c_str(), &link) == 0 && S_ISLNK(link.st_mode);
    if (is_link && error == ENOENT) return "is a link to a file that does not exist";
    if (is_link && error == ELOOP) return "is a link that leads back to itself";
    return "cannot be examined: " + Reason(error);
  }

  using Above = std::pair<FolderId, std::string>;

  const std::string& root_;
  const SeeFolderEntry& see_;
  std::vector<Above> above_;              // the folders that are entered, with their paths
  std::map<FolderId, std::string> seen_;  // the folders that were entered, with their first paths
};

}  // namespace

Status WalkFolder(const std::string& root, const SeeFolderEntry& see) {
  return Walk(root, see).Run();
}

}  // namespace kumo
