// Annotations of one image in Pascal VOC's XML (VOC2012 development kit, section 10.1):
//
//   <annotation>
//     <size><width>500</width><height>375</height></size>
//     <object>
//       <name>dog</name>
//       <difficult>0</difficult>
//       <bndbox><xmin>48</xmin><ymin>240</ymin><xmax>195</xmax><ymax>371</ymax></bndbox>
//     </object>
//   </annotation>
//
// Values and a pure function; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace kumo {

inline constexpr int64_t kMaxVocAnnotationBytes = 4 << 20;

struct VocObject {
  std::string name;  // without blanks at its ends
  // As the file has them: pixels, counted from 1, and the last ones belong to the box.
  float xmin = 0, ymin = 0, xmax = 0, ymax = 0;
  bool difficult = false;
  bool operator==(const VocObject&) const = default;
};

struct VocAnnotation {
  // Size of the image; 0 if the file does not say.
  int64_t width = 0;
  int64_t height = 0;
  std::vector<VocObject> objects;
};

// Other elements are ignored. Memory is proportional to the file, of at most
// kMaxVocAnnotationBytes; entities are not expanded, beside XML's own five and characters by
// number. InvalidArgument, without the file's name, if the text is longer, not well-formed, or cut
// off, if an object lacks its name or a coordinate, or if a value is no number in range.
Result<VocAnnotation> ParseVocAnnotation(std::span<const uint8_t> xml);

}  // namespace kumo
