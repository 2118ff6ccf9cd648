#include "data/finders/finders.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "common/base/file.h"
#include "data/readers/all.h"
#include "data/samples/dataset.h"

namespace kumo {
namespace {

// The name that differs from an images' file by what it holds; "" if there is none.
std::string LabelsFor(const std::string& images, const std::vector<std::string>& labels) {
  std::string name = images;
  for (const auto& [from, to] : {std::pair("images", "labels"), std::pair("idx3", "idx1")}) {
    if (const size_t at = name.find(from); at != name.npos) name.replace(at, strlen(from), to);
  }
  return std::ranges::find(labels, name) == labels.end() ? "" : name;
}

int ClassesOf(const Dataset& dataset) {
  int32_t most = 0;
  (void)ForEachSample(dataset, dataset.size(), [&](const Sample& sample) {
    int32_t label = 0;
    std::memcpy(&label, sample.field(kLabel).data(), sizeof label);
    most = std::max(most, label);
  });
  return std::max(2, static_cast<int>(most) + 1);
}

}  // namespace

bool IsIdxImages(std::string_view start) {
  return start.starts_with(std::string_view("\0\0\x08\x03", 4));
}

bool IsIdxLabels(std::string_view start) {
  return start.starts_with(std::string_view("\0\0\x08\x01", 4));
}

Result<FoundDataset> FindIdx(const std::string& folder, const std::vector<std::string>& images,
                             const std::vector<std::string>& labels) {
  FoundDataset found;
  Experiment::Data& data = found.data;
  data.directory = folder;
  data.train_images = data.validation_images = data.validation_labels = "";
  for (const std::string& name : images) {
    const std::string of = LabelsFor(name, labels);
    if (of.empty()) {
      return InvalidArgument(JoinPath(folder, name) +
                             ": has no file of labels beside it (labels instead of images, idx1 "
                             "instead of idx3 in its name)");
    }
    const bool validates = PartIn(name) == NamedPart::kValidation;
    std::string& file = validates ? data.validation_images : data.train_images;
    if (!file.empty()) continue;
    file = name;
    (validates ? data.validation_labels : data.train_labels) = of;
  }
  if (data.train_images.empty()) {
    std::swap(data.train_images, data.validation_images);
    std::swap(data.train_labels, data.validation_labels);
  }
  ReaderRequest request{JoinPath(folder, data.train_images), JoinPath(folder, data.train_labels)};
  request.classes = 256;
  KUMO_ASSIGN_OR_RETURN(const auto dataset, OpenIdx(request));
  data.classes = ClassesOf(*dataset);
  found.form = "IDX files of " + std::to_string(data.classes) + " classes";
  return found;
}

}  // namespace kumo
