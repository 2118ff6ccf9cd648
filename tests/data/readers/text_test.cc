#include "data/readers/all.h"

#include <cstdint>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/test_files.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TextTest : public testing::Test {
 protected:
  TextTest() {
    request_.images = scratch_ / "text";
    request_.text.window = 4;
    request_.text.validation_share = 0.5;
  }
  void Write(const std::string& text) {
    test::WriteFile(request_.images, test::Bytes(text.begin(), text.end()));
  }
  Result<std::unique_ptr<Dataset>> Open(DataPart part) {
    request_.part = part;
    return OpenText(request_);
  }
  std::unique_ptr<Dataset> Opened(DataPart part) {
    auto opened = Open(part);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    return opened.ok() ? std::move(*opened) : nullptr;
  }
  static std::vector<int32_t> Field(const Dataset& set, const SampleKey& key, int field) {
    Sample sample(set.fields());
    EXPECT_TRUE(set.ReadKey(key, &sample).ok());
    std::vector<int32_t> numbers(sample.field(field).size() / sizeof(int32_t));
    std::memcpy(numbers.data(), sample.field(field).data(), sample.field(field).size());
    return numbers;
  }
  static std::vector<int32_t> Tokens(const Dataset& set, const SampleKey& key) {
    return Field(set, key, 0);
  }

  test::ScratchDirectory scratch_;
  ReaderRequest request_;
};

TEST_F(TextTest, CharactersAreNumberedByTheirCodePoints) {
  Write("b\u00e4a\U0001f600\nb\u00e4a\U0001f600\n");
  const auto set = Opened(DataPart::kValidation);
  ASSERT_TRUE(set);
  EXPECT_EQ(set->classes(), 5);
  EXPECT_THAT(std::vector(set->class_names().begin(), set->class_names().end()),
              ElementsAre("\n", "a", "b", "\u00e4", "\U0001f600"));
  EXPECT_EQ(set->size(), 1);
  EXPECT_THAT(Tokens(*set, {}), ElementsAre(2, 3, 1, 4));
  EXPECT_THAT(Field(*set, {}, 1), ElementsAre(3, 1, 4, 0));
}

TEST_F(TextTest, AByteOrderMarkIsNoCharacter) {
  Write("\ufeffabababababab\n");
  const auto set = Opened(DataPart::kTraining);
  ASSERT_TRUE(set);
  EXPECT_THAT(std::vector(set->class_names().begin(), set->class_names().end()),
              ElementsAre("\n", "a", "b"));
  Write("\ufeffab\xff");
  EXPECT_THAT(Open(DataPart::kTraining).status().message(), HasSubstr("byte 5 of the file"));
}

TEST_F(TextTest, BytesAreThemselves) {
  request_.text.tokens = TextTokens::kBytes;
  Write(std::string("\xff\x00\x80ghabcde", 10));
  const auto set = Opened(DataPart::kTraining);
  ASSERT_TRUE(set);
  EXPECT_EQ(set->classes(), 256);
  EXPECT_TRUE(set->class_names().empty());
  EXPECT_THAT(Tokens(*set, {}), ElementsAre(0xff, 0, 0x80, 'g'));
}

TEST_F(TextTest, ValidationWindowsLieSideBySideInTheLastPart) {
  Write("aaaaaaaaaaaaabcdefghijklmn");  // 13 and 13
  const auto set = Opened(DataPart::kValidation);
  ASSERT_TRUE(set);
  ASSERT_EQ(set->size(), 3);
  for (const int64_t epoch : {0, 5}) {
    EXPECT_THAT(Tokens(*set, {.epoch = epoch, .sample = 0}), ElementsAre(1, 2, 3, 4));
    EXPECT_THAT(Tokens(*set, {.epoch = epoch, .sample = 2}), ElementsAre(9, 10, 11, 12));
    EXPECT_THAT(Field(*set, {.epoch = epoch, .sample = 2}, 1), ElementsAre(10, 11, 12, 13));
  }
}

