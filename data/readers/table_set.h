// Table set: samples with pictures, masks, classes and numbers, the common part of the readers
// `table` and `masks`.
//
// A sample has a field for each column, in this order: pictures and masks (bytes), classes (int32)
// and numbers (float32). Masks have the size of the sample's first picture, and move with it.
//
// Values and functions; thread-safe. The opened dataset is thread-safe, too (samples/dataset.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/fields.h"
#include "data/readers/image_files.h"
#include "data/readers/registry.h"
#include "data/samples/data_notes.h"
#include "data/samples/dataset.h"

namespace kumo {

// Pictures or masks.
struct FileColumn {
  std::string field;
  FieldKind kind = FieldKind::kPicture;
  ImageContainer container;
  std::vector<std::string> files;  // by sample, in the container
};

struct ClassesColumn {
  std::string field;
  std::vector<int32_t> classes;  // by sample, below request.classes
};

struct NumbersColumn {
  std::string field;
  int64_t width = 1;           // numbers of a sample
  std::vector<float> numbers;  // sample by sample
};

struct TableSet {
  std::string name;               // for messages
  std::vector<FileColumn> files;  // the first has pictures; each as many as there are samples;
                                  // empty: samples of numbers and classes
  std::vector<ClassesColumn> classes;
  std::vector<NumbersColumn> numbers;
  std::vector<std::string> class_names;  // of the first column of classes, or of masks; or none
  std::vector<int64_t> lines;            // of the samples in the file `name`; empty: none, only
                                         // with files
  std::map<int64_t, Status> damaged;     // samples that are known as damaged
  DataNotes notes;

  int64_t size() const {
    return files.empty() ? std::ssize(lines) : std::ssize(files.front().files);
  }
  // Keeps the first samples; 0: all.
  void Limit(int64_t samples);
};

// FailedPrecondition if there are classes, but request.classes is 0.
Status CheckClassesAreCounted(const TableSet& set, const ReaderRequest& request);

// Opens the set. Images are decoded at each read (ImageLoader); the encoded images of a tar in gzip
// are kept in memory, up to request.room. All pictures have request.image_size, or their own sizes
// with request.originals, or the size of the first one of their column.
//
// InvalidArgument if there are no samples, or a damaged one, unless damaged samples are skipped or
// surveyed; the errors of CheckClassesAreCounted and ImageStore::Open. A mask with a class of at
// least request.classes that is not 255 is an error of its reading.
Result<std::unique_ptr<Dataset>> OpenTableSet(TableSet set, const ReaderRequest& request);

// As it would be opened.
Result<DatasetExtents> MeasureTableSet(TableSet set, const ReaderRequest& request);

}  // namespace kumo
