#include "data/readers/voc_annotation.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/detection_files.h"

namespace kumo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Result<VocAnnotation> Parse(const std::string& xml) {
  return ParseVocAnnotation(std::span(reinterpret_cast<const uint8_t*>(xml.data()), xml.size()));
}

std::string MessageFor(const std::string& xml) {
  const auto parsed = Parse(xml);
  EXPECT_FALSE(parsed.ok()) << xml;
  EXPECT_EQ(parsed.status().code(), StatusCode::kInvalidArgument);
  return parsed.status().message();
}

// An object with this in the place of its name and box.
std::string WithObject(const std::string& content) {
  return "<annotation><object>" + content + "</object></annotation>";
}

constexpr char kBox[] = "<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>3</xmax><ymax>4</ymax></bndbox>";

TEST(VocAnnotationTest, ObjectsAreReadInTheirOrder) {
  const auto parsed = Parse(test::VocXml(
      500, 375, {{"dog", {48, 240, 195, 371}}, {"hot dog", {8.5, 12, 352, 498}, true}}));
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed->width, 500);
  EXPECT_EQ(parsed->height, 375);
  EXPECT_THAT(parsed->objects, ElementsAre(VocObject{"dog", 48, 240, 195, 371, false},
                                           VocObject{"hot dog", 8.5, 12, 352, 498, true}));
}

TEST(VocAnnotationTest, OtherElementsAndMissingSizesAreAccepted) {
  const auto parsed = Parse(
      "\xef\xbb\xbf<?xml version='1.0'?><!DOCTYPE annotation [<!ENTITY a 'b'>]><!-- dogs -->"
      "<annotation verified='no'><folder/><segmented>0</segmented><object><part><name>head</name>"
      "<bndbox/></part><name> d&amp;g\n</name><bndbox><ymax> 4 </ymax><xmin>1</xmin><ymin>2</ymin>"
      "<xmax>3e0</xmax></bndbox></object></annotation>\n\n");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed->width, 0);
  EXPECT_EQ(parsed->height, 0);
  EXPECT_THAT(parsed->objects, ElementsAre(VocObject{"d&g", 1, 2, 3, 4, false}));
  const auto none = Parse("<annotation><size><width>x</width></size></annotation>");
  ASSERT_TRUE(none.ok());
  EXPECT_THAT(none->objects, IsEmpty());
}

TEST(VocAnnotationTest, FaultsNameTheObjectAndTheValue) {
  EXPECT_THAT(MessageFor("<html></html>"), HasSubstr("<annotation>"));
  EXPECT_THAT(MessageFor(WithObject(kBox)), HasSubstr("object 1 has no name"));
  EXPECT_THAT(MessageFor(WithObject("<name> </name>")), HasSubstr("object 1 has no name"));
  EXPECT_THAT(MessageFor(WithObject("<name>dog</name>")), HasSubstr("object 1 has no bndbox"));
  EXPECT_THAT(MessageFor(WithObject("<name>dog</name><bndbox><xmin>1</xmin></bndbox>")),
              HasSubstr("object 1 has no ymin"));
  for (const char* value : {"one", "nan", "inf", "-inf", "1e30", "1,5", "0x10", "4194305"}) {
    EXPECT_THAT(MessageFor(WithObject("<name>dog</name><bndbox><xmin>" + std::string(value) +
                                      "</xmin></bndbox>")),
                HasSubstr("xmin = \"" + std::string(value) + "\""));
  }
  EXPECT_THAT(
      MessageFor(WithObject("<name>dog</name><difficult>2</difficult>" + std::string(kBox))),
      HasSubstr("difficult = \"2\""));
}

TEST(VocAnnotationTest, XmlThatIsCutOffAnywhereIsRefused) {
  const std::string xml =
      test::VocXml(500, 375, {{"dog", {48, 240, 195, 371}}, {"cat", {8, 12, 352, 498}, true}});
  const size_t end = xml.rfind('>');
  for (size_t size = 0; size <= end; ++size) {
    EXPECT_FALSE(Parse(xml.substr(0, size)).ok()) << xml.substr(0, size);
  }
}

TEST(VocAnnotationTest, HostileXmlCostsNoMoreThanItsSize) {
  // Entities that would grow to a gigabyte are no entities.
  std::string lol = "<!DOCTYPE lolz [<!ENTITY lol 'lol'>";
  for (int i = 1; i < 10; ++i) {
    lol += "<!ENTITY lol" + std::to_string(i) + " '";
    for (int k = 0; k < 10; ++k) lol += "&lol" + (i == 1 ? "" : std::to_string(i - 1)) + ";";
    lol += "'>";
  }
  const auto parsed = Parse(lol + "]>" + WithObject("<name>&lol9;</name>" + std::string(kBox)));
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed->objects[0].name, "&lol9;");
  // Depth.
  std::string deep;
  for (int i = 0; i < 200'000; ++i) deep += "<a>";
  EXPECT_FALSE(Parse(deep).ok());
  for (int i = 0; i < 200'000; ++i) deep += "</a>";
  EXPECT_TRUE(Parse("<annotation>" + deep + "</annotation>").ok());
  std::string groups = "<!DOCTYPE ";
  for (int i = 0; i < 300'000; ++i) groups += "<!DOCTYPE ";
  EXPECT_FALSE(Parse(groups).ok());
  // Length.
  const std::string blanks(kMaxVocAnnotationBytes, ' ');
  EXPECT_THAT(MessageFor("<annotation>" + blanks + "</annotation>"), HasSubstr("4194304 bytes"));
}

}  // namespace
}  // namespace kumo
