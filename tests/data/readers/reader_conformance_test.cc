// What every reader of the list must do; a new reader adds its sample files here.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/readers/registry.h"
#include "tests/data/detection_files.h"
#include "tests/data/image_bytes.h"
#include "tests/data/pixel_reference.h"
#include "tests/data/test_files.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

constexpr int kConformanceClasses = 5;
constexpr int64_t kConformanceSamples = 23;

struct SampleFiles {
  test::Bytes images;
  test::Bytes labels = {};
  test::NamedFiles beside = {};  // what `images` names
  // Where it is cut off behind a sample nobody can tell that there were more.
  std::function<bool(const test::Bytes& cut)> may_end = [](const test::Bytes&) { return false; };
  size_t step = 1;  // bytes from one damaged place to the next
};

bool EndsWithALine(const test::Bytes& text) { return !text.empty() && text.back() == '\n'; }

std::vector<SampleFiles> ImageMap() {
  SampleFiles files;
  files.beside = test::ClassFolders(kConformanceSamples, kConformanceClasses, {3, 4, 5});
  for (int64_t i = 0; i < kConformanceSamples; ++i) {
    const std::string line =
        files.beside[i].first + "\t" + std::to_string(i % kConformanceClasses) + "\n";
    files.images.insert(files.images.end(), line.begin(), line.end());
  }
  files.may_end = EndsWithALine;
  return {files};
}

std::vector<SampleFiles> ImageFolder() {
  return {{test::Archive(test::Pack::kTarGz,
                         test::ClassFolders(kConformanceSamples, kConformanceClasses, {3, 4, 5}))}};
}

// An object in each image.
std::vector<SampleFiles> Voc() {
  std::vector<test::VocImage> images;
  for (int64_t i = 0; i < kConformanceSamples; ++i) {
    const double end = 2 + static_cast<double>(i % 3);
    images.push_back(
        {std::to_string(100 + i),
         {{"class" + std::to_string(i % kConformanceClasses), {1, 2, end, 4}, i % 2 == 0}},
         {3, 4, 5}});
  }
  SampleFiles files{test::Archive(test::Pack::kTarGz, test::VocLayout("VOC/", images, "trainval"))};
  files.step = 11;
  return {files};
}

std::vector<SampleFiles> Coco() {
  test::NamedFiles images;
  std::vector<test::CocoEntry> entries;
  for (int64_t i = 0; i < kConformanceSamples; ++i) {
    const std::string name = std::to_string(100 + i) + ".png";
    images.emplace_back(name, test::Png({3, 4, 5}, test::ImagePixels(i, {3, 4, 5})));
    entries.push_back(
        {name, {{i % kConformanceClasses, {1, 1, 2, 2 + static_cast<double>(i % 2)}}}, {3, 4, 5}});
  }
  SampleFiles files{test::Archive(test::Pack::kTarGz, images),
                    test::ToBytes(test::CocoJson(entries, kConformanceClasses))};
  files.step = 5;
  return {files};
}

// Rows of an image, a class and a number.
std::vector<SampleFiles> Table() {
  SampleFiles files;
  files.beside = test::ClassFolders(kConformanceSamples, kConformanceClasses, {3, 4, 5});
  std::string text = "image,label,\"size, in metres\"\n";
  for (int64_t i = 0; i < kConformanceSamples; ++i) {
    const std::string quote = i % 2 == 0 ? "\"" : "";
    text += quote + files.beside[i].first + quote + "," + std::to_string(i % kConformanceClasses) +
            "," + std::to_string(i) + ".5\r\n";
  }
  files.images = test::ToBytes(text);
  files.may_end = EndsWithALine;
  return {files};
}

// Each mask has pixels of all classes.
std::vector<SampleFiles> Masks() {
  test::NamedFiles images, masks;
  for (int64_t i = 0; i < kConformanceSamples; ++i) {
    const std::string name = std::to_string(100 + i) + ".png";
    images.emplace_back(name, test::Png({3, 4, 5}, test::ImagePixels(i, {3, 4, 5})));
    masks.emplace_back(name, test::Png({1, 4, 5}, test::Labels(20, kConformanceClasses)));
  }
  SampleFiles files{test::Archive(test::Pack::kTarGz, images),
                    test::Archive(test::Pack::kTarGz, masks)};
  files.step = 5;
  return {files};
}

// One byte of a label, then the pixels.
std::vector<SampleFiles> Cifar() {
  constexpr size_t kBytes = 3073;
  SampleFiles files{test::Pattern(kConformanceSamples * kBytes)};
  for (int64_t i = 0; i < kConformanceSamples; ++i) {
    files.images[i * kBytes] = static_cast<uint8_t>(i % kConformanceClasses);
  }
  files.may_end = [](const test::Bytes& cut) { return !cut.empty() && cut.size() % kBytes == 0; };
  return {files};
}

std::vector<SampleFiles> Ctf() {
  std::string text;
  for (int64_t i = 0; i < kConformanceSamples; ++i) {
    text += "|labels " + std::to_string(i % kConformanceClasses) + ":1 |features";
    for (int64_t j = 0; j < 4; ++j) text += " " + std::to_string(i * 10 + j) + ".5";
    text += "\n";
  }
  SampleFiles plain{test::Bytes(text.begin(), text.end())};
  plain.may_end = EndsWithALine;
  return {plain, {test::Gzip(plain.images)}};
}

