// A table in CSV. The first byte selects the classes and the limit, the first line is the value of
// data.columns, and the rest is the file. Tables with pictures are not opened: their cells would
// name any file of this machine.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "common/base/text.h"
#include "data/readers/all.h"
#include "data/readers/csv.h"
#include "data/readers/table_columns.h"
#include "tests/fuzz/fuzzer.h"

namespace {

using Record = std::vector<std::string>;

// The records up to the first fault.
std::vector<Record> RecordsOf(std::string_view text, bool* whole) {
  kumo::CsvReader reader(text);
  std::vector<Record> records;
  Record record;
  for (int64_t line = 0;;) {
    const auto more = reader.Next(&record);
    *whole = more.ok();
    if (!more.ok() || !*more) return records;
    kumo::fuzz::Require(reader.line() > line, "a line twice");
    line = reader.line();
    kumo::fuzz::Require(!record.empty() && record.size() <= kumo::kMostCsvFields,
                        "a record without fields, or with too many");
    records.push_back(record);
  }
}

// Records that are read and written again, with quotes everywhere, read the same.
void ReadRecords(std::string_view text) {
  bool whole = false;
  const std::vector<Record> records = RecordsOf(text, &whole);
  std::string written;
  for (const Record& record : records) {
    for (size_t i = 0; i < record.size(); ++i) {
      written += i > 0 ? ",\"" : "\"";
      for (const char c : record[i]) written += c == '"' ? "\"\"" : std::string(1, c);
      written += '"';
    }
    written += "\r\n";
  }
  kumo::fuzz::Require(RecordsOf(written, &whole) == records && whole, "other records");
}

// Whether the setting fits the file's header, and the table has no pictures.
bool IsOfNumbers(const std::string& setting, std::string_view text) {
  kumo::CsvReader reader(text);
  Record header;
  const auto any = reader.Next(&header);
  if (!any.ok() || !*any) return true;  // its refusal is tried, too
  for (std::string& name : header) name = std::string(kumo::Trimmed(name));
  const auto fields = kumo::FieldsOfTable(setting, header);
  if (!fields.ok()) return true;
  kumo::fuzz::Require(!fields->empty(), "no field");
  std::set<std::string> names;
  bool numbers = true;
  for (const kumo::TableField& field : *fields) {
    kumo::fuzz::Require(names.insert(field.name).second, "a field twice");
    kumo::fuzz::Require(!field.columns.empty() &&
                            (field.kind == kumo::ColumnKind::kNumbers || field.columns.size() == 1),
                        "another number of columns");
    for (const int column : field.columns) {
      kumo::fuzz::Require(column >= 0 && column < std::ssize(header), "no such column");
    }
    numbers = numbers &&
              (field.kind == kumo::ColumnKind::kNumbers || field.kind == kumo::ColumnKind::kClass);
  }
  return numbers;
}

void CheckSample(const kumo::Dataset& set, int64_t index) {
  kumo::Sample sample(set.fields());
  kumo::fuzz::Require(set.Read(index, &sample).ok(), "a sample that cannot be read");
  for (int f = 0; f < std::ssize(set.fields()); ++f) {
    const kumo::Field& field = set.fields()[f];
    kumo::fuzz::Require(std::ssize(sample.field(f)) == field.bytes(), "another length");
    if (field.type == kumo::NumberType::kInt32) {
      int32_t label = -1;
      std::memcpy(&label, sample.field(f).data(), sizeof label);
      kumo::fuzz::Require(label >= 0 && label < set.classes(), "no such class");
      continue;
    }
    for (int64_t i = 0; i < field.numbers(); ++i) {
      float number = NAN;
      std::memcpy(&number, sample.field(f).data() + i * sizeof number, sizeof number);
      kumo::fuzz::Require(std::isfinite(number), "no number");
    }
  }
}

void Open(const std::string& setting, std::string_view text, uint8_t choice) {
  static kumo::fuzz::InputFile file, class_list;
  file.Hold(text);
  class_list.Hold("cat\ndog\n1\n");
  kumo::ReaderRequest request;
  request.images = file.path();
  request.columns = setting;
  request.classes = choice % 4;
  request.limit = choice / 4 % 4;
  if ((choice & 16) != 0) request.class_list = class_list.path();
  if ((choice & 32) != 0) {  // of a training set with these classes
    request.train_names = {"cat", "dog", "1"};
    request.classes = 3;
  }
  const auto dataset = kumo::OpenTable(request);
  const auto measured = kumo::MeasureTable(request);
  kumo::fuzz::Require(dataset.ok() == measured.ok(), "measured, but not opened");
  if (!dataset.ok()) return;
  const kumo::Dataset& set = **dataset;
  kumo::fuzz::Require(set.size() > 0 && (request.limit == 0 || set.size() <= request.limit),
                      "another number of samples");
  kumo::fuzz::Require(measured->samples == set.size() && measured->fields == set.fields(),
                      "another size");
  CheckSample(set, 0);
  CheckSample(set, set.size() - 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  std::string_view text = kumo::fuzz::AsText(data + 1, size - 1);
  const size_t line = std::min(text.find('\n'), text.size());
  const std::string setting(text.substr(0, line));
  text.remove_prefix(std::min(line + 1, text.size()));
  ReadRecords(text);
  if (IsOfNumbers(setting, text)) Open(setting, text, data[0]);
  return 0;
}