TEST_F(TextTest, TrainingWindowsAreDrawnBySeedEpochAndSampleAndReachEveryPlace) {
  Write("abcdefghijklmnopqrstuvwxyz");
  request_.text.windows = 40;
  const auto set = Opened(DataPart::kTraining);
  ASSERT_TRUE(set);
  EXPECT_EQ(set->size(), 40);
  std::set<int32_t> begins;
  std::set<std::vector<int32_t>> epochs;
  for (int64_t epoch = 0; epoch < 5; ++epoch) {
    std::vector<int32_t> of_epoch;
    for (int64_t i = 0; i < 40; ++i) {
      const SampleKey key = {7, epoch, i};
      const std::vector<int32_t> tokens = Tokens(*set, key);
      EXPECT_EQ(tokens, Tokens(*set, key));
      EXPECT_EQ(tokens[3], tokens[0] + 3);
      EXPECT_EQ(Field(*set, key, 1)[3], tokens[0] + 4);
      of_epoch.push_back(tokens[0]);
      begins.insert(tokens[0]);
    }
    epochs.insert(of_epoch);
  }
  // 13 letters, the last of which is only a label.
  EXPECT_THAT(begins, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_EQ(epochs.size(), 5u) << "drawn anew";
  EXPECT_NE(Tokens(*set, {7, 0, 0}), Tokens(*set, {8, 0, 0})) << "of these two seeds";
}

TEST_F(TextTest, MeasuresWhatItWouldOpenPlainOrPacked) {
  const std::string text = "in the beginning was the word, and the word was with";
  for (const bool packed : {false, true}) {
    const test::Bytes bytes(text.begin(), text.end());
    test::WriteFile(request_.images, packed ? test::Gzip(bytes) : bytes);
    for (const DataPart part : {DataPart::kTraining, DataPart::kValidation}) {
      for (const int64_t limit : {0, 2}) {
        request_.limit = limit;
        const auto set = Opened(part);
        ASSERT_TRUE(set);
        const auto measured = MeasureText(request_);
        ASSERT_TRUE(measured.ok());
        EXPECT_EQ(measured->samples, set->size());
        EXPECT_EQ(measured->fields, set->fields());
        EXPECT_EQ(set->size(), limit == 0 ? 6 : 2);
      }
    }
  }
}

TEST_F(TextTest, WhatIsNotUtf8IsNamedByLineAndByte) {
  for (const char* bad : {"ab\ncd\xff"
                          "efghijklmnop",
                          "ab\ncd\xe2\x82", "ab\ncd\xed\xa0\x80xyzxyz"}) {
    Write(bad);
    const auto opened = Open(DataPart::kTraining);
    EXPECT_EQ(opened.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(opened.status().message(),
                HasSubstr("text:2: byte 5 of the file is not UTF-8; use data.tokens = bytes"));
  }
}

// The file is read in pieces of 1 MiB, whose borders lie within characters.
TEST_F(TextTest, ALongTextIsTheSameCharacters) {
  constexpr int64_t kCharacters = 1 << 20;  // of 3 bytes
  std::string text = "\n";
  for (int64_t i = 1; i < kCharacters; ++i) {
    const auto low = static_cast<char>(0x80 + i * i % 61);
    text += {'\xe2', '\x82', low};
  }
  Write(text);
  request_.text.window = 1 << 10;
  const auto set = Opened(DataPart::kValidation);
  ASSERT_TRUE(set);
  EXPECT_EQ(set->classes(), 1 + 31) << "squares modulo 61";
  std::vector<std::string> names(set->class_names().begin(), set->class_names().end());
  for (const int64_t sample : {int64_t{0}, set->size() - 1}) {
    const std::vector<int32_t> tokens = Tokens(*set, {.sample = sample});
    for (int64_t i = 0; i < request_.text.window; ++i) {
      const int64_t place = kCharacters / 2 + sample * request_.text.window + i;
      const auto low = static_cast<char>(0x80 + place * place % 61);
      ASSERT_EQ(names[tokens[i]], (std::string{'\xe2', '\x82', low})) << place;
    }
  }
  Write(text + "\xff");
  EXPECT_THAT(Open(DataPart::kTraining).status().message(),
              HasSubstr("text:2: byte " + std::to_string(text.size()) + " of the file"));
}

// A line of /proc/self/status, in bytes.
int64_t OfThisProcess(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kib = 0;
    if (word == key + ":" && status >> kib) return kib << 10;
  }
  return 0;
}

// Neither the file nor the tokens of the other part are held beside those of the part.
TEST_F(TextTest, OpeningTakesNoMoreMemoryThanIsMeasured) {
#ifdef KUMO_SANITIZED
  GTEST_SKIP() << "sanitizers take memory of their own";
#endif
  constexpr int64_t kSlack = int64_t{12} << 20;
  std::string text;
  for (int64_t i = 0; i < int64_t{16} << 20; ++i) text += static_cast<char>('a' + i * i % 23);
  Write(text);
  text = {};
  for (const TextTokens tokens : {TextTokens::kBytes, TextTokens::kCharacters}) {
    request_.text.tokens = tokens;
    const auto measured = MeasureText(request_);
    ASSERT_TRUE(measured.ok());
    if (!(std::ofstream("/proc/self/clear_refs") << "5" << std::flush)) {
      GTEST_SKIP() << "the peak of a process's memory cannot be reset here";
    }
    const int64_t before = OfThisProcess("VmRSS");
    const auto set = Opened(DataPart::kTraining);
    ASSERT_TRUE(set);
    EXPECT_LT(OfThisProcess("VmHWM") - before, measured->bytes + kSlack);
  }
}

TEST_F(TextTest, ATextThatIsTooShortIsRefused) {
  for (const char* text : {"", "a", "abcdefghi"}) {
    Write(text);
    EXPECT_THAT(Open(DataPart::kTraining).status().message(),
                HasSubstr("decrease data.window, change data.validation_share"))
        << text;
  }
  Write("abcdefghij");
  EXPECT_TRUE(Open(DataPart::kTraining).ok());
  request_.images = scratch_ / "none";
  EXPECT_EQ(Open(DataPart::kTraining).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace kumo
