#include "data/finders/table_finder.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "common/base/file.h"
#include "common/base/printable.h"
#include "common/base/text.h"
#include "common/job/fields.h"
#include "data/finders/table_summary.h"
#include "data/readers/image_decoder.h"
#include "data/readers/image_files.h"
#include "data/readers/listed_paths.h"
#include "data/readers/table_columns.h"

namespace kumo {
namespace {

constexpr int64_t kMostDenseClasses = 100;  // of whole numbers, unless the name is one of classes
constexpr int64_t kRowsOfAClass = 2;        // at least, on average
constexpr int64_t kLookedAtMasks = 100;
constexpr size_t kMostNumbersOfMasks = 64;
constexpr size_t kLongestListed = 60;  // in a message
constexpr size_t kNamedTableClasses = 8;
// Columns that data.columns names as first..last; fewer are listed, so that files with columns in
// another order fit.
constexpr size_t kShortestRange = 9;
constexpr std::string_view kNamesOfClasses[] = {"label",    "labels",  "class",    "classes",
                                                "category", "species", "diagnosis"};
constexpr std::string_view kNamesOfTargets[] = {"target", "targets", "y", "outcome"};
constexpr std::string_view kNamesOfRows[] = {"id", "index", "row"};

// The images that a column lists.
struct ListedImages {
  ImageContainer container;
  std::vector<std::string> files;
};

Result<ListedImages> ImagesListedIn(const TableSummary& table, const std::string& folder,
                                    size_t column) {
  ListedImages images;
  ListedPaths paths(folder);
  Status failed;
  KUMO_RETURN_IF_ERROR(ReadColumn(table.path, column, [&](const TableCell& cell) {
    Result<std::string> file = paths.Take(cell.text);
    std::error_code error;
    if (!file.ok()) {
      failed = table.Error(cell.line, "column " + QuotedPart(table.columns[column].name) + ": " +
                                          file.status().message());
    } else if (!paths.container().archive && !std::filesystem::exists(*file, error)) {
      failed = table.Error(table.columns[column], cell,
                           "does not exist in " + folder +
                               "; correct the path, which begins there, or remove the row");
    } else {
      images.files.push_back(*std::move(file));
    }
    return failed.ok();
  }));
  KUMO_RETURN_IF_ERROR(failed);
  images.container = paths.container();
  return images;
}

// True if images are PNGs whose pixels have few different numbers, as classes are.
Result<bool> AreMasks(const ListedImages& images) {
  const int64_t count = std::min<int64_t>(kLookedAtMasks, std::ssize(images.files));
  std::vector<std::string> some;
  for (int64_t i = 0; i < count; ++i) {
    some.push_back(images.files[i * std::ssize(images.files) / count]);
  }
  bool masks = true;
  std::array<bool, 256> has{};
  ImageDecoder decoder;
  KUMO_RETURN_IF_ERROR(
      ReadImages(images.container, some,
                 [&](int64_t, const Result<std::span<const uint8_t>>& content) -> Status {
                   if (!masks || !content.ok()) return OkStatus();
                   const Result<ImageHeader> header = ImageDecoder::ReadHeader(*content);
                   if (!header.ok()) return OkStatus();
                   std::vector<uint8_t> pixels(header->height * header->width);
                   masks = decoder.DecodeMaskTo(*content, *header, pixels).ok();
                   for (const uint8_t pixel : pixels) has[pixel] = true;
                   return OkStatus();
                 }));
  return masks && std::ranges::count(has, true) <= static_cast<int64_t>(kMostNumbersOfMasks);
}

bool IsClassNumber(std::string_view cell) { return ParseNumber<int64_t>(cell).has_value(); }

// Decides the use of each column.
class Recognition {
 public:
  Recognition(TableSummary table, std::string folder)
      : table_(std::move(table)), folder_(std::move(folder)), uses_(table_.columns.size()) {}

  Result<FoundDataset> Run() {
    KUMO_RETURN_IF_ERROR(FindPictures());
    if (!mask_) {
      KUMO_RETURN_IF_ERROR(FindLabel());
    }
    KUMO_RETURN_IF_ERROR(FindFeatures());
    if (!picture_ && features_.empty()) {
      return table_.Error(1, "there is no column of numbers or images beside the label " +
                                 QuotedPart(table_.columns[*label_].name) +
                                 ", so a network has no input; add one");
    }
    SetColumns();
    found_.input = picture_ ? kImageField : kFeaturesField;
    SetForm();
    return found_;
  }