// For each reader: the content of valid files that hold kConformanceSamples samples of
// kConformanceClasses classes.
const std::map<std::string, std::function<std::vector<SampleFiles>()>, std::less<>>& Samples() {
  static const auto* samples =
      new std::map<std::string, std::function<std::vector<SampleFiles>()>, std::less<>>{
          {"image_folder", ImageFolder},
          {"image_map", ImageMap},
          {"cifar", Cifar},
          {"ctf", Ctf},
          {"voc", Voc},
          {"coco", Coco},
          {"table", Table},
          {"masks", Masks},
          {"idx", [] {
             const test::Bytes images =
                 test::Idx({kConformanceSamples, 6, 5}, test::Pattern(kConformanceSamples * 30));
             const test::Bytes labels = test::Idx(
                 {kConformanceSamples}, test::Labels(kConformanceSamples, kConformanceClasses));
             return std::vector<SampleFiles>{{images, labels},
                                             {test::Gzip(images), test::Gzip(labels)}};
           }}};
  return *samples;
}

// Every byte of small files, some of larger ones.
size_t StepOver(const SampleFiles& files, const test::Bytes& file) {
  return file.size() < 20000 ? files.step : 97;
}

class ReaderConformanceTest : public testing::TestWithParam<Reader> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(Samples().contains(WordOf(GetParam().id)))
        << "add sample files of the reader " << WordOf(GetParam().id) << " to this test";
    files_ = Samples().find(WordOf(GetParam().id))->second();
    ASSERT_FALSE(files_.empty());
  }

  Result<std::unique_ptr<Dataset>> Open(const SampleFiles& files, int64_t limit = 0) {
    // Thousands of damaged files differ in one of the two: only that one is written.
    if (!written_ || files.images != written_->images) {
      test::WriteFile(request_.images, files.images);
    }
    if (!written_ || files.labels != written_->labels) {
      test::WriteFile(request_.labels, files.labels);
    }
    if (!written_) test::WriteFiles(scratch_.path(), files.beside);
    written_ = files;
    request_.classes = kConformanceClasses;
    request_.limit = limit;
    return GetParam().open(request_);
  }

  test::ScratchDirectory scratch_;
  ReaderRequest request_{scratch_ / "images", scratch_ / "labels", kConformanceClasses, 0};
  std::vector<SampleFiles> files_;
  std::optional<SampleFiles> written_;
};

TEST_P(ReaderConformanceTest, MeasuresWhatItWouldOpen) {
  for (const SampleFiles& files : files_) {
    for (const int64_t limit : {0, 7, 1000}) {
      const auto opened = Open(files, limit);
      ASSERT_TRUE(opened.ok()) << opened.status().message();
      const auto measured = GetParam().measure(request_);
      ASSERT_TRUE(measured.ok()) << measured.status().message();
      EXPECT_EQ(measured->samples, (*opened)->size());
      EXPECT_EQ(measured->fields, (*opened)->fields());
    }
  }
}

TEST_P(ReaderConformanceTest, IsDeterministic) {
  for (const SampleFiles& files : files_) {
    const auto first = Open(files);
    const auto second = Open(files);
    ASSERT_TRUE(first.ok()) << first.status().message();
    ASSERT_TRUE(second.ok());
    EXPECT_EQ(first.value()->size(), kConformanceSamples);
    EXPECT_EQ(first.value()->classes(), kConformanceClasses);
    EXPECT_EQ(test::ReadAll(*first.value()), test::ReadAll(*second.value()));
    EXPECT_EQ(test::ReadAll(*first.value()), test::ReadAll(*first.value()));
  }
}

TEST_P(ReaderConformanceTest, LabelsLieInsideTheClasses) {
  for (const SampleFiles& files : files_) {
    const auto dataset = Open(files);
    ASSERT_TRUE(dataset.ok());
    EXPECT_THAT(test::ReadAll(*dataset.value()).labels,
                testing::Each(testing::AllOf(testing::Ge(0), testing::Lt(kConformanceClasses))));
    request_.classes = kConformanceClasses - 1;
    const auto fewer = GetParam().open(request_);
    // Masks are seen when they are read.
    EXPECT_TRUE(!fewer.ok() || test::ReadAll(**fewer) == test::Contents());
  }
}

TEST_P(ReaderConformanceTest, ClassesOfSamplesAreTheirLabelsIfTheyHaveOneEach) {
  for (const SampleFiles& files : files_) {
    const auto dataset = Open(files);
    ASSERT_TRUE(dataset.ok());
    const Field& labels = dataset.value()->fields()[test::LabelsField(*dataset.value())];
    if (labels.list || labels.kind == FieldKind::kMask) {
      EXPECT_THAT(dataset.value()->SampleClasses(), testing::IsEmpty());
    } else {
      EXPECT_EQ(dataset.value()->SampleClasses(), test::ReadAll(*dataset.value()).labels);
    }
  }
}

