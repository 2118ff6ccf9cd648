#include "data/finders/finders.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/file.h"
#include "common/base/text.h"
#include "data/finders/mask_finder.h"

namespace kumo {
namespace {

constexpr int kMostFoldersAround = 16;

// The first folders of the files' paths.
std::set<std::string> TopFolders(const std::vector<std::string>& files) {
  std::set<std::string> tops;
  for (const std::string& file : files) {
    if (const size_t slash = file.find('/'); slash != file.npos) tops.insert(file.substr(0, slash));
  }
  return tops;
}

// The single folder around folders of images, as archives often have; none if there is another
// layout, or if the folder is a set by its name.
std::optional<std::string> FolderAround(const std::vector<std::string>& images) {
  const std::set<std::string> tops = TopFolders(images);
  if (tops.size() != 1 || PartIn(*tops.begin()) == NamedPart::kTraining) return std::nullopt;
  const bool deeper = std::ranges::any_of(
      images, [](const std::string& file) { return std::ranges::count(file, '/') > 1; });
  return deeper ? std::optional(*tops.begin()) : std::nullopt;
}

// The files below a folder, by their paths from there.
std::vector<std::string> FilesBelow(const std::string& folder, std::vector<std::string> files) {
  const std::string start = folder + "/";
  std::erase_if(files, [&](const std::string& file) { return !file.starts_with(start); });
  for (std::string& file : files) file.erase(0, start.size());
  return files;
}

}  // namespace

Result<FoundDataset> FindImageFolder(std::string path, const std::string& directory,
                                     std::string name) {
  const std::string whole = path;
  KUMO_ASSIGN_OR_RETURN(ImageContainer container, FindContainer(path));
  KUMO_ASSIGN_OR_RETURN(ImageListing listing, ListImages(container));
  for (int around = 0;; ++around) {
    KUMO_ASSIGN_OR_RETURN(auto objects, FindVoc(path, directory, name, listing));
    if (objects) return *std::move(objects);
    KUMO_ASSIGN_OR_RETURN(auto masked, FindMasks(path, directory, name, listing));
    if (masked) return *std::move(masked);
    const std::optional<std::string> folder = FolderAround(listing.images);
    if (!folder) break;
    if (around == kMostFoldersAround) {
      return InvalidArgument(whole + ": its images lie below more than " +
                             std::to_string(kMostFoldersAround) +
                             " folders, one in the other; name the folder that holds the folders "
                             "of the classes");
    }
    path = JoinPath(path, *folder);
    name = JoinPath(name, *folder);
    listing.images = FilesBelow(*folder, std::move(listing.images));
    listing.others = FilesBelow(*folder, std::move(listing.others));
  }
  KUMO_ASSIGN_OR_RETURN(container, FindContainer(path));
  std::vector<std::string> files = std::move(listing.images);
  const std::set<std::string> tops = TopFolders(files);
  FoundDataset found;
  found.data.reader = DataReader::kImageFolder;
  found.data.directory = directory;
  found.data.train_images = name;
  found.data.validation_images = "";
  std::string train, validation;
  for (const std::string& top : tops) {
    // A class may have such a name, too; its images lie in no further folder.
    if (PartIn(top) == NamedPart::kTraining && train.empty() &&
        !TopFolders(FilesBelow(top, files)).empty()) {
      train = top;
    }
    if (PartIn(top) == NamedPart::kValidation && validation.empty()) validation = top;
  }
  if (!train.empty()) {
    found.data.train_images = JoinPath(name, train);
    if (!validation.empty()) found.data.validation_images = JoinPath(name, validation);
    files = FilesBelow(train, std::move(files));
    KUMO_ASSIGN_OR_RETURN(container, FindContainer(JoinPath(path, train)));
  }
  const std::set<std::string> classes = TopFolders(files);
  if (classes.size() < 2) {
    return InvalidArgument(container.Name("") +
                           ": has images of one class only; put the images of each class into a "
                           "folder of its own");
  }
  found.data.classes = static_cast<int>(classes.size());
  found.form = "image folders of " + std::to_string(classes.size()) + " classes";
  KUMO_ASSIGN_OR_RETURN(const ImageSizes sizes, SizesOf(container, files));
  const std::string lower = LowerCase(container.path);
  SetImageSize(sizes, !container.archive || !(lower.ends_with("gz")), &found.data);
  return found;
}

}  // namespace kumo