  // After Run. The column of classes; "": the label is a number or a mask.
  std::string NameOfClasses() const {
    return label_ && found_.data.classes > 0 ? At(*label_).name : "";
  }
  // The classes, if they are words.
  std::optional<std::set<std::string>> WordsOfLabel() const {
    if (NameOfClasses().empty()) return std::nullopt;
    const auto& words = At(*label_).different;
    if (std::ranges::all_of(words, IsClassNumber)) return std::nullopt;
    return std::set<std::string>(words.begin(), words.end());
  }

 private:
  const TableColumn& At(size_t column) const { return table_.columns[column]; }

  // The reason why data.columns cannot name a column; "" if it can.
  std::string Unnamable(size_t column) const {
    const std::string& name = At(column).name;
    if (name.empty()) return "it has no name";
    if (std::ranges::count(table_.columns, name, &TableColumn::name) > 1) {
      return "another column has its name";
    }
    const bool odd = name.find_first_of(",:+\"") != name.npos || name.ends_with('*') ||
                     name.find("..") != name.npos || Printable(name, name.size() + 3) != name;
    return odd ? "its name has a comma, colon, plus, quote, line end, '..' or a '*' at its end"
               : "";
  }

  Status CheckNamable(size_t column, const std::string& use) const {
    const std::string why = Unnamable(column);
    if (why.empty()) return OkStatus();
    return table_.Error(1, "column " + std::to_string(column + 1) + ", " +
                               QuotedPart(At(column).name) + ", is " + use + ", but " + why +
                               "; rename it");
  }

  // All cells are of one kind.
  Status CheckCells(const TableColumn& column, const std::optional<TableCell>& other,
                    const std::string& what) const {
    if (!other) return OkStatus();
    return table_.Error(column, *other, what);
  }

  bool IsFree(size_t column) const { return uses_[column].empty(); }
  void LeaveOut(size_t column, const std::string& why) { uses_[column] = "left out: " + why; }

  Status FindPictures() {
    std::vector<size_t> columns, of_pictures, of_masks;
    for (size_t i = 0; i < uses_.size(); ++i) {
      if (At(i).kind() == CellKind::kImages) columns.push_back(i);
    }
    std::map<size_t, ListedImages> images;
    for (const size_t i : columns) {
      KUMO_RETURN_IF_ERROR(CheckCells(At(i), At(i).no_image,
                                      std::string("is no image ") + kImageEndings +
                                          ", but the other cells are; "
                                          "correct the path, or remove the row"));
      KUMO_ASSIGN_OR_RETURN(images[i], ImagesListedIn(table_, folder_, i));
      bool masks = false;
      if (columns.size() > 1) {
        KUMO_ASSIGN_OR_RETURN(masks, AreMasks(images[i]));
      }
      (masks ? of_masks : of_pictures).push_back(i);
    }
    if (columns.empty()) return OkStatus();
    // Several drawings in few colours may be pictures, too.
    if (of_pictures.empty()) std::swap(of_pictures, of_masks);
    picture_ = of_pictures.front();
    KUMO_RETURN_IF_ERROR(CheckNamable(*picture_, "a picture"));
    uses_[*picture_] = "pictures, the input";
    if (!of_masks.empty()) {
      mask_ = of_masks.front();
      KUMO_RETURN_IF_ERROR(CheckNamable(*mask_, "a mask"));
      uses_[*mask_] = "masks of these pictures, with the class of each pixel";
    }
    for (const size_t i : columns) {
      if (!IsFree(i)) continue;
      LeaveOut(i,
               "a second picture; data.columns = ...,FIELD:picture:COLUMN, or FIELD:mask:COLUMN "
               "for PNGs of classes, adds it, for an input or a loss with the name FIELD");
    }
    KUMO_ASSIGN_OR_RETURN(const ImageSizes sizes,
                          SizesOf(images[*picture_].container, images[*picture_].files));
    if (mask_) {
      SetMaskedImageSize(sizes, &found_.data);
    } else {
      SetImageSize(sizes, /*on_demand=*/true, &found_.data);
    }
    return OkStatus();
  }

  bool NumbersRows(size_t column) const {
    const TableColumn& cells = At(column);
    const std::string lower = LowerCase(cells.name);
    const bool named = std::ranges::find(kNamesOfRows, lower) != std::end(kNamesOfRows) ||
                       lower.ends_with("_id") || cells.name.ends_with("Id") ||
                       cells.name.ends_with("ID");
    return named && !cells.repeats && cells.whole == cells.cells;
  }