TEST_P(ReaderConformanceTest, AnySubsetInAnyOrderReadsTheSameSamples) {
  const auto opened = Open(files_.front());
  ASSERT_TRUE(opened.ok());
  const Dataset& dataset = *opened.value();
  const test::Contents all = test::ReadAll(dataset);
  const int64_t size = dataset.fields()[0].bytes();
  Sample sample(dataset.fields());
  for (const int64_t index : {22, 0, 7, 7, 13}) {
    ASSERT_TRUE(dataset.Read(index, &sample).ok());
    const std::vector<int32_t> labels = test::LabelsOf(dataset, sample);
    EXPECT_TRUE(std::ranges::equal(
        labels, std::span(all.labels).subspan(index * labels.size(), labels.size())));
    EXPECT_TRUE(
        std::ranges::equal(sample.pixels(0), std::span(all.pixels).subspan(index * size, size)));
  }
}

TEST_P(ReaderConformanceTest, LimitKeepsThePrefix) {
  for (const SampleFiles& files : files_) {
    const auto whole = Open(files);
    const auto part = Open(files, 9);
    ASSERT_TRUE(whole.ok());
    ASSERT_TRUE(part.ok());
    ASSERT_EQ(part.value()->size(), 9);
    test::Contents expected = test::ReadAll(*whole.value());
    expected.pixels.resize(9 * whole.value()->fields()[0].bytes());
    expected.labels.resize(expected.labels.size() / kConformanceSamples * 9);
    expected.others.resize(expected.others.size() / kConformanceSamples * 9);
    EXPECT_EQ(test::ReadAll(*part.value()), expected);
  }
}

TEST_P(ReaderConformanceTest, FileCutOffAtEveryByteIsRefused) {
  for (const SampleFiles& files : files_) {
    for (auto part : {&SampleFiles::images, &SampleFiles::labels}) {
      for (size_t size = 0; size < (files.*part).size(); size += StepOver(files, files.*part)) {
        SampleFiles cut = files;
        (cut.*part).resize(size);
        if (files.may_end(cut.*part)) continue;
        const auto dataset = Open(cut);
        ASSERT_FALSE(dataset.ok()) << "cut off to " << size << " bytes";
        EXPECT_THAT(dataset.status().message(), testing::HasSubstr(scratch_.path()));
      }
    }
  }
}

TEST_P(ReaderConformanceTest, DamagedBytesAreRefusedOrStillBounded) {
  // Where a format has no checksum a changed pixel goes unnoticed; whatever is accepted must be a
  // set that can be read and keeps its promises.
  for (const SampleFiles& files : files_) {
    for (auto part : {&SampleFiles::images, &SampleFiles::labels}) {
      for (size_t byte = 0; byte < (files.*part).size(); byte += StepOver(files, files.*part)) {
        for (const int change : {0x01, 0x80, 0xff}) {
          SampleFiles damaged = files;
          (damaged.*part)[byte] = static_cast<uint8_t>((damaged.*part)[byte] ^ change);
          const auto dataset = Open(damaged);
          if (!dataset.ok()) continue;
          // A line that became empty is none.
          if (EndsWithALine(files.*part) && dataset.value()->size() < kConformanceSamples) continue;
          ASSERT_EQ(dataset.value()->size(), kConformanceSamples);
          EXPECT_THAT(
              test::ReadAll(*dataset.value()).labels,
              testing::Each(testing::AllOf(testing::Ge(0), testing::Lt(kConformanceClasses))));
        }
      }
    }
  }
}

TEST_P(ReaderConformanceTest, ManyThreadsMayRead) {
  const auto opened = Open(files_.front());
  ASSERT_TRUE(opened.ok());
  const test::Contents expected = test::ReadAll(*opened.value());
  std::vector<test::Contents> contents(4);
  std::vector<std::thread> threads;
  for (test::Contents& content : contents) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) content = test::ReadAll(*opened.value());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(contents, testing::Each(expected));
}

// Texts have other samples than one image and one label: text_test.cc.
std::vector<Reader> ReadersOfImages() {
  std::vector<Reader> readers;
  std::ranges::copy_if(Readers(), std::back_inserter(readers), [](const Reader& reader) {
    return TraitsOf(reader.id).samples != SampleKind::kTokens;
  });
  return readers;
}

INSTANTIATE_TEST_SUITE_P(AllReaders, ReaderConformanceTest, testing::ValuesIn(ReadersOfImages()),
                         [](const testing::TestParamInfo<Reader>& reader) {
                           return std::string(WordOf(reader.param.id));
                         });

TEST(ReaderListTest, HasAReaderForEachChoiceOfTheSetting) {
  EXPECT_EQ(Readers().size(), ChoicesOf(DataReader()).size());
  for (const auto& choice : ChoicesOf(DataReader())) {
    EXPECT_EQ(ReaderOf(choice.value).id, choice.value) << choice.word;
    EXPECT_FALSE(choice.help.empty()) << choice.word;
  }
  EXPECT_FALSE(FindChoice<DataReader>("parquet"));
}

}  // namespace
}  // namespace kumo
