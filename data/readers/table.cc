#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/file.h"
#include "common/base/nearest_float.h"
#include "common/base/printable.h"
#include "common/base/text.h"
#include "common/settings/option_value.h"
#include "data/readers/all.h"
#include "data/readers/class_list.h"
#include "data/readers/csv.h"
#include "data/readers/image_files.h"
#include "data/readers/listed_paths.h"
#include "data/readers/table_columns.h"
#include "data/readers/table_set.h"

namespace kumo {
namespace {

constexpr uint64_t kMaxTableBytes = uint64_t{4} << 30;
constexpr size_t kLongestCell = 60;  // in a message

std::string CellText(std::string_view cell) { return "\"" + Printable(cell, kLongestCell) + "\""; }

// The text of a table, and the paths in it, before the first one is taken.
struct TableText {
  std::string text;
  ListedPaths paths{""};
};

Result<TableText> ReadTable(const std::string& path) {
  KUMO_ASSIGN_OR_RETURN(const ImageContainer container, FindContainer(path));
  if (!container.archive) {
    return InvalidArgument(path + ": is a folder; name the CSV file of the table");
  }
  TableText table;
  if (container.inside.empty()) {
    PosixFileSystem files;
    KUMO_ASSIGN_OR_RETURN(table.text, ReadWholeFile(files, path, kMaxTableBytes));
    table.paths = ListedPaths(DirectoryOf(path));
    return table;
  }
  const ImageContainer archive = {container.path, true, ""};
  KUMO_RETURN_IF_ERROR(CheckArchive(archive));
  const std::string names[] = {container.inside};
  KUMO_RETURN_IF_ERROR(ReadImages(
      archive, names, [&](int64_t, const Result<std::span<const uint8_t>>& content) -> Status {
        if (!content.ok()) return content.status();
        table.text.assign(content->begin(), content->end());
        return OkStatus();
      }));
  const size_t slash = container.inside.rfind('/');
  table.paths =
      ListedPaths(slash == std::string::npos ? "" : container.inside.substr(0, slash), archive);
  return table;
}

// Classes of a column as they are written, numbered in the order of their first use.
class ClassCells {
 public:
  // table, column: for messages. before: columns of classes before this one.
  // samples: expected number.
  ClassCells(std::string table, std::string column, size_t before, int64_t samples)
      : table_(std::move(table)), column_(std::move(column)), before_(before) {
    of_sample_.reserve(samples);
  }

  void Take(std::string_view cell, int64_t line) {
    const auto [found, added] =
        numbers_.emplace(std::string(cell), static_cast<int32_t>(cells_.size()));
    if (added) cells_.push_back({std::string(cell), line});
    of_sample_.push_back(found->second);
  }

  // The classes of the samples: the numbers that all cells are, or else those of their names among
  // request.class_list, or in their order; then sets *names.
  Result<std::vector<int32_t>> Resolve(const ReaderRequest& request,
                                       std::vector<std::string>* names) const {
    const auto is_name = [](const Cell& cell) { return !ParseNumber<int64_t>(cell.text); };
    const auto named = std::ranges::find_if(cells_, is_name);
    std::vector<int32_t> classes;  // by cell
    // Some names may be numbers, and a validation set may have only these.
    const bool trained = before_ == 0 && request.class_list.empty() && !request.train_names.empty();
    if (named == cells_.end() && !trained) {
      KUMO_ASSIGN_OR_RETURN(classes, Numbers(request.classes));
    } else if (before_ > 0) {
      return Error(*named,
                   "is no class number; only the first column of classes may have names, since "
                   "data.class_list names one set of classes");
    } else {
      KUMO_ASSIGN_OR_RETURN(*names, Names(request));
      const auto numbers = NumbersOfClasses(*names);
      for (const Cell& cell : cells_) {
        const auto found = numbers.find(cell.text);
        if (found == numbers.end()) {
          if (trained) return NotTrained(WhereIs(cell), cell.text, *names);
          return Error(cell, "is not in data.class_list; add it, or remove the rows");
        }
        classes.push_back(found->second);
      }
    }
    std::vector<int32_t> of_sample;
    of_sample.reserve(of_sample_.size());
    for (const int32_t cell : of_sample_) of_sample.push_back(classes[cell]);
    return of_sample;
  }