  // The first column that has one of the names, in the order of the names.
  void FindLabelNamed(std::span<const std::string_view> names) {
    for (const std::string_view name : names) {
      for (size_t i = 0; i < uses_.size() && !label_; ++i) {
        if (IsFree(i) && LowerCase(At(i).name) == name) label_ = i;
      }
    }
  }

  Status FindLabel() {
    FindLabelNamed(kNamesOfClasses);
    const bool named_as_class = label_.has_value();
    FindLabelNamed(kNamesOfTargets);
    by_position_ = !label_;
    for (size_t i = uses_.size(); i > 0 && !label_; --i) {
      if (IsFree(i - 1) && !NumbersRows(i - 1)) label_ = i - 1;
    }
    if (!label_) {
      return table_.Error(1,
                          "there is no column of labels; add one, such as label, with a class or a "
                          "number in each row");
    }
    KUMO_RETURN_IF_ERROR(CheckNamable(*label_, "the label"));
    const TableColumn& cells = At(*label_);
    const bool numbers = cells.kind() == CellKind::kNumbers;
    if (numbers) {
      KUMO_RETURN_IF_ERROR(CheckIsNumbers(*label_));
    }
    return numbers && !AreClasses(cells, named_as_class) ? TakeNumberLabel() : TakeClasses();
  }

  // To follow a message about a column; "" unless it is the label, and no name says so.
  std::string AdviceOnLabel(size_t column) const {
    if (column != label_ || !by_position_) return "";
    return "; it is taken for the label, as the last column; give the column of labels the name "
           "label";
  }

  // Whether a column of numbers has classes. Counts and ages are whole, too, but leave gaps.
  bool AreClasses(const TableColumn& cells, bool named) const {
    const int64_t different = std::ssize(cells.different);
    if (cells.whole < cells.cells || cells.least < 0 || different < 2 ||
        cells.most >= static_cast<float>(kMostDifferentCells) ||
        table_.rows < kRowsOfAClass * different) {
      return false;
    }
    const bool dense = cells.least <= 1 && different <= kMostDenseClasses &&
                       static_cast<float>(different) > cells.most - cells.least;
    return named || dense;
  }

  Status TakeNumberLabel() {
    const TableColumn& cells = At(*label_);
    found_.data.classes = 0;
    uses_[*label_] = "the label, a number";
    if (cells.whole == cells.cells) {
      uses_[*label_] += cells.least < 0
                            ? "; if it is a class, number the classes from 0"
                            : "; if it is a class: label:class:COLUMN, data.classes, and in the "
                              "network softmax_cross_entropy";
    }
    return OkStatus();
  }

  Status CheckIsNumbers(size_t column) const {
    const TableColumn& cells = At(column);
    const bool missing = cells.no_number && cells.no_number->text.empty();
    return CheckCells(cells, cells.no_number,
                      std::string(missing ? "is empty, but the other cells are numbers"
                                          : "is no number, but the other cells are") +
                          "; write a number, such as 0.5, or remove the row or the column" +
                          AdviceOnLabel(column));
  }

  Status TakeClasses() {
    const TableColumn& cells = At(*label_);
    const std::string advice = AdviceOnLabel(*label_);
    KUMO_RETURN_IF_ERROR(
        CheckCells(cells, cells.empty, "is empty; write a class, or remove the row" + advice));
    if (cells.different.size() < 2) {
      return table_.Error(1, "column " + QuotedPart(cells.name) + ", the label, is " +
                                 QuotedPart(*cells.different.begin()) +
                                 " in all rows; classes must differ" + advice);
    }
    if (cells.different.size() > kMostDifferentCells ||
        table_.rows < kRowsOfAClass * std::ssize(cells.different)) {
      return table_.Error(1, "column " + QuotedPart(cells.name) +
                                 ", the label, has too many different words for classes in " +
                                 Counted(table_.rows, "row") +
                                 (advice.empty() ? "; give each class several rows" : advice));
    }
    std::vector<std::string> names;
    bool numbered = true;
    for (const std::string& name : cells.different) {
      numbered &= IsClassNumber(name);
      if (names.size() < kNamedTableClasses) names.push_back(Printable(name, kLongestListed));
    }
    if (numbered) {
      found_.data.classes = static_cast<int>(cells.most) + 1;
      uses_[*label_] = "the label, a class from " + std::to_string(static_cast<int>(cells.least)) +
                       " to " + std::to_string(static_cast<int>(cells.most)) +
                       "; if it is a number: label:numbers:COLUMN, data.classes = 0, and in the "
                       "network 1 output and mean_squared_error";
    } else {
      found_.data.classes = static_cast<int>(cells.different.size());
      uses_[*label_] = "the label, a class: " + Join(names) +
                       (cells.different.size() > names.size() ? ", ..." : "");
    }
    return OkStatus();
  }

