#include "data/readers/coco_annotations.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/readers/annotation_room.h"
#include "tests/data/detection_files.h"

namespace kumo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Reads pieces of that many bytes.
Result<CocoAnnotations> ParseJson(const std::string& json, size_t piece = 1 << 20) {
  size_t at = 0;
  return ParseCocoAnnotations([&](std::span<uint8_t> out) -> Result<size_t> {
    const size_t size = std::min({out.size(), piece, json.size() - at});
    std::ranges::copy(json.substr(at, size), out.begin());
    at += size;
    return size;
  });
}

std::string FaultOf(const std::string& json) {
  const auto parsed = ParseJson(json);
  EXPECT_FALSE(parsed.ok()) << json;
  EXPECT_EQ(parsed.status().code(), StatusCode::kInvalidArgument);
  return parsed.status().message();
}

const std::string kJson = test::CocoJson(
    {{"a.png", {{1, {1.5, 2, 3, 4}}, {0, {0, 0, 10, 10}, true}}}, {"b.png", {}, {3, 5, 6}}}, 2);

TEST(CocoAnnotationsTest, ImagesObjectsAndCategoriesAreRead) {
  const auto parsed = ParseJson(kJson);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_THAT(parsed->images,
              ElementsAre(CocoImage{1000, "a.png", 20, 30}, CocoImage{999, "b.png", 5, 6}));
  EXPECT_THAT(parsed->objects, ElementsAre(CocoObject{1000, 3, {1.5, 2, 4.5, 6}, false},
                                           CocoObject{1000, 1, {0, 0, 10, 10}, true}));
  EXPECT_THAT(parsed->categories, ElementsAre(CocoCategory{1, "z"}, CocoCategory{3, "y"}));
}

TEST(CocoAnnotationsTest, AByteOrderMarkIsLeftOut) {
  const auto parsed = ParseJson("\xEF\xBB\xBF" + kJson);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed->images.size(), 2u);
}

TEST(CocoAnnotationsTest, PartsMayComeInAnyOrderWithOtherFields) {
  const auto parsed = ParseJson(
      R"({"annotations":[{"bbox":[0,0,1,1],"extra":{"id":[1,{"image_id":"x"}]},"iscrowd":true,)"
      R"("category_id":0,"image_id":-3,"caption":null,"counts":"text"}],"licenses":[[],{}],)"
      R"("categories":[{"name":"d\u00e9","id":0}],"images":[{"id":-3,"file_name":"x\/y.jpg"}]})");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_THAT(parsed->images, ElementsAre(CocoImage{-3, "x/y.jpg", 0, 0}));
  EXPECT_THAT(parsed->objects, ElementsAre(CocoObject{-3, 0, {0, 0, 1, 1}, true}));
  EXPECT_EQ(parsed->categories[0].name, "d\xc3\xa9");
}

TEST(CocoAnnotationsTest, JsonThatIsCutOffAnywhereIsRefused) {
  for (size_t size = 0; size < kJson.size(); ++size) {
    EXPECT_FALSE(ParseJson(kJson.substr(0, size)).ok()) << kJson.substr(0, size);
  }
}

TEST(CocoAnnotationsTest, FaultsNameTheEntryAndTheField) {
  const auto with_object = [](const std::string& object) {
    return R"({"images":[{"id":1,"file_name":"a"}],"categories":[],"annotations":[)" + object +
           "]}";
  };
  EXPECT_THAT(FaultOf("[]"), HasSubstr("\"images\""));
  EXPECT_THAT(FaultOf("3"), HasSubstr("no JSON object"));
  EXPECT_THAT(FaultOf(R"({"images":[],"categories":[]})"), HasSubstr("\"annotations\""));
  EXPECT_THAT(FaultOf(R"({"images":{"id":1}})"), HasSubstr("\"images\" is no array"));
  EXPECT_THAT(FaultOf(R"({"images":7})"), HasSubstr("\"images\" is no array"));
  EXPECT_THAT(FaultOf(R"({"images":[],"images":[]})"), HasSubstr("twice"));
  EXPECT_THAT(FaultOf(R"({"images":[{"id":1,"file_name":"a"},5]})"),
              HasSubstr("images[1] is no object"));
  EXPECT_THAT(FaultOf(R"({"images":[{"id":1}]})"), HasSubstr("images[0].file_name is missing"));
  EXPECT_THAT(FaultOf(R"({"images":[{"id":"1","file_name":"a"}]})"), HasSubstr("images[0].id"));
  EXPECT_THAT(FaultOf(R"({"images":[{"id":1.5,"file_name":"a"}]})"), HasSubstr("no integer"));
  EXPECT_THAT(FaultOf(R"({"images":[{"id":18446744073709551615,"file_name":"a"}]})"),
              HasSubstr("no integer"));
  EXPECT_THAT(FaultOf(R"({"images":[{"id":1,"file_name":""}]})"),
              HasSubstr("file_name is no name"));
  EXPECT_THAT(FaultOf(with_object(R"({"image_id":1,"category_id":1})")),
              HasSubstr("annotations[0].bbox is missing"));
  for (const char* box : {"[1,2,3]", "[1,2,3,4,5]", "[]", "5", "null", R"(["1",2,3,4])",
                          "[[1,2,3,4]]", "[1,2,3,1e30]", "[1,2,3,null]"}) {
    EXPECT_THAT(
        FaultOf(with_object(R"({"image_id":1,"category_id":1,"bbox":)" + std::string(box) + "}")),
        HasSubstr("annotations[0].bbox"))
        << box;
  }
  EXPECT_THAT(FaultOf(R"({"images":[],})"), HasSubstr("byte 14"));
}

