#include "data/readers/image_files.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "common/base/file.h"
#include "common/base/folder_walk.h"
#include "common/base/text.h"

namespace kumo {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxFiles = int64_t{1} << 28;
constexpr int kMostLinks = 8;  // from one link to the next

// The name relative to the folder `inside`; none for files elsewhere.
std::optional<std::string> Below(const std::string& inside, const std::string& name) {
  if (inside.empty()) return name;
  if (!name.starts_with(inside) || name.size() <= inside.size() + 1 || name[inside.size()] != '/') {
    return std::nullopt;
  }
  return name.substr(inside.size() + 1);
}

std::string_view LastPart(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == path.npos ? path : path.substr(slash + 1);
}

// True for names of files and folders that programs keep for themselves.
bool IsHidden(std::string_view name) {
  return name.starts_with('.') || name == "__MACOSX" || name == "@eaDir";
}

// The first hidden folder in a file's path.
std::optional<std::string> HiddenFolderOf(const std::string& path) {
  size_t begin = 0;
  for (size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', begin)) {
    if (IsHidden(std::string_view(path).substr(begin, slash - begin))) return path.substr(0, slash);
    begin = slash + 1;
  }
  return std::nullopt;
}

// Collects the entries of a container, which come without the content of hidden folders.
class Lister {
 public:
  // most_bytes: of the entries' names.
  explicit Lister(int64_t most_bytes = INT64_MAX) : most_bytes_(most_bytes) {}

  void AddFile(std::string path) {
    Count(path.size());
    if (IsHidden(LastPart(path))) {
      ++listing_.left_out.hidden_files;
    } else if (IsImageName(path)) {
      listing_.images.push_back(std::move(path));
    } else {
      listing_.left_out.AddFile(path);
      listing_.others.push_back(std::move(path));
    }
  }
  void AddFolder(const std::string& path) {
    Count(path.size());
    if (IsHidden(LastPart(path))) {
      ++listing_.left_out.hidden_folders;
    } else if (path.find('/') == path.npos) {
      listing_.folders.push_back(path);
    }
  }
  void AddUnusable(std::string path, std::string why) {
    Count(path.size() + why.size());
    if (IsHidden(LastPart(path))) {
      ++listing_.left_out.hidden_files;
    } else {
      listing_.unusable.push_back({std::move(path), std::move(why)});
    }
  }
  // Counts an entry that is kept elsewhere.
  void Count(size_t name_bytes) {
    ++entries_;
    bytes_ += kEntryBytes + static_cast<int64_t>(name_bytes);
  }

  Status CheckRoom(const std::string& container) const {
    if (entries_ > kMaxFiles) return ResourceExhausted(container + ": too many files");
    if (bytes_ <= most_bytes_) return OkStatus();
    return ResourceExhausted(container + ": the names of its files and links take more than " +
                             std::to_string(most_bytes_ >> 20) +
                             " MiB; remove other files from it, or unpack it and name the folder");
  }
  bool full() const { return entries_ > kMaxFiles || bytes_ > most_bytes_; }

  // Sorted.
  ImageListing Finish() {
    std::ranges::sort(listing_.images);
    std::ranges::sort(listing_.others);
    std::ranges::sort(listing_.unusable, {}, &ImageListing::Unusable::name);
    std::ranges::sort(listing_.folders);
    listing_.folders.erase(std::unique(listing_.folders.begin(), listing_.folders.end()),
                           listing_.folders.end());
    return std::move(listing_);
  }

 private:
  static constexpr int64_t kEntryBytes = sizeof(std::string);  // of an entry, without its name

