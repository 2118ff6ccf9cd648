#include "data/dataset_finder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "common/base/file.h"
#include "common/base/text.h"
#include "data/mask_finder.h"
#include "data/open_datasets.h"
#include "data/readers/all.h"
#include "data/readers/byte_source.h"
#include "data/readers/image_files.h"
#include "data/readers/listed_paths.h"
#include "data/samples/dataset.h"
#include "data/table_finder.h"

namespace kumo {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLookedAt = 64 << 10;        // bytes of a file
constexpr int64_t kDetectionSide = 300;       // images with objects are scaled to, as by SSD300
constexpr int kMostClasses = 1'000'000;       // data.classes'
constexpr int64_t kMostCountedClasses = 100;  // labels above are numbers
constexpr uint64_t kLongestMap = uint64_t{4} << 30;
constexpr size_t kNamedFolders = 8;  // in a message
constexpr int kMostFoldersAround = 16;
constexpr char kNoTable[] = "a CSV file is not taken: ";
constexpr char kForms[] =
    "folders of images (.jpg, .png), one per class, also in a .zip or .tar; Pascal VOC's layout; "
    "folders of images and masks; CSV files; image maps; IDX files; CIFAR's binary files; CNTK's "
    "text format; a text";

enum class FileForm { kOther, kIdxImages, kIdxLabels, kCtf, kMap, kText };

bool IsArchiveName(const std::string& name) {
  const std::string lower = LowerCase(name);
  return std::ranges::any_of(std::initializer_list<const char*>{".zip", ".tar", ".tar.gz", ".tgz"},
                             [&](const char* ending) { return lower.ends_with(ending); });
}

bool IsTableName(const std::string& name) { return LowerCase(name).ends_with(".csv"); }

bool IsTextName(const std::string& name) {
  const std::string lower = LowerCase(name);
  return lower.ends_with(".txt") || lower.ends_with(".txt.gz") || lower.ends_with(".text");
}

// Names that are not hidden, sorted; no links to folders, which may lead into a circle.
std::vector<std::string> NamesIn(const std::string& folder, bool folders) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code unknown;
    const bool is = folders ? it->is_directory(unknown) && !it->is_symlink(unknown)
                            : it->is_regular_file(unknown);
    const std::string name = it->path().filename().string();
    if (is && !name.starts_with('.')) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

// The first bytes, without a byte order mark.
Result<std::string> StartOf(const std::string& path) {
  KUMO_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path));
  std::string start(kLookedAt, '\0');
  KUMO_ASSIGN_OR_RETURN(
      const size_t size,
      source.Read(std::span(reinterpret_cast<uint8_t*>(start.data()), start.size())));
  start.resize(size);
  return std::string(WithoutByteOrderMark(start));
}

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

FileForm FormOf(const std::string& path) {
  const Result<std::string> start = StartOf(path);
  if (!start.ok() || start->empty()) return FileForm::kOther;
  if (start->starts_with(std::string_view("\0\0\x08\x03", 4))) return FileForm::kIdxImages;
  if (start->starts_with(std::string_view("\0\0\x08\x01", 4))) return FileForm::kIdxLabels;
  if (start->find('\0') != std::string::npos) return FileForm::kOther;
  if (MapLineIn(std::string_view(*start).substr(0, start->find('\n')))) return FileForm::kMap;
  const size_t mark = start->find_first_not_of("0123456789 \t\r\n");
  return mark != std::string::npos && (*start)[mark] == '|' ? FileForm::kCtf : FileForm::kText;
}

// --- Images.

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

// With the size of SSD300's images and its augmentation.
Result<FoundDataset> FindVoc(const std::string& path, const std::string& directory,
                             const std::string& name, const std::set<std::string>& sets) {
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
  return found;
}

// The first folders of the files' paths.
std::set<std::string> TopFolders(const std::vector<std::string>& files) {
  std::set<std::string> tops;
  for (const std::string& file : files) {
    if (const size_t slash = file.find('/'); slash != file.npos) tops.insert(file.substr(0, slash));
  }
  return tops;
}

