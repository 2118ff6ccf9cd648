#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/printable.h"
#include "data/readers/all.h"
#include "data/readers/archive_walk.h"
#include "data/readers/byte_source.h"
#include "data/readers/coco_annotations.h"
#include "data/readers/detection_set.h"
#include "data/readers/image_files.h"

namespace kumo {
namespace {

// The file that a container leads to, in an archive, which has it once.
Result<ArchiveWalk> WalkTo(const ImageContainer& container) {
  KUMO_RETURN_IF_ERROR(CheckArchive(container));
  KUMO_ASSIGN_OR_RETURN(ArchiveWalk walk, ArchiveWalk::Open(container.path));
  for (;;) {
    KUMO_ASSIGN_OR_RETURN(const std::optional<ArchiveEntry> entry, walk.Next());
    if (!entry) return NotFound(container.Name("") + ": no such file in the archive");
    if (entry->name == container.inside && entry->kind == ArchiveEntry::Kind::kFile) return walk;
  }
}

// path: of a file, plain or in gzip, perhaps in an archive.
Result<CocoAnnotations> ReadCocoAnnotations(const std::string& path, int64_t room) {
  KUMO_ASSIGN_OR_RETURN(const ImageContainer container, FindContainer(path));
  const auto parse = [&](auto&& source) -> Result<CocoAnnotations> {
    Status failed;  // of the source, which names its file
    Result<CocoAnnotations> annotations = ParseCocoAnnotations(
        [&](std::span<uint8_t> piece) -> Result<size_t> {
          Result<size_t> size = source.Read(piece);
          failed = size.status();
          return size;
        },
        room);
    if (annotations.ok() || !failed.ok()) return annotations;
    return annotations.status().WithContext(path);
  };
  if (container.archive && !container.inside.empty()) {
    KUMO_ASSIGN_OR_RETURN(ArchiveWalk walk, WalkTo(container));
    return parse(walk);
  }
  KUMO_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path));
  return parse(source);
}

// The categories in the order of their ids, and the place of each id there.
struct CocoClasses {
  std::vector<std::string> names;
  std::unordered_map<int64_t, int32_t> numbers;
};

CocoClasses ClassesIn(std::vector<CocoCategory> categories) {
  std::ranges::sort(categories, {}, &CocoCategory::id);
  CocoClasses classes;
  for (CocoCategory& category : categories) {
    classes.numbers.emplace(category.id, static_cast<int32_t>(classes.names.size()));
    classes.names.push_back(std::move(category.name));
  }
  return classes;
}

// The folder in front of the images' names: none, or the only one at the top, as an archive of the
// images has. The first image that is there decides.
std::string FolderOfImages(const ImageListing& listing, std::span<const CocoImage> images) {
  if (listing.folders.size() != 1) return "";
  std::string folder = listing.folders.front() + "/";
  for (const CocoImage& image : images) {
    if (std::ranges::binary_search(listing.images, image.file_name)) return "";
    if (std::ranges::binary_search(listing.images, folder + image.file_name)) return folder;
  }
  return "";
}

Result<DetectionSet> JoinObjects(CocoAnnotations annotations, const ReaderRequest& request) {
  DetectionSet set;
  set.name = request.labels;
  CocoClasses classes = ClassesIn(std::move(annotations.categories));
  set.names = std::move(classes.names);
  std::unordered_map<int64_t, int64_t> places;  // of the images, by id
  for (const CocoImage& image : annotations.images) places.emplace(image.id, std::ssize(places));
  std::vector<CocoImage>& images = annotations.images;
  if (request.limit > 0 && std::ssize(images) > request.limit) images.resize(request.limit);
  AnnotatedImages& part = set.parts.emplace_back();
  KUMO_ASSIGN_OR_RETURN(part.container, FindContainer(request.images));
  KUMO_ASSIGN_OR_RETURN(const ImageListing listing, ListImages(part.container));
  const std::string folder = FolderOfImages(listing, images);
  for (const CocoImage& image : images) {
    AnnotatedImage& annotated = part.images.emplace_back();
    annotated.file = folder + image.file_name;
    annotated.height = image.height;
    annotated.width = image.width;
    if (!std::ranges::binary_search(listing.images, annotated.file)) {
      annotated.problem = NotFound(part.container.Name(Printable(annotated.file)) +
                                   ": there is no such image (id " + std::to_string(image.id) +
                                   " in " + request.labels + ")");
    }
  }
  for (size_t i = 0; i < annotations.objects.size(); ++i) {
    const CocoObject& object = annotations.objects[i];
    const auto place = places.find(object.image_id);
    const auto number = classes.numbers.find(object.category_id);
    if (place == places.end() || number == classes.numbers.end()) {
      const bool image = place == places.end();
      return InvalidArgument("annotations[" + std::to_string(i) + "]." +
                             (image ? "image_id = " : "category_id = ") +
                             std::to_string(image ? object.image_id : object.category_id) +
                             ", but no " + (image ? "image" : "category") + " has this id");
    }
    if (place->second >= std::ssize(part.images)) continue;
    part.images[place->second].objects.push_back(
        {number->second, object.crowd, object.box[0], object.box[1], object.box[2], object.box[3]});
  }
  return set;
}

Result<DetectionSet> FindCocoObjects(const ReaderRequest& request) {
  KUMO_ASSIGN_OR_RETURN(CocoAnnotations annotations,
                        ReadCocoAnnotations(request.labels, request.room));
  Result<DetectionSet> set = JoinObjects(std::move(annotations), request);
  if (set.status().code() != StatusCode::kInvalidArgument) return set;
  return set.status().WithContext(request.labels);
}

}  // namespace

Result<std::unique_ptr<Dataset>> OpenCoco(const ReaderRequest& request) {
  KUMO_ASSIGN_OR_RETURN(DetectionSet set, FindCocoObjects(request));
  return OpenDetectionSet(std::move(set), request);
}

Result<DatasetExtents> MeasureCoco(const ReaderRequest& request) {
  KUMO_ASSIGN_OR_RETURN(DetectionSet set, FindCocoObjects(request));
  return MeasureDetectionSet(std::move(set), request);
}

}  // namespace kumo
