// The reader "cifar": the published binary version of CIFAR-10 and CIFAR-100 (Krizhevsky 2009), in
// which a sample is its label or labels, a byte each, and 3 x 32 x 32 bytes, red, green, blue.
//
//   CIFAR-10    label   pixels                    3073 bytes
//   CIFAR-100   coarse  fine    pixels            3074 bytes
//
// Which one it is, data.classes says: 100 takes CIFAR-100's fine labels, 20 its coarse ones, any
// other number CIFAR-10's. A path is a file, or a folder, whose data_batch_*.bin are meant, in the
// order of their names.
#pragma once

#include <memory>

#include "common/base/status.h"
#include "data/readers/registry.h"

namespace kumo {

// InvalidArgument where a file is not made of whole samples, a label is not below request.classes,
// or a folder holds no such files. Messages name the file and the byte.
Result<std::unique_ptr<Dataset>> OpenCifar(const ReaderRequest& request);
// As the files' sizes say.
Result<DatasetExtents> MeasureCifar(const ReaderRequest& request);

}  // namespace kumo