// The single folder around folders of images, as archives often have; none if there is another
// layout, or if the folder is a set by its name.
std::optional<std::string> FolderAround(const std::vector<std::string>& images) {
  const std::set<std::string> tops = TopFolders(images);
  if (tops.size() != 1 || PartIn(*tops.begin()) == NamedPart::kTraining) return std::nullopt;
  const bool deeper = std::ranges::any_of(
      images, [](const std::string& file) { return std::ranges::count(file, '/') > 1; });
  return deeper ? std::optional(*tops.begin()) : std::nullopt;
}

// The files below a folder, by their paths from there.
std::vector<std::string> FilesBelow(const std::string& folder, std::vector<std::string> files) {
  const std::string start = folder + "/";
  std::erase_if(files, [&](const std::string& file) { return !file.starts_with(start); });
  for (std::string& file : files) file.erase(0, start.size());
  return files;
}

// A folder, perhaps in an archive, that holds folders of classes, or two such sets.
Result<FoundDataset> FindImages(std::string path, const std::string& directory, std::string name) {
  const std::string whole = path;
  KUMO_ASSIGN_OR_RETURN(ImageContainer container, FindContainer(path));
  KUMO_ASSIGN_OR_RETURN(ImageListing listing, ListImages(container));
  for (int around = 0;; ++around) {
    if (const auto sets = VocSetsIn(listing)) return FindVoc(path, directory, name, *sets);
    KUMO_ASSIGN_OR_RETURN(auto masked, FindMasks(path, directory, name, listing));
    if (masked) return *std::move(masked);
    const std::optional<std::string> folder = FolderAround(listing.images);
    if (!folder) break;
    if (around == kMostFoldersAround) {
      return InvalidArgument(whole + ": its images lie below more than " +
                             std::to_string(kMostFoldersAround) +
                             " folders, one in the other; name the folder that holds the folders "
                             "of the classes");
    }
    path = JoinPath(path, *folder);
    name = JoinPath(name, *folder);
    listing.images = FilesBelow(*folder, std::move(listing.images));
    listing.others = FilesBelow(*folder, std::move(listing.others));
  }
  KUMO_ASSIGN_OR_RETURN(container, FindContainer(path));
  std::vector<std::string> files = std::move(listing.images);
  const std::set<std::string> tops = TopFolders(files);
  FoundDataset found;
  found.data.reader = DataReader::kImageFolder;
  found.data.directory = directory;
  found.data.train_images = name;
  found.data.validation_images = "";
  std::string train, validation;
  for (const std::string& top : tops) {
    // A class may have such a name, too; its images lie in no further folder.
    if (PartIn(top) == NamedPart::kTraining && train.empty() &&
        !TopFolders(FilesBelow(top, files)).empty()) {
      train = top;
    }
    if (PartIn(top) == NamedPart::kValidation && validation.empty()) validation = top;
  }
  if (!train.empty()) {
    found.data.train_images = JoinPath(name, train);
    if (!validation.empty()) found.data.validation_images = JoinPath(name, validation);
    files = FilesBelow(train, std::move(files));
    KUMO_ASSIGN_OR_RETURN(container, FindContainer(JoinPath(path, train)));
  }
  const std::set<std::string> classes = TopFolders(files);
  if (classes.size() < 2) {
    return InvalidArgument(container.Name("") +
                           ": has images of one class only; put the images of each class into a "
                           "folder of its own");
  }
  found.data.classes = static_cast<int>(classes.size());
  found.form = "image folders of " + std::to_string(classes.size()) + " classes";
  KUMO_ASSIGN_OR_RETURN(const ImageSizes sizes, SizesOf(container, files));
  const std::string lower = LowerCase(container.path);
  SetImageSize(sizes, !container.archive || !(lower.ends_with("gz")), &found.data);
  return found;
}

// --- Files.

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

FoundDataset FindCifar(const std::string& folder, const std::vector<std::string>& names) {
  const auto has = [&](const char* name) { return std::ranges::binary_search(names, name); };
  const bool fine = !has("data_batch_1.bin");
  FoundDataset found;
  found.data.reader = DataReader::kCifar;
  found.data.directory = fs::path(folder).parent_path().string();
  const std::string name = fs::path(folder).filename().string();
  found.data.train_images = fine ? JoinPath(name, "train.bin") : name;
  const char* const test = fine ? "test.bin" : "test_batch.bin";
  found.data.validation_images = has(test) ? JoinPath(name, test) : "";
  found.data.classes = fine ? 100 : 10;
  found.data.flip = true;
  found.data.crop_pad = 4;
  found.form = fine ? "CIFAR-100" : "CIFAR-10";
  return found;
}

