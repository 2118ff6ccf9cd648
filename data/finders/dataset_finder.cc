#include "data/finders/dataset_finder.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "common/base/file.h"
#include "common/base/text.h"
#include "common/job/fields.h"
#include "data/finders/finders.h"
#include "data/finders/table_finder.h"
#include "data/readers/image_files.h"

namespace kumo {
namespace {

namespace fs = std::filesystem;

constexpr size_t kNamedFolders = 8;  // in a message
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

FileForm FormOf(const std::string& path) {
  const Result<std::string> start = StartOf(path);
  if (!start.ok() || start->empty()) return FileForm::kOther;
  if (IsIdxImages(*start)) return FileForm::kIdxImages;
  if (IsIdxLabels(*start)) return FileForm::kIdxLabels;
  if (start->find('\0') != std::string::npos) return FileForm::kOther;
  if (IsImageMap(*start)) return FileForm::kMap;
  return IsCtf(*start) ? FileForm::kCtf : FileForm::kText;
}

// `names` are files of the folder. None if no form is known, or if it is a text, whose form has no
// mark.
Result<std::optional<FoundDataset>> FindFiles(const std::string& folder,
                                              const std::vector<std::string>& names) {
  if (IsCifar(names)) return std::optional(FindCifar(folder, names));
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
    KUMO_ASSIGN_OR_RETURN(FoundDataset found, FindImageMap(folder, maps));
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
    return FindImageFolder(JoinPath(folder, archives[0]), folder, archives[0]);
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
    return FindImageFolder(folder, fs::path(folder).parent_path().string(),
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
    if (IsArchiveName(name)) return FindImageFolder(whole, parent, name);
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
