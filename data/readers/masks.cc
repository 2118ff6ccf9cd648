#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/job/fields.h"
#include "data/readers/all.h"
#include "data/readers/class_list.h"
#include "data/readers/image_files.h"
#include "data/readers/image_set.h"
#include "data/readers/table_set.h"

namespace kumo {
namespace {

constexpr size_t kNamedMasks = 3;  // in a note

// The mask of each image, by the names of both without their endings.
Result<TableSet> PairMasks(const ReaderRequest& request) {
  TableSet set;
  set.name = request.images;
  FileColumn images{kImageField, FieldKind::kPicture, {}, {}};
  FileColumn masks{kMaskField, FieldKind::kMask, {}, {}};
  KUMO_ASSIGN_OR_RETURN(images.container, FindContainer(request.images));
  KUMO_ASSIGN_OR_RETURN(masks.container, FindContainer(request.labels));
  KUMO_ASSIGN_OR_RETURN(ImageListing listing, ListImages(images.container));
  KUMO_ASSIGN_OR_RETURN(const ImageListing of_masks, ListImages(masks.container));
  KUMO_ASSIGN_OR_RETURN(set.notes.left_out, TakeLeftOut(images.container, &listing, request));
  if (listing.images.empty()) {
    return InvalidArgument(request.images + ": contains no images " + kImageEndings +
                           "; name their folder");
  }
  std::map<std::string, std::string> by_name;
  for (const std::string& file : of_masks.images) {
    const auto [place, first] = by_name.emplace(WithoutEnding(file), file);
    if (!first && file.ends_with(".png")) place->second = file;
  }
  std::map<std::string, std::string> taken;  // images, by their names
  for (std::string& file : listing.images) {
    const std::string name = WithoutEnding(file);
    const auto [before, first] = taken.emplace(name, file);
    if (!first) {
      return InvalidArgument(images.container.Name(file) + ": has the name of " + before->second +
                             ", so that both have one mask; rename one of them");
    }
    const auto mask = by_name.find(name);
    if (mask == by_name.end()) {
      const std::string wanted = name + ".png";
      set.damaged.emplace(std::ssize(images.files),
                          NotFound(masks.container.Name(wanted) + ": there is no such mask (for " +
                                   images.container.Name(file) +
                                   "); if masks have other names than images, list both in a "
                                   "table (data.reader = table)"));
      masks.files.push_back(wanted);
    } else {
      masks.files.push_back(mask->second);
    }
    images.files.push_back(std::move(file));
  }
  std::vector<std::string> alone;
  int64_t without_image = 0;
  for (const auto& [name, file] : by_name) {
    if (taken.contains(name)) continue;
    if (++without_image <= static_cast<int64_t>(kNamedMasks)) alone.push_back(file);
  }
  if (without_image > 0) {
    set.notes.remarks.push_back(
        Counted(without_image, "mask has", "masks have") + " no image: left out (" + Join(alone) +
        (without_image > static_cast<int64_t>(kNamedMasks) ? ", ...)" : ")"));
  }
  set.files.push_back(std::move(images));
  set.files.push_back(std::move(masks));
  if (!request.class_list.empty()) {
    KUMO_ASSIGN_OR_RETURN(set.class_names, ReadClassList(request.class_list));
    KUMO_RETURN_IF_ERROR(CheckListed(request.class_list, set.class_names, request.classes));
  }
  set.Limit(request.limit);
  return set;
}

}  // namespace

Result<std::unique_ptr<Dataset>> OpenMasks(const ReaderRequest& request) {
  KUMO_ASSIGN_OR_RETURN(TableSet set, PairMasks(request));
  return OpenTableSet(std::move(set), request);
}

Result<DatasetExtents> MeasureMasks(const ReaderRequest& request) {
  KUMO_ASSIGN_OR_RETURN(TableSet set, PairMasks(request));
  return MeasureTableSet(std::move(set), request);
}

}  // namespace kumo
