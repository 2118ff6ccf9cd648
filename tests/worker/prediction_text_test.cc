#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "worker/prediction.h"

namespace kumo {
namespace {

Predictions Some() {
  return {
      "round-7",
      {{"a \"b\",c.png", {{3, "cat", 0.75}, {0, "dog, large", 0.125}}}, {"d.jpg", {{1, "", 1}}}}};
}

TEST(PredictionText, ATableHasEachImagesNameOnce) {
  EXPECT_EQ(TextOf(Some(), "table"),
            "image        class         probability\n"
            "a \"b\",c.png  3 cat         0.7500\n"
            "             0 dog, large  0.1250\n"
            "d.jpg        1             1.0000\n");
}

TEST(PredictionText, CsvQuotesWhatItMust) {
  EXPECT_EQ(TextOf(Some(), "csv"),
            "file,rank,class,name,probability\r\n"
            "\"a \"\"b\"\",c.png\",1,3,cat,0.75\r\n"
            "\"a \"\"b\"\",c.png\",2,0,\"dog, large\",0.125\r\n"
            "d.jpg,1,1,,1\r\n");
}

TEST(PredictionText, JsonLeavesANameOutThatThereIsNot) {
  EXPECT_EQ(TextOf(Some(), "json"),
            "{\"checkpoint\":\"round-7\",\"images\":["
            "{\"file\":\"a \\\"b\\\",c.png\",\"classes\":["
            "{\"class\":3,\"name\":\"cat\",\"probability\":0.75},"
            "{\"class\":0,\"name\":\"dog, large\",\"probability\":0.125}]},"
            "{\"file\":\"d.jpg\",\"classes\":[{\"class\":1,\"probability\":1}]}]}\n");
}

}  // namespace
}  // namespace kumo
