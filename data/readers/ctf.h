// The reader "ctf": CNTK's text format (ctf_line.h), plain or gzip'd, a sample a line.
//
// The stream data.ctf_features becomes the field "image": numbers (float32), dense or sparse, of
// data.image_size, or 1 x n x 1 where that is empty and the first line has n dense values. The
// stream data.ctf_labels becomes the label: a class' number, or a 1 in its place among
// data.classes, dense or sparse; where data.classes is 0 numbers (float32), as many as the first
// line has. Other streams are passed over, and so are empty lines.
//
// Memory grows only with what was read: sparse values stay sparse in it.
#pragma once

#include <memory>

#include "common/base/status.h"
#include "data/readers/registry.h"

namespace kumo {

// InvalidArgument, naming file, line and column, for what is no such line, values beyond the
// image's size, a label that is not below request.classes, or a sequence of several lines. DataLoss
// where the file is damaged, or its last line has no end.
Result<std::unique_ptr<Dataset>> OpenCtf(const ReaderRequest& request);
// The first line is read, the others are counted.
Result<DatasetExtents> MeasureCtf(const ReaderRequest& request);

}  // namespace kumo
