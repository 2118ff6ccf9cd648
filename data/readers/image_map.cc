#include "common/base/text.h"
#include "data/readers/all.h"

#include <string>
#include <string_view>
#include <utility>

#include "common/base/file.h"
#include "data/readers/byte_source.h"
#include "data/readers/image_set.h"

namespace kumo {
namespace {

constexpr uint64_t kMaxMapBytes = uint64_t{4} << 30;
constexpr std::string_view kInArchive = "@/";

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

// The container of the images according to the first path: an archive, or any folders.
Result<ImageContainer> ContainerOf(const std::string& folder, const std::string& first) {
  const std::string whole = first.starts_with('/') ? first : JoinPath(folder, first);
  const Result<ImageContainer> found = FindContainer(whole);
  // The path of a plain file leads "into" that file, with nothing inside.
  if (!found.ok() || !found->archive || found->inside.empty()) return ImageContainer{};
  return ImageContainer{found->path, true, ""};
}

// The container's name for a path of the file.
Result<std::string> NameIn(const ImageContainer& container, const std::string& folder,
                           const std::string& path) {
  const std::string whole = path.starts_with('/') ? path : JoinPath(folder, path);
  if (!container.archive) return whole;
  if (whole.starts_with(container.path + "/")) return whole.substr(container.path.size() + 1);
  return InvalidArgument("is not in " + container.path +
                         " like the first image; use images of one archive only");
}

Result<ImageSet> SamplesInMap(const ReaderRequest& request) {
  PosixFileSystem files;
  KUMO_ASSIGN_OR_RETURN(const std::string map, ReadWholeFile(files, request.images, kMaxMapBytes));
  const std::string folder = DirectoryOf(request.images);
  ImageSet set;
  set.name = request.images;
  std::string_view rest = map;
  if (rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
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
    std::string path(line->path);
    if (const size_t at = path.find(kInArchive); at != path.npos) path.erase(at, 1);
    if (set.files.empty()) {
      KUMO_ASSIGN_OR_RETURN(set.container, ContainerOf(folder, path));
    }
    const Result<std::string> name = NameIn(set.container, folder, path);
    if (!name.ok()) return InvalidArgument(where + path + " " + name.status().message());
    set.files.push_back(*name);
    set.labels.push_back(line->label);
  }
  if (set.files.empty()) return InvalidArgument(request.images + ": lists no images");
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
