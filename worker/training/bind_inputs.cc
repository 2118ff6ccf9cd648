#include "worker/training/bind_inputs.h"

namespace kumo {

Status BindInputs(const std::string& reader, const Fields& fields, const PixelFormula& pixels,
                  Net* net) {
  const Status status = net->Connect(fields, pixels);
  if (status.ok()) return status;
  const Fields wanted = net->takes();
  const int label = FindField(fields, kLabelField);
  if (label >= 0 && fields[label].type != wanted.back().type) {
    const bool numbers = net->classes() == 0;
    return Status(
        status.code(),
        status.message() + (numbers ? "; its losses want numbers as labels, which reader ctf "
                                      "has with data.classes = 0"
                                    : "; its losses want classes as labels: set "
                                      "data.classes to how many there are"));
  }
  if (!reader.starts_with("image_")) return status;
  const int image = FindField(wanted, kImageField);
  const int found = FindField(fields, kImageField);
  if (image < 0 || found < 0 || wanted[image].extents.size() != 3 ||
      Shape(wanted[image].extents) == Shape(fields[found].extents)) {
    return status;
  }
  return Status(status.code(), status.message() + "; with data.image_size = " +
                                   ExtentsText(wanted[image].extents) +
                                   " all images are made to be that");
}

}  // namespace kumo
