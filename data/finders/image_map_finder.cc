#include "data/finders/finders.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "common/base/file.h"
#include "common/base/text.h"
#include "data/readers/image_files.h"
#include "data/readers/listed_paths.h"

namespace kumo {
namespace {

constexpr uint64_t kLongestMap = uint64_t{4} << 30;

// A line of an image map: a path, a tab and a class.
struct FoundMapLine {
  std::string path;
  int label = 0;
};

std::optional<FoundMapLine> MapLineIn(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  const size_t tab = line.rfind('\t');
  if (tab == line.npos || !IsImageName(line.substr(0, tab))) return std::nullopt;
  const std::optional<int> label = ParseNumber<int>(line.substr(tab + 1));
  if (!label || *label < 0) return std::nullopt;
  return FoundMapLine{std::string(line.substr(0, tab)), *label};
}

}  // namespace

bool IsImageMap(std::string_view start) {
  return MapLineIn(start.substr(0, start.find('\n'))).has_value();
}

Result<FoundDataset> FindImageMap(const std::string& folder,
                                  const std::vector<std::string>& names) {
  FoundDataset found;
  Experiment::Data& data = found.data;
  data.reader = DataReader::kImageMap;
  data.directory = folder;
  std::tie(data.train_images, data.validation_images) = PartsOf(names);
  const std::string map = JoinPath(folder, data.train_images);
  PosixFileSystem files;
  KUMO_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(files, map, kLongestMap));
  ListedPaths paths(folder);
  std::vector<std::string> images;
  data.classes = 2;
  std::string_view rest = WithoutByteOrderMark(text);
  for (int64_t number = 1; !rest.empty(); ++number) {
    const std::optional<FoundMapLine> line = MapLineIn(TakeLine(&rest));
    if (!line) continue;  // the reader names it
    if (line->label >= kMostDataClasses) {
      return InvalidArgument(map + ":" + std::to_string(number) + ": class " +
                             std::to_string(line->label) + " is not below " +
                             std::to_string(kMostDataClasses) +
                             ", the limit of data.classes; number the classes from 0");
    }
    data.classes = std::max(data.classes, line->label + 1);
    Result<std::string> image = paths.Take(line->path);
    if (!image.ok()) return image.status().WithContext(map);
    images.push_back(*std::move(image));
  }
  found.form = "an image map of " + std::to_string(data.classes) + " classes";
  const Result<ImageSizes> sizes = SizesOf(paths.container(), images);
  if (!sizes.ok()) return sizes.status().WithContext(map);
  SetImageSize(*sizes, !LowerCase(paths.container().path).ends_with("gz"), &data);
  return found;
}

}  // namespace kumo