  Status FindFeatures() {
    for (size_t i = 0; i < uses_.size(); ++i) {
      if (!IsFree(i)) continue;
      const TableColumn& cells = At(i);
      if (cells.kind() != CellKind::kNumbers) {
        const bool some = cells.numbers > 0 && cells.no_number;
        LeaveOut(i, some ? std::to_string(cells.cells - cells.numbers) + " of " +
                               std::to_string(cells.cells) + " cells are no numbers, such as " +
                               QuotedPart(cells.no_number->text) + " in line " +
                               std::to_string(cells.no_number->line)
                         : "words; columns of 0 and 1, one for each word, are numbers");
      } else if (mask_) {
        LeaveOut(i, "the network has only pictures");
      } else if (NumbersRows(i)) {
        LeaveOut(i, "it numbers the rows");
      } else if (const std::string why = Unnamable(i); !why.empty()) {
        LeaveOut(i, why);
      } else {
        KUMO_RETURN_IF_ERROR(CheckIsNumbers(i));
        uses_[i] = picture_ ? "numbers, an input beside the picture" : "numbers, the input";
        features_.push_back(i);
      }
    }
    return OkStatus();
  }

  // "a..d+f"
  std::string FeaturesText() const {
    std::string text;
    for (size_t begin = 0; begin < features_.size();) {
      size_t end = begin + 1;
      while (end < features_.size() && features_[end] == features_[end - 1] + 1) ++end;
      if (end - begin < kShortestRange) end = begin + 1;
      text += (text.empty() ? "" : "+") + At(features_[begin]).name;
      if (end - begin > 1) text += ".." + At(features_[end - 1]).name;
      begin = end;
    }
    return text;
  }

  void SetColumns() {
    std::vector<std::string> fields;
    const auto add = [&](const std::string& field, ColumnKind kind, const std::string& column) {
      fields.push_back(field + ":" + std::string(WordOf(kind)) +
                       (column == field ? "" : ":" + column));
    };
    if (picture_) add(kImageField, ColumnKind::kPicture, At(*picture_).name);
    if (mask_) add(kMaskField, ColumnKind::kMask, At(*mask_).name);
    if (!features_.empty()) add(kFeaturesField, ColumnKind::kNumbers, FeaturesText());
    if (label_) {
      add(kLabelField, found_.data.classes > 0 ? ColumnKind::kClass : ColumnKind::kNumbers,
          At(*label_).name);
    }
    for (const std::string& field : fields) {
      found_.data.columns += (found_.data.columns.empty() ? "" : ",") + field;
    }
    // Neighbours of one use are one line.
    for (size_t begin = 0; begin < uses_.size();) {
      size_t end = begin + 1;
      while (end < uses_.size() && uses_[end] == uses_[begin]) ++end;
      std::string names = Printable(At(begin).name, kLongestListed);
      if (names.empty()) names = "column " + std::to_string(begin + 1);
      if (end - begin > 1) names += " .. " + Printable(At(end - 1).name, kLongestListed);
      found_.columns.emplace_back(names, uses_[begin]);
      begin = end;
    }
  }

  void SetForm() {
    std::string inputs = picture_ ? "pictures" : "";
    if (!features_.empty()) {
      inputs += (picture_ ? " and " : "") + Counted(std::ssize(features_), "number") + " a row";
    }
    found_.form = "a table of " + inputs;
    if (mask_) {
      found_.form += " with masks";
      found_.data.classes = kMostMaskClasses;
    } else if (found_.data.classes > 0) {
      found_.form += ", " + Counted(found_.data.classes, "class", "classes");
    } else {
      found_.form += ", labels are numbers";
    }
  }

  const TableSummary table_;
  const std::string folder_;
  std::vector<std::string> uses_;  // by column; "": not decided
  std::optional<size_t> picture_, mask_, label_;
  bool by_position_ = false;  // the label
  std::vector<size_t> features_;
  FoundDataset found_;
};

// A training file, and files that may be the validation set.
struct TableFiles {
  std::string train;
  std::vector<std::string> validation;
};

Result<TableFiles> FilesAmong(const std::string& folder, const std::vector<std::string>& files) {
  std::map<NamedPart, std::vector<std::string>> of;
  for (const std::string& file : files) of[PartIn(file)].push_back(file);
  for (const NamedPart part : {NamedPart::kTraining, NamedPart::kNone, NamedPart::kValidation}) {
    if (of[part].empty()) continue;
    if (of[part].size() > 1) {
      return InvalidArgument(folder + ": has several CSV files that may be the training set: " +
                             Join(of[part]) + "; name one of them");
    }
    TableFiles found{of[part].front(), {}};
    if (part != NamedPart::kValidation) found.validation = of[NamedPart::kValidation];
    return found;
  }
  return NotFound(folder + ": has no CSV file");
}

// The training set, which a validation set must fit.
struct TrainingTable {
  std::string file;
  std::vector<std::string> header;
  std::string columns;                         // data.columns
  std::optional<std::set<std::string>> words;  // of classes that are words
  int classes = 0;                             // data.classes

