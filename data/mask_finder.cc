#include "data/mask_finder.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "common/base/file.h"
#include "common/base/printable.h"

namespace kumo {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOfImages[] = {"images", "image", "imgs", "img", "photos", "pictures"};
constexpr std::string_view kOfMasks[] = {"masks",        "mask",          "labels",
                                         "label",        "annotations",   "annotation",
                                         "segmentation", "segmentations", "targets"};
constexpr int kMostMaskClasses = 255;  // 255 is none

bool IsOneOf(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::find(names, LowerCase(name)) != names.end();
}

std::string StemOf(const std::string& file) { return file.substr(0, file.rfind('.')); }

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

Result<std::vector<Pair>> PairsIn(const std::string& path, const ImageListing& listing) {
  const FilesByFolder images = FoldersNamed(kOfImages, listing),
                      masks = FoldersNamed(kOfMasks, listing);
  std::vector<Pair> pairs;
  for (const auto& [folder, files] : images) {
    const std::string parent = ParentOf(folder);
    const auto beside = std::ranges::find_if(
        masks, [&](const auto& other) { return ParentOf(other.first) == parent; });
    if (beside == masks.end()) continue;
    std::set<std::string> names;
    for (const std::string& mask : beside->second) names.insert(StemOf(mask));
    if (std::ranges::none_of(
            files, [&](const std::string& file) { return names.contains(StemOf(file)); })) {
      return InvalidArgument(
          JoinPath(path, JoinPath(folder, files.front())) + ": has no mask of its name in " +
          JoinPath(path, beside->first) + ", where the first one is " +
          Printable(beside->second.front()) +
          "; give each mask the name of its image, or list both in a CSV file with the columns "
          "image and mask");
    }
    const Pair pair = {folder, beside->first, files, PartIn(fs::path(parent).filename().string())};
    for (Pair& part : PartsOfPair(pair)) pairs.push_back(std::move(part));
  }
  return pairs;
}

const Pair* FindPart(const std::vector<Pair>& pairs, NamedPart part) {
  const auto found = std::ranges::find(pairs, part, &Pair::part);
  return found == pairs.end() ? nullptr : &*found;
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
  FoundDataset found;
  Experiment::Data& data = found.data;
  data.reader = DataReader::kMasks;
  data.directory = directory;
  data.train_images = JoinPath(name, train->images);
  data.train_labels = JoinPath(name, train->masks);
  data.validation_images = data.validation_labels = "";
  if (validation != nullptr && validation != train) {
    data.validation_images = JoinPath(name, validation->images);
    data.validation_labels = JoinPath(name, validation->masks);
  }
  data.classes = kMostMaskClasses;
  found.form = "images with masks";
  KUMO_ASSIGN_OR_RETURN(const ImageContainer container,
                        FindContainer(JoinPath(path, train->images)));
  KUMO_ASSIGN_OR_RETURN(const ImageSizes sizes, SizesOf(container, train->files));
  SetMaskedImageSize(sizes, &data);
  return std::optional(std::move(found));
}

}  // namespace kumo
