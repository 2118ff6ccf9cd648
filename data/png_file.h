// PNG files of colour images.
#pragma once

#include <string>

#include "common/base/status.h"
#include "data/drawing.h"

namespace kumo {

// Writes a PNG atomically. The errors of AtomicFile.
Status WritePng(const Canvas& canvas, const std::string& path);

}  // namespace kumo
