// 16-bit number types that the GPU under test has.
#pragma once

#include <iostream>
#include <vector>

#include <gtest/gtest.h>

#include "models/backend/cuda/cuda_backend.h"

namespace kumo {

// bf16, unless the card is older than that, and fp16. Requires a GPU. A card without bf16 is no
// reason to skip a test, since fp16 is tested there: a line of output says so.
inline const std::vector<Precision>& NarrowPrecisions() {
  static const std::vector<Precision>& found = *new std::vector<Precision>([] {
    std::vector<Precision> precisions;
    for (const Precision precision : {Precision::kBf16, Precision::kFp16}) {
      const Status status = MakeCudaBackend({.precision = precision}).status();
      if (status.ok()) {
        precisions.push_back(precision);
      } else if (precision == Precision::kBf16 &&
                 status.code() == StatusCode::kFailedPrecondition) {
        std::cout << "bf16 is left out: " << status.message() << std::endl;
      } else {
        ADD_FAILURE() << status.message();
      }
    }
    return precisions;
  }());
  return found;
}

}  // namespace kumo