TEST(CocoAnnotationsTest, HostileJsonCostsNoMoreThanItsSize) {
  EXPECT_THAT(FaultOf(R"({"images":)" + std::string(100'000, '[')), HasSubstr("images[0] is no"));
  EXPECT_THAT(FaultOf(R"({"other":)" + std::string(100'000, '[')), HasSubstr("levels"));
  EXPECT_THAT(FaultOf(R"({"other":")" + std::string(17 << 20, 'a') + R"("})"),
              HasSubstr("16777216 bytes"));
  EXPECT_THAT(FaultOf("{" + std::string(17 << 20, ' ')), HasSubstr("16777216 bytes"));
}

// Reads the start, and then entry(0), entry(1), ..., for ever. Returns the refusal, and the entries
// that were read.
template <typename Entry>
std::pair<std::string, int64_t> EndlessJson(const std::string& start, const Entry& entry,
                                            int64_t room = INT64_MAX) {
  std::string text = start;
  int64_t entries = 0;
  const auto parsed = ParseCocoAnnotations(
      [&](std::span<uint8_t> out) -> Result<size_t> {
        if (entries > 1'000'000) return DataLoss("read for ever");
        while (text.size() < out.size()) text += entry(entries++);
        std::copy_n(text.begin(), out.size(), out.begin());
        text.erase(0, out.size());
        return out.size();
      },
      room);
  return {parsed.status().message(), entries};
}

TEST(CocoAnnotationsTest, JsonWithoutEndIsRefusedAtItsFirstFault) {
  const std::string images = R"({"images":[)";
  const auto image = [](int64_t id, const std::string& name) {
    return R"({"id":)" + std::to_string(id) + R"(,"file_name":")" + name + R"("},)";
  };
  auto [refusal, entries] = EndlessJson(images, [&](int64_t) { return image(7, "a"); });
  EXPECT_THAT(refusal, HasSubstr("images[1].id is 7, and so is the id of another image"));
  EXPECT_LE(entries, 20'000) << "one piece";
  std::tie(refusal, entries) =
      EndlessJson(R"({"categories":[)", [&](int64_t) { return R"({"id":3,"name":"x"},)"; });
  EXPECT_THAT(refusal, HasSubstr("categories[1].id is 3, and so is the id of another category"));

  const std::string objects = R"({"annotations":[)";
  const auto object = [](int64_t image_id) {
    return R"({"image_id":)" + std::to_string(image_id) + R"(,"category_id":1,"bbox":[0,0,1,1]},)";
  };
  std::tie(refusal, entries) = EndlessJson(objects, [&](int64_t i) { return object(i % 2); });
  EXPECT_THAT(refusal, HasSubstr("annotations[131072]: image 0 has more than 65536 objects"));
  EXPECT_LE(entries, 140'000);

  constexpr int64_t kRoom = 1 << 20;
  const auto too_much = HasSubstr("would exceed 1.00 MiB of memory");
  std::tie(refusal, entries) = EndlessJson(
      images, [&](int64_t i) { return image(i, "a"); }, kRoom);
  EXPECT_THAT(refusal, too_much);
  EXPECT_LE(entries, 20'000);
  std::tie(refusal, entries) = EndlessJson(
      images, [&](int64_t i) { return image(i, std::string(4000, 'a')); }, kRoom);
  EXPECT_THAT(refusal, too_much);
  EXPECT_LE(entries, 400) << "names count";
  std::tie(refusal, entries) = EndlessJson(objects, object, kRoom);
  EXPECT_THAT(refusal, too_much);
  EXPECT_LE(entries, 20'000);
  std::tie(refusal, entries) = EndlessJson(
      R"({"categories":[)",
      [&](int64_t i) { return R"({"id":)" + std::to_string(i) + R"(,"name":"x"},)"; }, kRoom);
  EXPECT_THAT(refusal, too_much);
  EXPECT_LE(entries, 20'000);
}

TEST(CocoAnnotationsTest, ErrorsOfTheSourceAreTheResult) {
  int calls = 0;
  const auto parsed = ParseCocoAnnotations([&](std::span<uint8_t> out) -> Result<size_t> {
    if (calls++ > 0) return DataLoss("the disk is broken");
    std::ranges::fill(out, uint8_t{' '});
    return out.size();
  });
  EXPECT_EQ(parsed.status().code(), StatusCode::kDataLoss);
  EXPECT_THAT(parsed.status().message(), HasSubstr("the disk is broken"));
}

TEST(AnnotationRoom, TakesWhatFitsAndNothingMore) {
  AnnotationRoom room(100);
  EXPECT_TRUE(room.Take(60).ok());
  EXPECT_FALSE(room.Take(41).ok());
  EXPECT_TRUE(room.Take(40).ok()) << "what did not fit was not counted";
  EXPECT_THAT(room.Take(1).message(), testing::HasSubstr("would exceed 100 B of memory"));
}

}  // namespace
}  // namespace kumo
