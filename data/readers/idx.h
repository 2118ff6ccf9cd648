// The IDX format of MNIST (LeCun, Cortes, Burges): a magic number, the extents, then one byte per
// number; numbers of the header are 32-bit big-endian.
//
//   images   00 00 08 03  count  height  width   count * height * width pixels
//   labels   00 00 08 01  count                  count labels
//
// Both files may be gzip'd. Nothing that they say is believed: the extents are checked against the
// file's size before memory is taken for them, what a gzip file unpacks to is read no further than
// one byte past what its header promises, and memory grows only with bytes that were really there.
#pragma once

#include <memory>

#include "common/base/status.h"
#include "data/readers/registry.h"

namespace kumo {

// The whole of both files is read and verified, also where `limit` keeps only the first samples. Of
// packed images that is done once: what they hold is mapped (unpacked_file.h) where there is a
// cache and it is worth the file. DataLoss where a file is truncated, longer than its header
// promises or damaged; InvalidArgument where it is not IDX, the two counts differ, or a label is
// not below `classes`. Messages name the file, where in it, what was there and what to do.
Result<std::unique_ptr<Dataset>> OpenIdx(const ReaderRequest& request);
// As the images' header says, checked against the file's size; the rest is not read.
Result<DatasetExtents> MeasureIdx(const ReaderRequest& request);

}  // namespace kumo
