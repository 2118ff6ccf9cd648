// Writes a set of drawn digits to the disk, in MNIST's files and format.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/file.h"
#include "common/base/status.h"

namespace kumo {

struct DigitSetOptions {
  std::string directory;  // the files go to directory/mnist/, where MNIST's own would be
  int64_t train = 60000;  // images
  int64_t validation = 10000;
  uint64_t seed = 1;
  int threads = 1;
  bool force = false;  // overwrite files that were not drawn by us
};

enum class DigitSetOutcome { kDrawn, kAlreadyThere };

// Writes train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, t10k-images-idx3-ubyte.gz and
// t10k-labels-idx1-ubyte.gz; nothing where all four are there already, drawn with these options.
// Requires train, validation and threads >= 1. FailedPrecondition where the place holds files of
// another origin, say MNIST's own (unless force); otherwise the errors of `files`.
Result<DigitSetOutcome> WriteDigitSet(FileSystem& files, const DigitSetOptions& options);

}  // namespace kumo