  // Why the file with these columns is no validation set; "" if their order does not forbid it.
  std::string OtherColumnsIn(std::span<const std::string> other) const;
  // Likewise, by the classes in a column.
  Result<std::string> OtherClassesIn(const std::string& path, size_t label) const;
};

std::string TrainingTable::OtherColumnsIn(std::span<const std::string> other) const {
  const auto fields = FieldsOfTable(columns, header), others = FieldsOfTable(columns, other);
  for (const Status& status : {fields.status(), others.status()}) {
    if (!status.ok()) return status.message();
  }
  for (size_t f = 0; f < fields->size(); ++f) {
    const std::vector<int>& own = (*fields)[f].columns;
    const std::vector<int>& its = (*others)[f].columns;
    for (size_t i = 0; i < std::max(own.size(), its.size()); ++i) {
      if (i < own.size() && i < its.size() && header[own[i]] == other[its[i]]) continue;
      const std::string name = i < own.size() ? QuotedPart(header[own[i]]) : "no column";
      const std::string found = i < its.size() ? QuotedPart(other[its[i]]) : "no column";
      return "other order of columns: " + found + " is in the place of " + name +
             ", and data.columns names a range; write the columns in the order of " + file;
    }
  }
  return "";
}

Result<std::string> TrainingTable::OtherClassesIn(const std::string& path, size_t label) const {
  std::string why;
  std::set<std::string> seen;
  KUMO_RETURN_IF_ERROR(ReadColumn(path, label, [&](const TableCell& cell) {
    if (cell.text.empty()) return true;  // the reader names it
    bool known = words && words->contains(cell.text);
    if (known) {
      seen.insert(cell.text);
    } else if (!words) {
      const std::optional<int64_t> number = ParseNumber<int64_t>(cell.text);
      known = number && *number >= 0 && *number < classes;
    }
    if (!known) {
      why = "the class " + QuotedPart(cell.text) + " in line " + std::to_string(cell.line) +
            " does not occur in " + file;
    }
    return known;
  }));
  if (!why.empty() || !words) return why;
  const auto lacking =
      std::ranges::find_if(*words, [&](const std::string& word) { return !seen.contains(word); });
  if (lacking != words->end()) {
    why = "it lacks the class " + QuotedPart(*lacking) +
          ", but words are numbered in each file; name all classes with data.class_list to use it";
  }
  return why;
}

}  // namespace

Result<FoundDataset> FindTable(const std::string& folder, const std::vector<std::string>& files) {
  KUMO_ASSIGN_OR_RETURN(const TableFiles sets, FilesAmong(folder, files));
  KUMO_ASSIGN_OR_RETURN(TableSummary table, SummariseTable(JoinPath(folder, sets.train)));
  TrainingTable training;
  training.file = sets.train;
  for (const TableColumn& column : table.columns) training.header.push_back(column.name);
  Recognition recognition(std::move(table), folder);
  KUMO_ASSIGN_OR_RETURN(FoundDataset found, recognition.Run());
  Experiment::Data& data = found.data;
  data.reader = DataReader::kTable;
  data.directory = folder;
  data.train_images = sets.train;
  data.validation_images = "";
  training.columns = data.columns;
  training.classes = data.classes;
  training.words = recognition.WordsOfLabel();
  const std::string label = recognition.NameOfClasses();
  for (const std::string& file : sets.validation) {
    const std::string path = JoinPath(folder, file);
    KUMO_ASSIGN_OR_RETURN(const std::vector<std::string> header, NamesOfColumns(path));
    std::string why = training.OtherColumnsIn(header);
    if (why.empty() && !label.empty()) {
      const size_t column = std::ranges::find(header, label) - header.begin();
      KUMO_ASSIGN_OR_RETURN(why, training.OtherClassesIn(path, column));
    }
    if (why.empty()) {
      data.validation_images = file;
      break;
    }
    found.notes.push_back(file + " is no validation set: " + why);
  }
  return found;
}

}  // namespace kumo
