#include <gtest/gtest.h>

#include "common/settings/output_format.h"
#include "worker/inference/prediction.h"

namespace kumo {
namespace {

Predictions Some() {
  return {
      "round-7",
      {{"a \"b\",c.png", {{3, "cat", 0.75}, {0, "dog, large", 0.125}}}, {"d.jpg", {{1, "", 1}}}}};
}

TEST(PredictionText, ATableHasEachSamplesNameOnce) {
  EXPECT_EQ(TextOf(Some(), AnswerFormat::kTable),
            "sample       class         probability\n"
            "a \"b\",c.png  3 cat         0.7500\n"
            "             0 dog, large  0.1250\n"
            "d.jpg        1             1.0000\n");
}

TEST(PredictionText, CsvQuotesWhatItMust) {
  EXPECT_EQ(TextOf(Some(), AnswerFormat::kCsv),
            "file,rank,class,name,probability\r\n"
            "\"a \"\"b\"\",c.png\",1,3,cat,0.75\r\n"
            "\"a \"\"b\"\",c.png\",2,0,\"dog, large\",0.125\r\n"
            "d.jpg,1,1,,1\r\n");
}

TEST(PredictionText, JsonLeavesANameOutThatThereIsNot) {
  EXPECT_EQ(TextOf(Some(), AnswerFormat::kJson),
            "{\"checkpoint\":\"round-7\",\"samples\":["
            "{\"file\":\"a \\\"b\\\",c.png\",\"classes\":["
            "{\"class\":3,\"name\":\"cat\",\"probability\":0.75},"
            "{\"class\":0,\"name\":\"dog, large\",\"probability\":0.125}]},"
            "{\"file\":\"d.jpg\",\"classes\":[{\"class\":1,\"probability\":1}]}],"
            "\"damaged\":[]}\n");
}

TEST(PredictionText, DamagedImagesAreListedInJson) {
  Predictions none = {"round-7", {}, {"a/cut.png: the PNG is damaged"}};
  EXPECT_EQ(TextOf(none, AnswerFormat::kJson),
            "{\"checkpoint\":\"round-7\",\"samples\":[],"
            "\"damaged\":[\"a/cut.png: the PNG is damaged\"]}\n");
  EXPECT_EQ(TextOf(none, AnswerFormat::kTable), "");
}

TEST(PredictionText, MasksAreNamed) {
  Predictions masks = {"round-7",
                       {{"a.jpg", {}, {}, "out/a.png"}, {"b,c.jpg", {}, {}, "out/b,c.png"}}};
  EXPECT_EQ(TextOf(masks, AnswerFormat::kTable),
            "sample   mask\n"
            "a.jpg    out/a.png\n"
            "b,c.jpg  out/b,c.png\n");
  EXPECT_EQ(TextOf(masks, AnswerFormat::kCsv),
            "file,mask\r\na.jpg,out/a.png\r\n\"b,c.jpg\",\"out/b,c.png\"\r\n");
  EXPECT_EQ(TextOf(masks, AnswerFormat::kJson),
            "{\"checkpoint\":\"round-7\",\"samples\":[{\"file\":\"a.jpg\",\"mask\":\"out/a.png\"},"
            "{\"file\":\"b,c.jpg\",\"mask\":\"out/b,c.png\"}],\"damaged\":[]}\n");
}

TEST(PredictionDamage, IsAnErrorUnlessItIsSkippedAndThereAreOtherImages) {
  Predictions predictions = Some();
  EXPECT_TRUE(DamageIn(predictions).ok());
  predictions.damaged = {"cut.png: the PNG is damaged"};
  EXPECT_EQ(DamageIn(predictions).code(), StatusCode::kDataLoss);
  EXPECT_EQ(DamageIn(predictions).message(),
            "1 of 3 images cannot be read; repair or remove these files, or skip damaged "
            "images with --set data.damaged=skip");
  predictions.skips_damaged = true;
  EXPECT_TRUE(DamageIn(predictions).ok());
  predictions.samples.clear();
  EXPECT_EQ(DamageIn(predictions).message(),
            "1 of 1 image cannot be read; repair or remove these files");
}

TEST(PredictionText, NumbersStandBesideTheirSample) {
  const Predictions numbers = {"round-7",
                               {{"a.ctf:1", {}, {0.5f, -2}}, {"a.ctf:2", {}, {3, 1e9f}}}};
  EXPECT_EQ(TextOf(numbers, AnswerFormat::kTable), "a.ctf:1  0.5 -2\na.ctf:2  3 1e+09\n");
  EXPECT_EQ(TextOf(numbers, AnswerFormat::kCsv),
            "file,index,number\r\na.ctf:1,0,0.5\r\na.ctf:1,1,-2\r\n"
            "a.ctf:2,0,3\r\na.ctf:2,1,1e+09\r\n");
  EXPECT_EQ(TextOf(numbers, AnswerFormat::kJson),
            "{\"checkpoint\":\"round-7\",\"samples\":[{\"file\":\"a.ctf:1\",\"numbers\":[0.5,-2]},"
            "{\"file\":\"a.ctf:2\",\"numbers\":[3,1e+09]}],\"damaged\":[]}\n");
}

}  // namespace
}  // namespace kumo
