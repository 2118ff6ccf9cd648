#include "data/finders/mask_finder.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/file.h"
#include "common/base/printable.h"
#include "common/base/text.h"
#include "data/readers/image_files.h"

namespace kumo {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOfImages[] = {"images", "image", "imgs", "img", "photos", "pictures"};
constexpr std::string_view kOfMasks[] = {"masks",        "mask",          "labels",
                                         "label",        "annotations",   "annotation",
                                         "segmentation", "segmentations", "targets"};
constexpr size_t kNamedPairs = 4;  // in a note

bool IsOneOf(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::find(names, LowerCase(name)) != names.end();
}

// Paths of files by the path of the folder, both without endings, below which they lie.
using FilesByFolder = std::map<std::string, std::vector<std::string>>;

// The files below folders of such names.
FilesByFolder FoldersNamed(std::span<const std::string_view> names, const ImageListing& listing) {
  FilesByFolder folders;
  for (const std::string& file : listing.images) {
    size_t begin = 0;
    for (size_t end = file.find('/'); end != file.npos; end = file.find('/', begin)) {
      if (IsOneOf(std::string_view(file).substr(begin, end - begin), names)) {
        folders[file.substr(0, end)].push_back(file.substr(end + 1));
        break;
      }
      begin = end + 1;
    }
  }
  return folders;
}

// A set: a folder of images and one of masks, with its images below.
struct Pair {
  std::string images, masks;
  std::vector<std::string> files;
  NamedPart part = NamedPart::kNone;
};

std::string ParentOf(const std::string& folder) { return fs::path(folder).parent_path().string(); }

// The pair, or its parts, if both folders have a folder for each part.
std::vector<Pair> PartsOfPair(const Pair& pair) {
  std::map<std::string, Pair> parts;
  for (const std::string& file : pair.files) {
    const size_t slash = file.find('/');
    if (slash == file.npos) return {pair};
    const std::string top = file.substr(0, slash);
    Pair& part = parts[top];
    part.images = JoinPath(pair.images, top);
    part.masks = JoinPath(pair.masks, top);
    part.files.push_back(file.substr(slash + 1));
    part.part = PartIn(top);
  }
  std::vector<Pair> result;
  for (const auto& [top, part] : parts) result.push_back(part);
  const bool training =
      std::ranges::find(result, NamedPart::kTraining, &Pair::part) != result.end();
  return training ? result : std::vector<Pair>{pair};
}

// True if a mask has the name of an image.
bool HaveOneName(const std::vector<std::string>& images, const std::vector<std::string>& masks) {
  std::set<std::string> names;
  for (const std::string& mask : masks) names.insert(WithoutEnding(mask));
  return std::ranges::any_of(
      images, [&](const std::string& image) { return names.contains(WithoutEnding(image)); });
}

Result<std::vector<Pair>> PairsIn(const std::string& path, const ImageListing& listing) {
  const FilesByFolder images = FoldersNamed(kOfImages, listing),
                      masks = FoldersNamed(kOfMasks, listing);
  std::vector<Pair> pairs;
  for (const auto& [folder, files] : images) {
    const std::string parent = ParentOf(folder);
    std::vector<FilesByFolder::const_iterator> beside;
    for (auto it = masks.begin(); it != masks.end(); ++it) {
      if (ParentOf(it->first) == parent) beside.push_back(it);
    }
    if (beside.empty()) continue;
    const auto fitting = std::ranges::find_if(
        beside, [&of_images = files](auto it) { return HaveOneName(of_images, it->second); });
    if (fitting == beside.end()) {
      const auto& [first, of_first] = *beside.front();
      return InvalidArgument(
          JoinPath(path, JoinPath(folder, files.front())) + ": has no mask of its name in " +
          JoinPath(path, first) + ", where the first one is " + Printable(of_first.front()) +
          "; give each mask the name of its image, or list both in a CSV file with the columns "
          "image and mask");
    }
    const Pair pair = {folder, (*fitting)->first, files,
                       PartIn(fs::path(parent).filename().string())};
    for (Pair& part : PartsOfPair(pair)) pairs.push_back(std::move(part));
  }
  return pairs;
}

const Pair* FindPart(const std::vector<Pair>& pairs, NamedPart part) {
  const auto found = std::ranges::find(pairs, part, &Pair::part);
  return found == pairs.end() ? nullptr : &*found;
}

// Names the pairs that neither set takes; "" if there are none.
std::string NoteOfUnused(const std::vector<Pair>& pairs, const Pair* train,
                         const Pair* validation) {
  std::vector<std::string> unused;
  for (const Pair& pair : pairs) {
    if (&pair != train && &pair != validation) unused.push_back(Printable(pair.images));
  }
  if (unused.empty()) return "";
  const bool more = unused.size() > kNamedPairs;
  if (more) unused.resize(kNamedPairs);
  return "of several folders of images with masks only " + Printable(train->images) +
         (validation == nullptr ? "" : " and " + Printable(validation->images)) +
         " are read, not " + Join(unused) + (more ? ", ..." : "") +
         "; to read all, move the images into one folder and the masks into another, or list them "
         "in a CSV file with the columns image and mask";
}

}  // namespace

Result<std::optional<FoundDataset>> FindMasks(const std::string& path, const std::string& directory,
                                              const std::string& name,
                                              const ImageListing& listing) {
  KUMO_ASSIGN_OR_RETURN(const std::vector<Pair> pairs, PairsIn(path, listing));
  if (pairs.empty()) return std::optional<FoundDataset>();
  const Pair* train = FindPart(pairs, NamedPart::kTraining);
  if (train == nullptr) train = FindPart(pairs, NamedPart::kNone);
  if (train == nullptr) train = &pairs.front();
  const Pair* validation = FindPart(pairs, NamedPart::kValidation);
  if (validation == train) validation = nullptr;
  FoundDataset found;
  Experiment::Data& data = found.data;
  data.reader = DataReader::kMasks;
  data.directory = directory;
  data.train_images = JoinPath(name, train->images);
  data.train_labels = JoinPath(name, train->masks);
  data.validation_images = data.validation_labels = "";
  if (validation != nullptr) {
    data.validation_images = JoinPath(name, validation->images);
    data.validation_labels = JoinPath(name, validation->masks);
  }
  data.classes = kMostMaskClasses;
  found.form = "images with masks";
  if (std::string note = NoteOfUnused(pairs, train, validation); !note.empty()) {
    found.notes.push_back(std::move(note));
  }
  KUMO_ASSIGN_OR_RETURN(const ImageContainer container,
                        FindContainer(JoinPath(path, train->images)));
  KUMO_ASSIGN_OR_RETURN(const ImageSizes sizes, SizesOf(container, train->files));
  SetMaskedImageSize(sizes, &data);
  return std::optional(std::move(found));
}

}  // namespace kumo