// A stream of CNTK's text format in the first sequence.
struct NamedStream {
  std::string name;
  int64_t values = 0;
  bool sparse = false;
};

// Adds the streams of a line that begins with '|', each name once.
void AddStreams(std::string_view line, std::vector<NamedStream>* streams) {
  while (!line.empty()) {
    line.remove_prefix(1);  // '|'
    const std::string_view stream = line.substr(0, line.find('|'));
    line.remove_prefix(stream.size());
    const std::string_view name = stream.substr(0, stream.find_first_of(" \t\r"));
    if (name.empty() || name.starts_with('#')) continue;
    if (std::ranges::find(*streams, name, &NamedStream::name) != streams->end()) continue;
    int64_t values = 0;
    for (size_t at = name.size(); at < stream.size();) {
      at = stream.find_first_not_of(" \t\r", at);
      if (at == stream.npos) break;
      ++values;
      at = std::min(stream.find_first_of(" \t\r", at), stream.size());
    }
    streams->push_back({std::string(name), values, stream.find(':') != stream.npos});
  }
}

// The streams of the first sequence: of the lines until two streams are known, and of those behind
// them with the same number.
std::vector<NamedStream> StreamsOf(std::string_view start) {
  constexpr size_t kNeeded = 2;  // numbers and labels
  std::vector<NamedStream> streams;
  std::string_view sequence;
  while (!start.empty()) {
    const std::string_view line = start.substr(0, start.find('\n'));
    start.remove_prefix(std::min(line.size() + 1, start.size()));
    const std::string_view number = line.substr(0, line.find_first_not_of("0123456789"));
    if (streams.size() >= kNeeded && (number.empty() || number != sequence)) break;
    sequence = number;
    AddStreams(line.substr(std::min(line.find('|'), line.size())), &streams);
  }
  return streams;
}

// The number of classes that labels in numbers stand for; 0 if they are numbers.
int ClassesOfNumbers(const Dataset& dataset) {
  const int64_t width = dataset.fields()[kLabel].numbers();
  bool one_hot = width > 1, classes = width == 1;
  std::set<float> seen;
  (void)ForEachSample(dataset, dataset.size(), [&](const Sample& sample) {
    std::vector<float> label(width);
    std::memcpy(label.data(), sample.field(kLabel).data(), width * sizeof(float));
    one_hot &= std::ranges::count(label, 1.0f) == 1 && std::ranges::count(label, 0.0f) == width - 1;
    const float number = label[0];
    classes &= number >= 0 && number < kMostCountedClasses && number == std::floor(number);
    if (classes) seen.insert(number);
  });
  if (one_hot) return static_cast<int>(width);
  // Counts and ages are whole too, but leave gaps.
  const bool dense =
      classes && seen.size() > 1 && static_cast<int64_t>(*seen.rbegin()) + 1 == std::ssize(seen);
  return dense ? static_cast<int>(seen.size()) : 0;
}

// The names of the training and of the validation file; the second one may be "".
std::pair<std::string, std::string> PartsOf(const std::vector<std::string>& names) {
  std::string train, validation;
  for (const std::string& name : names) {
    std::string& file = PartIn(name) == NamedPart::kValidation ? validation : train;
    if (file.empty()) file = name;
  }
  if (train.empty()) std::swap(train, validation);
  return {train, validation};
}

