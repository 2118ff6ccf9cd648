#include "common/base/text.h"
#include "data/readers/all.h"

#include <string>
#include <string_view>
#include <utility>

#include "common/base/file.h"
#include "data/readers/image_set.h"
#include "data/readers/listed_paths.h"

namespace kumo {
namespace {

constexpr uint64_t kMaxMapBytes = uint64_t{4} << 30;

struct MapLine {
  std::string_view path;
  int32_t label = 0;
};

// Parses a line; errors describe the fault only.
Result<MapLine> Parse(std::string_view text, int classes) {
  const size_t tab = text.rfind('\t');
  if (tab == text.npos || tab == 0) {
    return InvalidArgument("expected an image path, a tab and a class number");
  }
  MapLine line{text.substr(0, tab)};
  const std::string_view number = text.substr(tab + 1);
  line.label = ParseNumber<int>(number).value_or(-1);
  if (line.label < 0) {
    return InvalidArgument("class \"" + std::string(number.substr(0, 40)) +
                           "\" is not a non-negative integer");
  }
  if (line.label >= classes) {
    return InvalidArgument("class " + std::to_string(line.label) + " is not below data.classes = " +
                           std::to_string(classes) + "; correct data.classes or the file");
  }
  return line;
}

Result<ImageSet> SamplesInMap(const ReaderRequest& request) {
  PosixFileSystem files;
  KUMO_ASSIGN_OR_RETURN(const std::string map, ReadWholeFile(files, request.images, kMaxMapBytes));
  ListedPaths paths(DirectoryOf(request.images));
  ImageSet set;
  set.name = request.images;
  std::string_view rest = WithoutByteOrderMark(map);
  for (int64_t number = 1; !rest.empty(); ++number) {
    const size_t end = rest.find('\n');
    std::string_view text = rest.substr(0, end);
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    const std::string where = request.images + ":" + std::to_string(number) + ": ";
    if (end == std::string_view::npos) {
      return DataLoss(where +
                      "the last line has no newline, so the file may be truncated; end it "
                      "with a newline");
    }
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (text.empty()) continue;
    const Result<MapLine> line = Parse(text, request.classes);
    if (!line.ok()) return InvalidArgument(where + line.status().message());
    Result<std::string> name = paths.Take(std::string(line->path));
    if (!name.ok()) return InvalidArgument(where + name.status().message());
    set.files.push_back(std::move(*name));
    set.labels.push_back(line->label);
  }
  if (set.files.empty()) return InvalidArgument(request.images + ": lists no images");
  set.container = paths.container();
  KUMO_RETURN_IF_ERROR(CheckArchive(set.container));
  if (request.limit > 0 && std::ssize(set.files) > request.limit) {
    set.files.resize(request.limit);
    set.labels.resize(request.limit);
  }
  AddRemarks(&set);
  return set;
}

}  // namespace

Result<std::unique_ptr<Dataset>> OpenImageMap(const ReaderRequest& request) {
  KUMO_ASSIGN_OR_RETURN(ImageSet set, SamplesInMap(request));
  return OpenImageSet(std::move(set), request);
}

Result<DatasetExtents> MeasureImageMap(const ReaderRequest& request) {
  KUMO_ASSIGN_OR_RETURN(const ImageSet set, SamplesInMap(request));
  return MeasureImageSet(set, request);
}

}  // namespace kumo
