#include "worker/connect_net.h"

namespace kumo {

Status ConnectNet(const std::string& reader, const Fields& fields, const PixelFormula& pixels,
                  Net* net) {
  const Status status = net->Connect(fields, pixels);
  if (status.ok() || !reader.starts_with("image_")) return status;
  const Fields wanted = net->takes();
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