  const int64_t most_bytes_;
  ImageListing listing_;
  int64_t entries_ = 0;
  int64_t bytes_ = 0;
};

Result<ImageListing> ListFolder(const std::string& folder) {
  Lister lister;
  KUMO_RETURN_IF_ERROR(WalkFolder(folder, [&lister](const FolderEntry& entry) {
    switch (entry.kind) {
      case FolderEntry::Kind::kFile:
        lister.AddFile(entry.path);
        return false;
      case FolderEntry::Kind::kFolder:
        lister.AddFolder(entry.path);
        return !lister.full() && !IsHidden(LastPart(entry.path));
      case FolderEntry::Kind::kRepeated:
      case FolderEntry::Kind::kUnusable:
        lister.AddUnusable(entry.path, entry.why);
        return false;
    }
    return false;
  }));
  KUMO_RETURN_IF_ERROR(lister.CheckRoom(folder));
  return lister.Finish();
}

// Links of an archive: names in the archive, and their targets.
using Links = std::unordered_map<std::string, std::string>;

// The file that a link leads to through at most kMostLinks links; its own target if it leads
// nowhere.
std::string EndOf(const Links& links, const std::string& target) {
  std::string end = target;
  for (int i = 0; i < kMostLinks; ++i) {
    const auto next = links.find(end);
    if (next == links.end()) return end;
    end = next->second;
  }
  return "";
}

// Adds the links below the container's folder, as the files or folders that they lead to.
Status AddLinks(const ImageContainer& container, const Links& links, Lister* lister) {
  enum class Target { kMissing, kFile, kFolder };
  std::unordered_map<std::string, Target> targets;
  for (const auto& [name, target] : links) targets[EndOf(links, target)] = Target::kMissing;
  KUMO_ASSIGN_OR_RETURN(ArchiveWalk walk, ArchiveWalk::Open(container.path));
  for (;;) {
    KUMO_ASSIGN_OR_RETURN(const std::optional<ArchiveEntry> entry, walk.Next());
    if (!entry) break;
    const auto found = targets.find(entry->name);
    if (found != targets.end() && entry->kind == ArchiveEntry::Kind::kFile) {
      found->second = Target::kFile;
    }
    // A folder may have no entry of its own.
    for (size_t slash = entry->name.find('/'); slash != std::string::npos;
         slash = entry->name.find('/', slash + 1)) {
      const auto above = targets.find(entry->name.substr(0, slash));
      if (above != targets.end()) above->second = Target::kFolder;
    }
  }
  for (const auto& [name, target] : links) {
    KUMO_RETURN_IF_ERROR(lister->CheckRoom(container.path));
    const std::optional<std::string> below = Below(container.inside, name);
    if (!below || HiddenFolderOf(*below)) continue;
    switch (targets[EndOf(links, target)]) {
      case Target::kFile:
        lister->AddFile(*below);
        break;
      case Target::kFolder:
        lister->AddUnusable(*below,
                            "is a link to the folder " + target +
                                ", which is not followed inside an archive; create the archive "
                                "with the content instead of the link (tar --dereference)");
        break;
      case Target::kMissing:
        lister->AddUnusable(*below, "is a link to a file that the archive does not have");
        break;
    }
  }
  return OkStatus();
}

Result<ImageListing> ListArchive(const ImageContainer& container, int64_t most_bytes) {
  KUMO_ASSIGN_OR_RETURN(ArchiveWalk walk, ArchiveWalk::Open(container.path));
  Lister lister(most_bytes);
  Links links;
  std::unordered_set<std::string> hidden, tops;  // folders
  while (!lister.full()) {
    KUMO_ASSIGN_OR_RETURN(std::optional<ArchiveEntry> entry, walk.Next());
    if (!entry) break;
    if (entry->kind == ArchiveEntry::Kind::kLink) {
      lister.Count(entry->name.size() + entry->target.size());
      links.emplace(std::move(entry->name), std::move(entry->target));
      continue;
    }
    const std::optional<std::string> below = Below(container.inside, entry->name);
    if (!below) continue;
    const std::string top = below->substr(0, below->find('/'));
    if (top.size() < below->size() && !IsHidden(top) && tops.insert(top).second) {
      lister.AddFolder(top);
    }
    const bool folder = entry->kind == ArchiveEntry::Kind::kFolder;
    if (const auto within = HiddenFolderOf(folder ? *below + "/" : *below)) {
      if (hidden.insert(*within).second) lister.AddFolder(*within);
    } else if (folder) {
      lister.AddFolder(*below);
    } else if (entry->kind == ArchiveEntry::Kind::kFile) {
      lister.AddFile(*below);
    } else {
      lister.AddUnusable(*below, "is neither a file nor a folder");
    }
  }
  KUMO_RETURN_IF_ERROR(lister.CheckRoom(container.path));
  if (!links.empty()) KUMO_RETURN_IF_ERROR(AddLinks(container, links, &lister));
  return lister.Finish();
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

using SeeEntry = std::function<Status(ArchiveWalk& walk, std::span<const int64_t> indices)>;
using SeeMissing = std::function<Status(int64_t index, const Status& missing)>;
// Names in the archive, with the indices of the files that have this content.
using Wanted = std::unordered_map<std::string, std::vector<int64_t>>;

// Calls `see` with each wanted file in the order of the archive, and moves links to
// `linked` under their targets' names.
Status WalkOnce(const ImageContainer& container, const SeeEntry& see, Wanted* wanted,
                Wanted* linked) {
  KUMO_ASSIGN_OR_RETURN(ArchiveWalk walk, ArchiveWalk::Open(container.path));
  while (!wanted->empty()) {
    KUMO_ASSIGN_OR_RETURN(const std::optional<ArchiveEntry> entry, walk.Next());
    if (!entry) break;
    const auto found = wanted->find(entry->name);
    if (found == wanted->end()) continue;
    if (entry->kind == ArchiveEntry::Kind::kFile) {
      KUMO_RETURN_IF_ERROR(see(walk, found->second));
    } else if (entry->kind == ArchiveEntry::Kind::kLink) {
      std::vector<int64_t>& indices = (*linked)[entry->target];
      indices.insert(indices.end(), found->second.begin(), found->second.end());
    } else {
      continue;
    }
    wanted->erase(found);
  }
  return OkStatus();
}

// Calls `see` with each of the named files by index in the order of the archive, linked ones last;
// missing names are NotFound.
Status WalkThrough(const ImageContainer& container, std::span<const std::string> names,
                   const SeeEntry& see, const SeeMissing& see_missing) {
  Wanted wanted;
  for (int64_t i = 0; i < std::ssize(names); ++i) {
    wanted[container.inside.empty() ? names[i] : JoinPath(container.inside, names[i])].push_back(i);
  }
  for (int walks = 0; !wanted.empty() && walks <= kMostLinks; ++walks) {
    Wanted linked;
    KUMO_RETURN_IF_ERROR(WalkOnce(container, see, &wanted, &linked));
    for (const auto& [name, indices] : wanted) {
      for (const int64_t index : indices) {
        KUMO_RETURN_IF_ERROR(see_missing(
            index, NotFound(container.Name(names[index]) + ": no such file in the archive")));
      }
    }
    wanted = std::move(linked);
  }
  for (const auto& [name, indices] : wanted) {
    for (const int64_t index : indices) {
      KUMO_RETURN_IF_ERROR(see_missing(
          index, NotFound(container.Name(names[index]) + ": too many links, one to the next")));
    }
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

// ".png" of "a/b.PNG"; "" of a hidden file and of one without an ending.
std::string ImageEnding(std::string_view name) {
  const std::string_view base = LastPart(name);
  const size_t dot = base.rfind('.');
  return base.starts_with('.') || dot == base.npos ? "" : LowerCase(base.substr(dot));
}

}  // namespace

bool IsImageName(std::string_view name) {
  const std::string ending = ImageEnding(name);
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

bool IsPngName(std::string_view name) { return ImageEnding(name) == ".png"; }

std::string WithoutEnding(const std::string& image) { return image.substr(0, image.rfind('.')); }

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

Result<ImageListing> ListImages(const ImageContainer& container, int64_t most_bytes) {
  KUMO_ASSIGN_OR_RETURN(ImageListing listing, container.archive ? ListArchive(container, most_bytes)
                                                                : ListFolder(container.path));
  for (const std::vector<std::string>* files : {&listing.images, &listing.others}) {
    const auto twice = std::ranges::adjacent_find(*files);
    if (twice == files->end()) continue;
    return InvalidArgument(container.Name(*twice) +
                           ": occurs more than once in the archive, so that it is unclear which "
                           "one counts; create the archive again from the files");
  }
  return listing;
}

Status CheckArchive(const ImageContainer& container) {
  if (!container.archive) return OkStatus();
  return ListImages({container.path, true, ""}).status();
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
      [&places](int64_t index, const Status&) {
        places[index].size = ArchivePlace::kMissing;
        return OkStatus();
      }));
  return places;
}

}  // namespace kumo