 private:
  struct Cell {
    std::string text;
    int64_t line;  // of its first use
  };

  Status Error(const Cell& cell, const std::string& what) const {
    return InvalidArgument(WhereIs(cell) + ": " + CellText(cell.text) + " " + what);
  }
  std::string WhereIs(const Cell& cell) const {
    return table_ + ":" + std::to_string(cell.line) + ": column \"" + column_ + "\"";
  }

  Result<std::vector<int32_t>> Numbers(int classes) const {
    std::vector<int32_t> numbers;
    for (const Cell& cell : cells_) {
      const auto number = ParseNumber<int64_t>(cell.text).value_or(-1);
      if (number < 0 || number > INT32_MAX || (classes > 0 && number >= classes)) {
        return Error(cell, "is no class from 0 to " + std::to_string(classes - 1) +
                               " (data.classes = " + std::to_string(classes) +
                               "); correct data.classes or the file");
      }
      numbers.push_back(static_cast<int32_t>(number));
    }
    return numbers;
  }

  Result<std::vector<std::string>> Names(const ReaderRequest& request) const {
    std::vector<std::string> names;
    if (!request.class_list.empty()) {
      KUMO_ASSIGN_OR_RETURN(names, ReadClassList(request.class_list));
      KUMO_RETURN_IF_ERROR(CheckListed(request.class_list, names, request.classes));
      return names;
    }
    if (!request.train_names.empty()) return request.train_names;
    for (const Cell& cell : cells_) names.push_back(cell.text);
    std::ranges::sort(names);
    if (std::ssize(names) == request.classes) return names;
    return InvalidArgument(table_ + ": column \"" + column_ + "\" has " + ClassesCounted(names) +
                           ", but data.classes = " + std::to_string(request.classes) +
                           "; set data.classes = " + std::to_string(names.size()) +
                           ", or, if this set lacks some classes, name all of them with "
                           "data.class_list");
  }

  std::string table_;
  std::string column_;
  size_t before_;
  std::vector<Cell> cells_;
  std::unordered_map<std::string, int32_t> numbers_;  // by text
  std::vector<int32_t> of_sample_;                    // indices of cells_
};

// Fills a set row by row.
class TableBuilder {
 public:
  TableBuilder(const ReaderRequest& request, ListedPaths paths)
      : request_(request), paths_(std::move(paths)) {}

  Result<TableSet> Run(std::string_view text) {
    text_ = text;
    CsvReader reader(text);
    Result<TableSet> set = Fill(&reader);
    if (set.ok() || !at_line_) return set;
    return set.status().WithContext(request_.images + ":" +
                                    std::to_string(std::max<int64_t>(1, reader.line())));
  }

 private:
  Result<TableSet> Fill(CsvReader* reader) {
    std::vector<std::string> cells;
    KUMO_ASSIGN_OR_RETURN(const bool any, reader->Next(&cells));
    if (!any) return InvalidArgument("is empty; write a row with the names of the columns");
    for (const std::string& name : cells) header_.emplace_back(Trimmed(name));
    KUMO_ASSIGN_OR_RETURN(fields_, FieldsOfTable(request_.columns, header_));
    Prepare();
    for (;;) {
      KUMO_ASSIGN_OR_RETURN(const bool more, reader->Next(&cells));
      if (!more) break;
      KUMO_RETURN_IF_ERROR(CheckCsvFields(cells.size(), header_.size()));
      KUMO_RETURN_IF_ERROR(TakeRow(cells, reader->line()));
    }
    if (set_.lines.empty()) return InvalidArgument("has no rows below the names of the columns");
    at_line_ = false;
    KUMO_RETURN_IF_ERROR(CheckClassesAreCounted(set_, request_));
    for (size_t i = 0; i < classes_.size(); ++i) {
      KUMO_ASSIGN_OR_RETURN(set_.classes[i].classes,
                            classes_[i].Resolve(request_, &set_.class_names));
    }
    set_.Limit(request_.limit);
    return std::move(set_);
  }