Result<FoundDataset> FindCtf(const std::string& folder, const std::vector<std::string>& names) {
  FoundDataset found;
  Experiment::Data& data = found.data;
  data.reader = DataReader::kCtf;
  data.directory = folder;
  std::tie(data.train_images, data.validation_images) = PartsOf(names);
  const std::string path = JoinPath(folder, data.train_images);
  KUMO_ASSIGN_OR_RETURN(const std::string start, StartOf(path));
  const auto streams = StreamsOf(start);
  if (streams.size() < 2) {
    return InvalidArgument(path + ":1: has " + Counted(std::ssize(streams), "stream", "streams") +
                           ", but needs one of numbers and one of labels");
  }
  const auto longer = std::ranges::max_element(streams, {}, &NamedStream::values);
  const auto named = std::ranges::find(streams, "features", &NamedStream::name);
  data.ctf_features = named == streams.end() ? longer->name : named->name;
  const auto label = std::ranges::find_if(
      streams, [&](const auto& stream) { return stream.name != data.ctf_features; });
  data.ctf_labels = label->name;
  ReaderRequest request;
  request.images = path;
  request.image_stream = data.ctf_features;
  request.label_stream = data.ctf_labels;
  // Sparse labels name a class, and their largest one gives the number of classes.
  if (label->sparse) request.classes = kMostClasses;
  KUMO_ASSIGN_OR_RETURN(const auto dataset, OpenCtf(request));
  data.classes = label->sparse ? std::max(2, std::ranges::max(dataset->SampleClasses()) + 1)
                               : ClassesOfNumbers(*dataset);
  found.form =
      "CNTK's text format, " + std::to_string(dataset->fields()[kImage].numbers()) +
      " numbers a sample, " +
      (data.classes > 0 ? std::to_string(data.classes) + " classes" : "labels are numbers");
  return found;
}

