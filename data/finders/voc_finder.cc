#include "data/finders/finders.h"

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/job/fields.h"
#include "data/open_datasets.h"
#include "data/readers/all.h"

namespace kumo {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kDetectionSide = 300;  // images with objects are scaled to, as by SSD300

// The lists of images in the layout of Pascal VOC; none if the files are in another one.
std::optional<std::set<std::string>> VocSetsIn(const ImageListing& listing) {
  constexpr std::string_view kLists = "ImageSets/Main/";
  bool annotated = false;
  std::set<std::string> sets;
  for (const std::string& file : listing.others) {
    const std::string folder = fs::path(file).parent_path().filename().string();
    annotated |= folder == "Annotations" && file.ends_with(".xml");
    const size_t at = file.find(kLists);
    if (at == file.npos || !file.ends_with(".txt")) continue;
    sets.insert(fs::path(file).stem().string());
  }
  return annotated && !listing.images.empty() ? std::optional(sets) : std::nullopt;
}

}  // namespace

// With the size of SSD300's images and its augmentation.
Result<std::optional<FoundDataset>> FindVoc(const std::string& path, const std::string& directory,
                                            const std::string& name, const ImageListing& listing) {
  const std::optional<std::set<std::string>> found_sets = VocSetsIn(listing);
  if (!found_sets) return std::optional<FoundDataset>();
  const std::set<std::string>& sets = *found_sets;
  FoundDataset found;
  Experiment::Data& data = found.data;
  data.reader = DataReader::kVoc;
  data.directory = directory;
  const std::string train = sets.contains("trainval") ? "trainval"
                            : sets.contains("train")  ? "train"
                                                      : "";
  const std::string validation = sets.contains("test")                      ? "test"
                                 : sets.contains("val") && train == "train" ? "val"
                                                                            : "";
  const auto of = [&](const std::string& set) { return set.empty() ? name : name + ":" + set; };
  data.train_images = of(train);
  data.validation_images = validation.empty() || train.empty() ? "" : of(validation);
  ReaderRequest request;
  request.images = train.empty() ? path : path + ":" + train;
  request.any_classes = request.skip_damaged = true;
  request.room = RoomOfOneSet();
  data.image_size = ExtentsText(std::vector<int64_t>{3, kDetectionSide, kDetectionSide});
  data.photometric = data.object_crop = data.random_interpolation = data.flip = true;
  data.expand = 4;
  KUMO_ASSIGN_OR_RETURN(const auto dataset, OpenVoc(request));
  data.classes = dataset->classes();
  found.form = "images with objects of " + Counted(data.classes, "class", "classes") +
               " in the layout of Pascal VOC";
  return std::optional(std::move(found));
}

}  // namespace kumo
