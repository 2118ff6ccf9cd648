#include "data/readers/table_set.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include <glog/logging.h>

#include "data/readers/image_loader.h"
#include "data/readers/image_set.h"
#include "data/readers/image_store.h"

namespace kumo {
namespace {

bool HasClasses(const TableSet& set) {
  return !set.classes.empty() || std::ranges::any_of(set.files, [](const FileColumn& column) {
    return column.kind == FieldKind::kMask;
  });
}

// The format of a column's pictures; without settings, that of the first valid one.
Result<ImageTarget> TargetOfPictures(const TableSet& set, const ImageStore& store,
                                     const ReaderRequest& request) {
  if (!request.image_size.empty()) {
    if (request.originals) return ImageTarget{{request.image_size[0], 0, 0}};
    return ImageTarget{request.image_size, /*scale=*/true, request.resize == ResizeMode::kStretch};
  }
  const ImageStore* const stores[] = {&store};
  return TargetOfFirst(set.name, stores, set.damaged, request);
}

ImageTarget TargetOfMasks(const ImageTarget& picture) {
  ImageTarget target = picture;
  target.extents[0] = 1;
  target.mask = true;
  return target;
}

// The columns of files, and all fields.
struct Opened {
  std::vector<ImageColumn> columns;
  Fields fields;
  int64_t bytes = 0;
};

Result<Opened> OpenColumns(TableSet* set, const ReaderRequest& request) {
  KUMO_RETURN_IF_ERROR(CheckDamaged(set->damaged, set->size(), request));
  KUMO_RETURN_IF_ERROR(CheckClassesAreCounted(*set, request));
  Opened opened;
  for (FileColumn& column : set->files) {
    const bool mask = column.kind == FieldKind::kMask;
    KUMO_ASSIGN_OR_RETURN(std::unique_ptr<ImageStore> store,
                          ImageStore::Open(column.container, std::exchange(column.files, {}),
                                           {.room = request.room, .may_lack_files = true}));
    ImageColumn read;
    read.field = static_cast<int>(opened.fields.size());
    read.classes = request.classes;
    if (mask) {
      read.target = TargetOfMasks(opened.columns.front().target);
    } else {
      KUMO_ASSIGN_OR_RETURN(read.target, TargetOfPictures(*set, *store, request));
    }
    std::vector<int64_t> extents = read.target.extents;
    if (mask) extents.erase(extents.begin());
    opened.fields.push_back({column.field, NumberType::kUint8, std::move(extents), column.kind});
    opened.bytes += store->bytes();
    read.stores.push_back(std::move(store));
    opened.columns.push_back(std::move(read));
  }
  for (const ClassesColumn& column : set->classes) {
    opened.fields.push_back({column.field, NumberType::kInt32, {}});
    opened.bytes += std::ssize(column.classes) * static_cast<int64_t>(sizeof(int32_t));
  }
  for (const NumbersColumn& column : set->numbers) {
    opened.fields.push_back({column.field, NumberType::kFloat32, {column.width}});
    opened.bytes += std::ssize(column.numbers) * static_cast<int64_t>(sizeof(float));
  }
  opened.bytes += std::ssize(set->lines) * static_cast<int64_t>(sizeof(int64_t));
  return opened;
}

class TableDataset final : public Dataset {
 public:
  // set: without files.
  TableDataset(TableSet set, Opened opened, const ReaderRequest& request)
      : set_(std::move(set)),
        fields_(std::move(opened.fields)),
        columns_(static_cast<int>(opened.columns.size())),
        classes_(HasClasses(set_) ? request.classes : 0) {
    if (columns_ > 0) {
      loader_.emplace(set_.name, std::move(opened.columns), request, set_.damaged);
    }
  }

  int64_t size() const override { return loader_ ? loader_->size() : set_.size(); }
  const Fields& fields() const override { return fields_; }
  int classes() const override { return classes_; }
  std::span<const std::string> class_names() const override { return set_.class_names; }
  std::vector<int32_t> SampleClasses() const override {
    return set_.classes.empty() ? std::vector<int32_t>() : set_.classes.front().classes;
  }
  const DataNotes& notes() const override { return set_.notes; }
  const std::string& name() const override { return set_.name; }

  bool in_memory() const override { return !loader_; }

  Status ReadKey(const SampleKey& key, Sample* sample) const override {
    int64_t index = key.sample;
    CHECK(index >= 0 && index < size()) << name() << ": sample " << index << " of " << size();
    if (loader_) {
      const Result<ImageLoader::Loaded> loaded = loader_->Load(index, sample);
      if (!loaded.ok()) {
        if (set_.lines.empty()) return loaded.status();
        return loaded.status().WithContext(set_.name + ":" + std::to_string(set_.lines[index]));
      }
      index = loaded->index;
    }
    int field = columns_;
    for (const ClassesColumn& column : set_.classes) {
      sample->Borrow(field++, std::as_bytes(std::span(column.classes).subspan(index, 1)));
    }
    for (const NumbersColumn& column : set_.numbers) {
      const auto numbers = std::span(column.numbers).subspan(index * column.width, column.width);
      sample->Borrow(field++, std::as_bytes(numbers));
    }
    return OkStatus();
  }

 private:
  const TableSet set_;
  const Fields fields_;
  const int columns_;  // of files
  const int classes_;
  std::optional<ImageLoader> loader_;  // none without pictures
};

}  // namespace

Status CheckClassesAreCounted(const TableSet& set, const ReaderRequest& request) {
  if (!HasClasses(set) || request.classes > 0) return OkStatus();
  return FailedPrecondition(set.name +
                            ": its samples have classes, but data.classes = 0; set it to the "
                            "number of classes");
}

void TableSet::Limit(int64_t samples) {
  if (samples == 0 || samples >= size()) return;
  const auto most = static_cast<size_t>(samples);
  for (FileColumn& column : files) column.files.resize(most);
  for (ClassesColumn& column : classes) column.classes.resize(most);
  for (NumbersColumn& column : numbers) column.numbers.resize(most * column.width);
  if (!lines.empty()) lines.resize(most);
  damaged.erase(damaged.lower_bound(samples), damaged.end());
}

Result<std::unique_ptr<Dataset>> OpenTableSet(TableSet set, const ReaderRequest& request) {
  KUMO_ASSIGN_OR_RETURN(Opened opened, OpenColumns(&set, request));
  return std::unique_ptr<Dataset>(
      std::make_unique<TableDataset>(std::move(set), std::move(opened), request));
}

Result<DatasetExtents> MeasureTableSet(TableSet set, const ReaderRequest& request) {
  const int64_t samples = set.size();
  KUMO_ASSIGN_OR_RETURN(Opened opened, OpenColumns(&set, request));
  DatasetExtents extents{samples, std::move(opened.fields), opened.bytes, std::move(set.notes)};
  extents.class_names = std::move(set.class_names);
  return extents;
}

}  // namespace kumo