  // Arrays get room for all rows at once: growing ones would take twice their size beside the text.
  void Prepare() {
    // A row has a byte for each column.
    const int64_t most_rows =
        std::min<int64_t>(std::ranges::count(text_, '\n'), std::ssize(text_) / std::ssize(header_));
    set_.name = request_.images;
    set_.lines.reserve(most_rows);
    for (const TableField& field : fields_) {
      switch (field.kind) {
        case ColumnKind::kPicture:
        case ColumnKind::kMask:
          set_.files.push_back(
              {field.name,
               field.kind == ColumnKind::kMask ? FieldKind::kMask : FieldKind::kPicture,
               {},
               {}});
          column_paths_.push_back(paths_);
          break;
        case ColumnKind::kClass:
          classes_.emplace_back(request_.images, Printable(header_[field.columns[0]]),
                                classes_.size(), most_rows);
          set_.classes.push_back({field.name, {}});
          break;
        case ColumnKind::kNumbers:
          set_.numbers.push_back({field.name, std::ssize(field.columns), {}});
          set_.numbers.back().numbers.reserve(most_rows * field.columns.size());
          break;
      }
    }
  }

  Status TakeRow(const std::vector<std::string>& cells, int64_t line) {
    size_t file = 0, of_classes = 0, numbers = 0;
    for (const TableField& field : fields_) {
      for (const int column : field.columns) {
        const std::string_view cell = Trimmed(cells[column]);
        Status taken;
        switch (field.kind) {
          case ColumnKind::kPicture:
          case ColumnKind::kMask:
            taken = TakeFile(cell, file++);
            break;
          case ColumnKind::kClass:
            if (cell.empty()) taken = InvalidArgument("is empty; write a class, or remove the row");
            if (taken.ok()) classes_[of_classes++].Take(cell, line);
            break;
          case ColumnKind::kNumbers:
            taken = TakeNumber(cell, &set_.numbers[numbers].numbers);
            break;
        }
        if (!taken.ok()) {
          return Status(taken.code(),
                        "column \"" + Printable(header_[column]) + "\": " + taken.message());
        }
      }
      if (field.kind == ColumnKind::kNumbers) ++numbers;
    }
    set_.lines.push_back(line);
    return OkStatus();
  }

  Status TakeFile(std::string_view cell, size_t file) {
    if (cell.empty()) return InvalidArgument("is empty; name a file, or remove the row");
    KUMO_ASSIGN_OR_RETURN(std::string name, column_paths_[file].Take(std::string(cell)));
    FileColumn& column = set_.files[file];
    column.container = column_paths_[file].container();
    column.files.push_back(std::move(name));
    return OkStatus();
  }

  Status TakeNumber(std::string_view cell, std::vector<float>* numbers) const {
    const std::optional<float> number = NearestFloat(cell);
    if (number && std::isfinite(*number)) {
      numbers->push_back(*number);
      return OkStatus();
    }
    return InvalidArgument(CellText(cell) + " is no number" +
                           (request_.columns.empty()
                                ? "; name the columns to read with data.columns, without this one"
                                : "; write a number, such as 0.5, or remove the row"));
  }

  const ReaderRequest& request_;
  const ListedPaths paths_;
  std::vector<std::string> header_;
  std::vector<TableField> fields_;
  std::vector<ListedPaths> column_paths_;
  std::vector<ClassCells> classes_;
  TableSet set_;
  std::string_view text_;
  bool at_line_ = true;  // errors are of the line that was read last
};

Result<TableSet> SamplesInTable(const ReaderRequest& request) {
  KUMO_ASSIGN_OR_RETURN(TableText table, ReadTable(request.images));
  std::set<std::string> checked = {table.paths.container().path};
  KUMO_ASSIGN_OR_RETURN(TableSet set,
                        TableBuilder(request, std::move(table.paths)).Run(table.text));
  for (const FileColumn& column : set.files) {
    if (!checked.insert(column.container.path).second) continue;
    KUMO_RETURN_IF_ERROR(CheckArchive(column.container));
  }
  return set;
}

}  // namespace

Result<std::unique_ptr<Dataset>> OpenTable(const ReaderRequest& request) {
  KUMO_ASSIGN_OR_RETURN(TableSet set, SamplesInTable(request));
  return OpenTableSet(std::move(set), request);
}

Result<DatasetExtents> MeasureTable(const ReaderRequest& request) {
  KUMO_ASSIGN_OR_RETURN(TableSet set, SamplesInTable(request));
  return MeasureTableSet(std::move(set), request);
}

}  // namespace kumo
