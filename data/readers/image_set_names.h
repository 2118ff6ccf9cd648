// Names of image sets: the value of data.train_images for readers whose folders or archives have
// several sets, "VOC2007:trainval,VOC2012:trainval".
//
// Values and pure functions; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kumo {

struct ImageSetName {
  std::string path;  // of a folder, an archive, or a folder in an archive
  std::string set;   // "": the reader's choice
  std::string text() const { return set.empty() ? path : path + ":" + set; }
};

// The sets between commas. A set's name follows the last ':' and has no '/'.
std::vector<ImageSetName> SplitImageSets(std::string_view text);

// The inverse.
std::string JoinImageSets(const std::vector<ImageSetName>& sets);

}  // namespace kumo
