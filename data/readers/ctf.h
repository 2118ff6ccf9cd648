// Reader "ctf": CNTK's text format (CTFDeserializer), plain or gzip'd, one sample per line.
//
//   7 |labels 0 1 0 |features 1.5 2 3e-2 |# anything
//   |labels 1:1 |features 3:1.5 17:0.25
//
// A line has named streams of numbers. A stream is dense, or sparse if its values have indices
// ("3:1.5"). The number before the first '|' is a sequence number. A stream with a name that begins
// with '#' is a comment.
//
// The stream data.ctf_features becomes the field "image": float32, dense or sparse, of
// data.image_size, or 1 x n x 1 if that is empty and the first line has n dense values. The stream
// data.ctf_labels becomes the label: a class number, or a one-hot vector of data.classes values,
// dense or sparse; with data.classes = 0 numbers (float32), as many as on the first line. Other
// streams and empty lines are skipped.
//
// Memory is proportional to the bytes read: sparse values stay sparse.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "data/readers/registry.h"

namespace kumo {

// InvalidArgument, with file, line and column, for malformed lines, values beyond the image size,
// labels not below request.classes, and sequences of several lines. DataLoss if the file is damaged
// or its last line has no newline.
Result<std::unique_ptr<Dataset>> OpenCtf(const ReaderRequest& request);
// Reads the first line and counts the others.
Result<DatasetExtents> MeasureCtf(const ReaderRequest& request);

// A stream of a line. Pure values.
struct CtfStream {
  std::string name;    // to look for
  int64_t column = 0;  // start on the line, from 1 on; 0: missing
  bool sparse = false;
  std::vector<float> values;
  std::vector<int64_t> indices;  // of sparse values; ascending
  std::vector<int64_t> columns;  // of the values
};

// Parses a line into `streams`, by their names, and `sequence`, the text before the first '|'.
// Other streams are skipped. InvalidArgument with a message "9: what is wrong" that begins with the
// column, to be prefixed by file and line.
Status ParseCtfLine(std::string_view line, std::string_view* sequence,
                    std::span<CtfStream> streams);

// InvalidArgument in that form.
Status WrongColumn(int64_t column, const std::string& what);

}  // namespace kumo
