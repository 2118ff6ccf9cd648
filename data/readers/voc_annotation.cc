#include "data/readers/voc_annotation.h"

#include <cmath>
#include <optional>
#include <pugixml.hpp>
#include <string_view>

#include "common/base/printable.h"
#include "common/base/text.h"

namespace kumo {
namespace {

// Float32 holds all pixels up to this, with halves.
constexpr double kLargestCoordinate = 1 << 22;
constexpr size_t kShown = 40;  // bytes of a value in a message

std::string_view TextOf(const pugi::xml_node& parent, const char* child) {
  return Trimmed(parent.child_value(child));
}

std::string InQuotes(std::string_view text) { return "\"" + Printable(text, kShown) + "\""; }

Result<float> Coordinate(const pugi::xml_node& box, const char* name) {
  const std::string_view text = TextOf(box, name);
  if (text.empty()) return InvalidArgument(std::string("has no ") + name);
  const std::optional<double> number = ParseNumber<double>(text);
  if (!number || !(std::abs(*number) <= kLargestCoordinate)) {
    return InvalidArgument(std::string(name) + " = " + InQuotes(text) +
                           " is no number of at most 4194304 pixels");
  }
  return static_cast<float>(*number);
}

Result<VocObject> ObjectIn(const pugi::xml_node& node) {
  VocObject object;
  object.name = TextOf(node, "name");
  if (object.name.empty()) return InvalidArgument("has no name");
  const std::string_view difficult = TextOf(node, "difficult");
  if (!difficult.empty() && difficult != "0" && difficult != "1") {
    return InvalidArgument("difficult = " + InQuotes(difficult) + " is neither 0 nor 1");
  }
  object.difficult = difficult == "1";
  const pugi::xml_node box = node.child("bndbox");
  if (!box) return InvalidArgument("has no bndbox");
  KUMO_ASSIGN_OR_RETURN(object.xmin, Coordinate(box, "xmin"));
  KUMO_ASSIGN_OR_RETURN(object.ymin, Coordinate(box, "ymin"));
  KUMO_ASSIGN_OR_RETURN(object.xmax, Coordinate(box, "xmax"));
  KUMO_ASSIGN_OR_RETURN(object.ymax, Coordinate(box, "ymax"));
  return object;
}

}  // namespace

Result<VocAnnotation> ParseVocAnnotation(std::span<const uint8_t> xml) {
  if (std::ssize(xml) > kMaxVocAnnotationBytes) {
    return InvalidArgument("exceeds " + std::to_string(kMaxVocAnnotationBytes) +
                           " bytes, the limit of an image's annotations");
  }
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(xml.data(), xml.size());
  if (!parsed) {
    return InvalidArgument("byte " + std::to_string(parsed.offset) +
                           ": the XML is damaged or cut off (" + parsed.description() + ")");
  }
  const pugi::xml_node root = document.child("annotation");
  if (!root) return InvalidArgument("has no element <annotation>, which Pascal VOC's files have");
  VocAnnotation annotation;
  const pugi::xml_node size = root.child("size");
  // Some programs leave the size out or write 0.
  annotation.width = ParseNumber<int32_t>(TextOf(size, "width")).value_or(0);
  annotation.height = ParseNumber<int32_t>(TextOf(size, "height")).value_or(0);
  if (annotation.width <= 0 || annotation.height <= 0) annotation.width = annotation.height = 0;
  for (const pugi::xml_node node : root.children("object")) {
    Result<VocObject> object = ObjectIn(node);
    if (!object.ok()) {
      return InvalidArgument("object " + std::to_string(annotation.objects.size() + 1) + " " +
                             object.status().message());
    }
    annotation.objects.push_back(std::move(object).value());
  }
  return annotation;
}

}  // namespace kumo
