// A text as samples: windows of it, each with the text one token further on as its labels, as
// language models learn.
//
// One file is both sets: its last part validates. A token is a byte, or a character of the text
// (UTF-8, Unicode's code points), whose number is its place among all that the file holds, in the
// order of their code points. Training windows begin anywhere, drawn anew for each sample of each
// epoch; those of the validation lie side by side.
//
// Functions; thread-safe. The set that they open is immutable.
#pragma once

#include <memory>
#include <string>

#include "common/base/status.h"
#include "data/dataset.h"
#include "data/readers/registry.h"

namespace kumo {

// InvalidArgument, with line and byte, for what is not UTF-8, and for a text that is too short for
// a window.
Result<std::unique_ptr<Dataset>> OpenText(const ReaderRequest& request);
Result<DatasetExtents> MeasureText(const ReaderRequest& request);

}  // namespace kumo
