#include "data/readers/all.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "data/readers/class_list.h"
#include "data/readers/image_set.h"

namespace kumo {
namespace {

constexpr size_t kClassesInMessage = 12;  // in a message

std::string Listed(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < kClassesInMessage; ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  return names.size() > kClassesInMessage ? text + ", ..." : text;
}

// The folders at the top that contain no images; class_names is sorted.
std::vector<std::string> FoldersWithoutImages(const ImageListing& listing,
                                              const std::vector<std::string>& class_names) {
  std::vector<std::string> names;
  std::ranges::set_difference(listing.folders, class_names, std::back_inserter(names));
  return names;
}

Result<ImageSet> FindSamples(const ReaderRequest& request) {
  ImageSet set;
  set.name = request.images;
  KUMO_ASSIGN_OR_RETURN(set.container, FindContainer(request.images));
  KUMO_ASSIGN_OR_RETURN(ImageListing listing, ListImages(set.container));
  LeftOut& left_out = set.notes.left_out;
  KUMO_ASSIGN_OR_RETURN(left_out, TakeLeftOut(set.container, &listing, request));
  const std::vector<std::string>& files = listing.images;
  if (files.empty()) {
    return InvalidArgument(request.images + ": contains no images " + kImageEndings +
                           "; name the folder that contains the class folders" +
                           (left_out.empty() ? "" : " (" + left_out.Text() + ")"));
  }
  struct Sample {
    int64_t place;  // among the images of its class
    int32_t label;
    const std::string* file;
  };
  std::vector<Sample> samples;
  // The files of a class are adjacent in the sorted list, except for names that continue with a
  // byte below '/'; hence the search.
  for (const std::string& file : files) {
    const size_t slash = file.find('/');
    if (slash == file.npos) {
      return InvalidArgument(set.container.Name(file) +
                             ": lies beside the class folders; move it into the folder of its "
                             "class, or name the folder that contains the class folders");
    }
    set.class_names.push_back(file.substr(0, slash));
  }
  std::ranges::sort(set.class_names);
  set.class_names.erase(std::unique(set.class_names.begin(), set.class_names.end()),
                        set.class_names.end());
  left_out.empty_classes = FoldersWithoutImages(listing, set.class_names);
  if (!request.train_names.empty()) {
    const auto numbers = NumbersOfClasses(request.train_names);
    for (const std::string& name : set.class_names) {
      if (!numbers.contains(name)) return NotTrained(set.name, name, request.train_names);
    }
    set.class_names = request.train_names;
  }
  if (std::ssize(set.class_names) != request.classes) {
    const std::vector<std::string>& empty = left_out.empty_classes;
    return InvalidArgument(
        request.images + ": has folders of " + std::to_string(set.class_names.size()) +
        " classes (" + Listed(set.class_names) +
        "), but data.classes = " + std::to_string(request.classes) +
        (empty.empty() ? ""
                       : std::string("; no images ") + kImageEndings + " are in " + Listed(empty)) +
        "; correct data.classes or the folders");
  }
  std::vector<int64_t> places(set.class_names.size(), 0);
  for (const std::string& file : files) {
    const auto found = std::ranges::lower_bound(set.class_names, file.substr(0, file.find('/')));
    const auto label = static_cast<int32_t>(found - set.class_names.begin());
    samples.push_back({places[label]++, label, &file});
  }
  std::ranges::sort(samples, {}, [](const Sample& s) { return std::tuple(s.place, s.label); });
  if (request.limit > 0 && std::ssize(samples) > request.limit) samples.resize(request.limit);
  for (const Sample& sample : samples) {
    set.files.push_back(*sample.file);
    set.labels.push_back(sample.label);
  }
  AddRemarks(&set);
  return set;
}

}  // namespace

Result<std::unique_ptr<Dataset>> OpenImageFolder(const ReaderRequest& request) {
  KUMO_ASSIGN_OR_RETURN(ImageSet set, FindSamples(request));
  return OpenImageSet(std::move(set), request);
}

Result<DatasetExtents> MeasureImageFolder(const ReaderRequest& request) {
  KUMO_ASSIGN_OR_RETURN(const ImageSet set, FindSamples(request));
  return MeasureImageSet(set, request);
}

}  // namespace kumo
