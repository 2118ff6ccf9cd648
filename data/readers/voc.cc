#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/printable.h"
#include "common/base/text.h"
#include "data/readers/all.h"
#include "data/readers/annotation_room.h"
#include "data/readers/detection_set.h"
#include "data/readers/image_files.h"
#include "data/readers/image_set_names.h"
#include "data/readers/voc_annotation.h"

namespace kumo {
namespace {

constexpr std::string_view kAnnotationsFolder = "Annotations/";
constexpr std::string_view kImagesFolder = "JPEGImages/";
constexpr std::string_view kSetsFolder = "ImageSets/Main/";
constexpr std::string_view kXmlEnding = ".xml";
constexpr std::string_view kListEnding = ".txt";
constexpr size_t kNamedLayouts = 8;  // in a message

using FileContent = Result<std::span<const uint8_t>>;

std::string_view TextIn(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Files of a folder or an archive in the layout of Pascal VOC, by the names of their images.
struct VocLayout {
  ImageContainer container;
  std::string root;  // folder of Annotations/ in it: "", "VOC2007/"
  std::map<std::string, std::string, std::less<>> xmls;  // by image
  std::unordered_map<std::string, std::string> images;
  std::map<std::string, std::string, std::less<>> sets;  // files of lists, by set
};

// The name of the file between the root with the folder and the ending; none for other files.
std::optional<std::string_view> VocNameIn(std::string_view file, std::string_view root,
                                          std::string_view folder, std::string_view ending) {
  if (!file.starts_with(root) || !file.substr(root.size()).starts_with(folder)) return std::nullopt;
  file.remove_prefix(root.size() + folder.size());
  if (!file.ends_with(ending)) return std::nullopt;
  file.remove_suffix(ending.size());
  return file;
}

// The folders with a folder Annotations that holds XML files.
std::set<std::string> RootsIn(const ImageListing& listing) {
  std::set<std::string> roots;
  for (const std::string& file : listing.others) {
    if (!file.ends_with(kXmlEnding)) continue;
    const size_t at = file.starts_with(kAnnotationsFolder) ? 0 : file.find("/Annotations/");
    if (at == file.npos) continue;
    roots.insert(at == 0 ? "" : file.substr(0, at + 1));
  }
  return roots;
}

Result<VocLayout> FindVocLayout(const std::string& path) {
  VocLayout layout;
  KUMO_ASSIGN_OR_RETURN(layout.container, FindContainer(path));
  KUMO_ASSIGN_OR_RETURN(const ImageListing listing, ListImages(layout.container));
  const std::set<std::string> roots = RootsIn(listing);
  if (roots.empty()) {
    return InvalidArgument(
        path +
        ": has no folder Annotations with .xml files, which the layout of "
        "Pascal VOC requires; name the folder or the archive that has Annotations, "
        "JPEGImages and ImageSets");
  }
  if (roots.size() > 1) {
    std::string names;
    size_t named = 0;
    for (const std::string& root : roots) {
      if (named++ == kNamedLayouts) break;
      names += (names.empty() ? "" : ", ") + layout.container.Name(root.substr(0, root.size() - 1));
    }
    return InvalidArgument(path + ": has several folders Annotations; name one of " + names +
                           (roots.size() > kNamedLayouts ? ", ..." : ""));
  }
  layout.root = *roots.begin();
  for (const std::string& file : listing.others) {
    if (const auto xml = VocNameIn(file, layout.root, kAnnotationsFolder, kXmlEnding)) {
      layout.xmls.emplace(*xml, file);
    } else if (const auto set = VocNameIn(file, layout.root, kSetsFolder, kListEnding)) {
      layout.sets.emplace(*set, file);
    }
  }
  for (const std::string& file : listing.images) {
    if (const auto image = VocNameIn(file, layout.root, kImagesFolder, "")) {
      layout.images.emplace(image->substr(0, image->rfind('.')), file);
    }
  }
  return layout;
}

// An image in a list, and its place there.
struct ListedImage {
  std::string name;
  std::string where;
};

// The images in the lines of a list.
Result<std::vector<ListedImage>> ImagesIn(std::string_view text, const std::string& list,
                                          AnnotationRoom* room) {
  text = WithoutByteOrderMark(text);
  std::vector<ListedImage> images;
  for (int64_t number = 1; !text.empty(); ++number) {
    std::string_view line = Trimmed(TakeLine(&text));
    if (line.empty()) continue;
    std::string where = list + ":" + std::to_string(number);
    if (line.find_first_of(" \t") != line.npos) {
      return InvalidArgument(where + ": \"" + Printable(line, 40) +
                             "\" is not the name of an image alone, as in the lists of one class; "
                             "name a list of all classes");
    }
    const size_t bytes = kElementBytes<ListedImage> + line.size() + where.size();
    KUMO_RETURN_IF_ERROR(room->Take(static_cast<int64_t>(bytes)).WithContext(list));
    images.push_back({std::string(line), std::move(where)});
  }
  if (images.empty()) return InvalidArgument(list + ": lists no images");
  return images;
}

// The images of a set: those in its list, or all with annotations if there are no lists.
Result<std::vector<ListedImage>> ImagesOf(const VocLayout& layout, const ImageSetName& set,
                                          const std::string& wanted, AnnotationRoom* room) {
  std::vector<ListedImage> images;
  if (layout.sets.empty() && set.set.empty()) {
    for (const auto& [name, file] : layout.xmls) {
      images.push_back({name, layout.container.Name(file)});
    }
    return images;
  }
  const auto found = layout.sets.find(wanted);
  if (found == layout.sets.end()) {
    std::string names;
    for (const auto& [name, file] : layout.sets) names += (names.empty() ? "" : ", ") + name;
    return NotFound(
        layout.container.Name(layout.root + std::string(kSetsFolder) + wanted + ".txt") +
        ": there is no such list of images" +
        (names.empty() ? "; remove :" + wanted + " to take all images"
                       : "; there are " + names + "; name one, such as " + set.path + ":" +
                             layout.sets.begin()->first));
  }
  const std::string list = layout.container.Name(found->second);
  const std::string files[] = {found->second};
  const auto see = [&](int64_t, const FileContent& content) -> Status {
    KUMO_RETURN_IF_ERROR(content.status());
    KUMO_ASSIGN_OR_RETURN(images, ImagesIn(TextIn(*content), list, room));
    return OkStatus();
  };
  KUMO_RETURN_IF_ERROR(ReadImages(layout.container, files, see));
  return images;
}

// Numbers names in the order of their first use.
class NameTable {
 public:
  int32_t NumberOf(const std::string& name) {
    const auto [found, added] = numbers_.emplace(name, static_cast<int32_t>(names_.size()));
    if (!added) return found->second;
    names_.push_back(name);
    bytes_ += static_cast<int64_t>(kTableEntryBytes + kElementBytes<std::string> + 2 * name.size());
    return found->second;
  }
  const std::vector<std::string>& names() const { return names_; }
  // Memory in use.
  int64_t bytes() const { return bytes_; }

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, int32_t> numbers_;
  int64_t bytes_ = 0;
};

AnnotatedImage Annotated(const VocAnnotation& annotation, NameTable* names) {
  AnnotatedImage image;
  image.height = annotation.height;
  image.width = annotation.width;
  for (const VocObject& object : annotation.objects) {
    image.objects.push_back({names->NumberOf(object.name), object.difficult, object.xmin,
                             object.ymin, object.xmax, object.ymax});
  }
  return image;
}

// Reads the annotations of the images, which are problems of the images if they are damaged.
Result<AnnotatedImages> Annotate(const VocLayout& layout, const std::vector<ListedImage>& listed,
                                 NameTable* names, AnnotationRoom* room) {
  AnnotatedImages part;
  part.container = layout.container;
  std::vector<std::string> files;
  for (const ListedImage& image : listed) {
    const auto xml = layout.xmls.find(image.name);
    files.push_back(xml == layout.xmls.end() ? layout.root + std::string(kAnnotationsFolder) +
                                                   image.name + std::string(kXmlEnding)
                                             : xml->second);
  }
  part.images.resize(listed.size());
  KUMO_RETURN_IF_ERROR(
      ReadImages(layout.container, files, [&](int64_t index, const FileContent& content) -> Status {
        AnnotatedImage& image = part.images[index];
        const std::string name = layout.container.Name(files[index]);
        if (content.ok()) {
          const Result<VocAnnotation> annotation = ParseVocAnnotation(*content);
          if (annotation.ok()) {
            const int64_t before = names->bytes();
            image = Annotated(*annotation, names);
            const size_t bytes =
                sizeof(AnnotatedImage) + image.objects.size() * kElementBytes<AnnotatedObject>;
            const Status fits = room->Take(static_cast<int64_t>(bytes) + names->bytes() - before);
            if (!fits.ok()) return fits.WithContext(layout.container.Name(""));
          } else {
            image.problem = annotation.status().WithContext(name);
          }
        } else if (content.status().code() == StatusCode::kNotFound) {
          image.problem =
              NotFound(name + ": there are no such annotations (" + listed[index].where + ")");
        } else {
          image.problem = content.status().WithContext(name);
        }
        return OkStatus();
      }));
  for (size_t i = 0; i < listed.size(); ++i) {
    const auto image = layout.images.find(listed[i].name);
    if (image != layout.images.end()) {
      part.images[i].file = image->second;
      continue;
    }
    part.images[i].file = layout.root + std::string(kImagesFolder) + listed[i].name + ".jpg";
    if (part.images[i].problem.ok()) {
      part.images[i].problem =
          NotFound(layout.container.Name(part.images[i].file) +
                   ": there is no such image, nor with .jpeg or .png (" + listed[i].where + ")");
    }
  }
  return part;
}

// Classes are numbered in the order of their names.
void SortNames(DetectionSet* set) {
  std::vector<std::string> sorted = set->names;
  std::ranges::sort(sorted);
  std::vector<int32_t> number;
  for (const std::string& name : set->names) {
    number.push_back(static_cast<int32_t>(std::ranges::lower_bound(sorted, name) - sorted.begin()));
  }
  for (AnnotatedImages& part : set->parts) {
    for (AnnotatedImage& image : part.images) {
      for (AnnotatedObject& object : image.objects) object.name = number[object.name];
    }
  }
  set->names = std::move(sorted);
}

Result<DetectionSet> FindObjects(const ReaderRequest& request) {
  DetectionSet set;
  set.numbers_pixels = true;
  // A set that is split is the training set.
  const bool training = request.part == DataPart::kTraining || request.split_share > 0;
  NameTable names;
  AnnotationRoom room(request.room);
  std::vector<ImageSetName> wanted = SplitImageSets(request.images);
  int64_t rest = request.limit > 0 ? request.limit : INT64_MAX;
  for (ImageSetName& one : wanted) {
    if (one.path.empty()) {
      return InvalidArgument(request.images + ": has an empty path; write PATH:SET,PATH:SET");
    }
    KUMO_ASSIGN_OR_RETURN(const VocLayout layout, FindVocLayout(one.path));
    const std::string name = !one.set.empty() ? one.set : training ? "trainval" : "test";
    KUMO_ASSIGN_OR_RETURN(std::vector<ListedImage> listed, ImagesOf(layout, one, name, &room));
    if (!layout.sets.empty()) one.set = name;
    if (std::ssize(listed) > rest) listed.resize(static_cast<size_t>(rest));
    rest -= std::ssize(listed);
    if (listed.empty()) continue;
    KUMO_ASSIGN_OR_RETURN(AnnotatedImages part, Annotate(layout, listed, &names, &room));
    set.parts.push_back(std::move(part));
  }
  set.name = JoinImageSets(wanted);
  set.names = names.names();
  SortNames(&set);
  return set;
}

}  // namespace

Result<std::unique_ptr<Dataset>> OpenVoc(const ReaderRequest& request) {
  KUMO_ASSIGN_OR_RETURN(DetectionSet set, FindObjects(request));
  return OpenDetectionSet(std::move(set), request);
}

Result<DatasetExtents> MeasureVoc(const ReaderRequest& request) {
  KUMO_ASSIGN_OR_RETURN(DetectionSet set, FindObjects(request));
  return MeasureDetectionSet(std::move(set), request);
}

}  // namespace kumo
