// Files of the status page, built into the program (cmake/page_assets.cmake). Constants.
#pragma once

#include <span>
#include <string_view>

namespace kumo {

struct PageAsset {
  std::string_view path;          // "/page.js"
  std::string_view content_type;  // a string literal
  bool gzip;                      // the bytes are compressed
  std::string_view bytes;
};

std::span<const PageAsset> PageAssets();

}  // namespace kumo
