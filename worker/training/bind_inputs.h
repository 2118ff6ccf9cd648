// A network is told what its samples look like.
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/job/fields.h"
#include "models/net.h"

namespace kumo {

// Net::Connect; where image files have another size than the network takes, the word about it names
// the setting that makes them fit.
Status BindInputs(const std::string& reader, const Fields& fields, const PixelFormula& pixels,
                  Net* net);

}  // namespace kumo