Result<FoundDataset> FindMap(const std::string& folder, const std::vector<std::string>& names) {
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
    if (line->label >= kMostClasses) {
      return InvalidArgument(map + ":" + std::to_string(number) + ": class " +
                             std::to_string(line->label) + " is not below " +
                             std::to_string(kMostClasses) +
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

FoundDataset FindText(const std::string& folder, const std::string& name) {
  FoundDataset found;
  found.data.reader = DataReader::kText;
  found.data.directory = folder;
  found.data.text = name;
  found.form = "a text";
  return found;
}

// `names` are files of the folder. None if no form is known, or if it is a text, whose form has no
// mark.
Result<std::optional<FoundDataset>> FindFiles(const std::string& folder,
                                              const std::vector<std::string>& names) {
  const auto has = [&](const char* name) { return std::ranges::binary_search(names, name); };
  if (has("data_batch_1.bin") || (has("train.bin") && has("test.bin"))) {
    return std::optional(FindCifar(folder, names));
  }
  std::vector<std::string> images, labels, ctf, maps;
  for (const std::string& name : names) {
    switch (FormOf(JoinPath(folder, name))) {
      case FileForm::kIdxImages:
        images.push_back(name);
        break;
      case FileForm::kIdxLabels:
        labels.push_back(name);
        break;
      case FileForm::kCtf:
        ctf.push_back(name);
        break;
      case FileForm::kMap:
        maps.push_back(name);
        break;
      case FileForm::kText:
      case FileForm::kOther:
        break;
    }
  }
  if (!images.empty()) {
    KUMO_ASSIGN_OR_RETURN(FoundDataset found, FindIdx(folder, images, labels));
    return std::optional(std::move(found));
  }
  if (!ctf.empty()) {
    KUMO_ASSIGN_OR_RETURN(FoundDataset found, FindCtf(folder, ctf));
    return std::optional(std::move(found));
  }
  if (!maps.empty()) {
    KUMO_ASSIGN_OR_RETURN(FoundDataset found, FindMap(folder, maps));
    return std::optional(std::move(found));
  }
  return std::optional<FoundDataset>();
}

// folders: candidates in `path`, for the message.
Status NotFoundIn(const std::string& path, const std::vector<std::string>& folders = {}) {
  std::string text;
  for (size_t i = 0; i < folders.size() && i < kNamedFolders; ++i) {
    text += (i == 0 ? "" : ", ") + folders[i];
  }
  return InvalidArgument(path + ": no data set is recognised in it; Kumo reads " + kForms +
                         (text.empty() ? "" : "; or name one of its folders: " + text));
}

std::vector<std::string> NamesThat(const std::vector<std::string>& names,
                                   bool (*fit)(const std::string& name)) {
  std::vector<std::string> fitting;
  std::ranges::copy_if(names, std::back_inserter(fitting), fit);
  return fitting;
}

// A table that lists images is taken before these images alone, another one behind them.
Result<FoundDataset> TableOrImages(Result<FoundDataset> table, Result<FoundDataset> images) {
  if (!images.ok()) return table;
  if (!table.ok()) {
    images->notes.push_back(kNoTable + table.status().message());
  } else if (table->input == kImageField) {
    table->notes.push_back("without " + table->data.train_images + " the set would be " +
                           images->form +
                           "; to read it like this, move that file out of the folder");
    return table;
  }
  return images;
}

// The only archive, or text, or folder, as mnist/ below a data directory.
Result<FoundDataset> FindAlone(const std::string& path, const std::string& folder,
                               const std::vector<std::string>& files, bool only_archives) {
  const std::vector<std::string> archives = NamesThat(files, IsArchiveName);
  if (archives.size() == 1) {
    return FindImages(JoinPath(folder, archives[0]), folder, archives[0]);
  }
  const std::vector<std::string> folders = NamesIn(folder, true);
  if (only_archives) return NotFoundIn(path, folders);
  const std::vector<std::string> texts = NamesThat(files, IsTextName);
  if (texts.size() == 1) return FindText(folder, texts.front());
  if (folders.size() == 1) return FindDataset(JoinPath(folder, folders[0]));
  return NotFoundIn(path, folders);
}

// files: all of the folder, which have no form by their bytes.
Result<FoundDataset> FindByNames(const std::string& path, const std::string& folder,
                                 const std::vector<std::string>& files) {
  KUMO_ASSIGN_OR_RETURN(const ImageContainer container, FindContainer(folder));
  KUMO_ASSIGN_OR_RETURN(const ImageListing listing, ListImages(container));
  const auto find_images = [&] {
    return FindImages(folder, fs::path(folder).parent_path().string(),
                      fs::path(folder).filename().string());
  };
  const std::vector<std::string> tables = NamesThat(files, IsTableName);
  if (tables.empty()) {
    return listing.images.empty() ? FindAlone(path, folder, files, false) : find_images();
  }
  auto table = FindTable(folder, tables);
  if (!listing.images.empty()) return TableOrImages(std::move(table), find_images());
  const bool for_training = std::ranges::find(tables, NamedPart::kTraining, PartIn) != tables.end();
  if (table.ok()) {
    for (const std::vector<std::string>& alone :
         {NamesThat(files, IsArchiveName), NamesThat(files, IsTextName)}) {
      if (for_training || alone.size() != 1) continue;
      table->notes.push_back(alone[0] + " beside " + table->data.train_images +
                             " is not read; to take it instead, name it");
    }
    return table;
  }
  // A text beside a training set with a mistake is not the data.
  auto other = FindAlone(path, folder, files, /*only_archives=*/for_training);
  if (!other.ok()) return table;
  other->notes.push_back(kNoTable + table.status().message());
  return other;
}

}  // namespace

Result<FoundDataset> FindDataset(const std::string& path) {
  std::error_code error;
  std::string whole = NormalPath(fs::absolute(path, error).string());
  while (whole.size() > 1 && whole.ends_with('/')) whole.pop_back();
  if (!fs::exists(whole, error)) return NotFound(path + ": no such file or folder");
  const std::string parent = fs::path(whole).parent_path().string();
  const std::string name = fs::path(whole).filename().string();
  if (!fs::is_directory(whole, error)) {
    if (IsArchiveName(name)) return FindImages(whole, parent, name);
    // IDX files come in pairs: all files of the folder are looked at.
    const FileForm form = FormOf(whole);
    if (form == FileForm::kText) {
      return IsTableName(name) ? FindTable(parent, {name}) : FindText(parent, name);
    }
    const bool idx = form == FileForm::kIdxImages;
    KUMO_ASSIGN_OR_RETURN(auto found, FindFiles(parent, idx ? NamesIn(parent, false)
                                                            : std::vector<std::string>{name}));
    if (found) return *std::move(found);
    return NotFoundIn(path);
  }
  const std::vector<std::string> files = NamesIn(whole, false);
  KUMO_ASSIGN_OR_RETURN(auto found, FindFiles(whole, files));
  if (found) return *std::move(found);
  return FindByNames(path, whole, files);
}

}  // namespace kumo
