#include "data/content_hash.h"

#include <gtest/gtest.h>

#include <functional>

#include "common/base/crc32c.h"
#include "common/base/rng.h"
#include "data/readers/registry.h"
#include "data/samples/dataset.h"
#include "tests/data/pixel_reference.h"
#include "tests/data/test_files.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

struct Images {
  test::Extents extents{1, 6, 4};
  std::vector<uint8_t> pixels = test::Pattern(50 * 24);
  std::vector<uint8_t> labels = test::Labels(50, 5);

  MemoryDataset Set() const { return {"set", extents, 5, pixels, {labels.begin(), labels.end()}}; }
  uint64_t Hash() const { return ContentHash(Set()).value(); }
};

TEST(ContentHash, TellsApartWhateverIsLearntFrom) {
  const Images of;
  EXPECT_EQ(of.Hash(), Images().Hash());
  EXPECT_NE(of.Hash(), 0u);
  const auto differs = [&](const std::function<void(Images*)>& change) {
    Images other = of;
    change(&other);
    EXPECT_NE(other.Hash(), of.Hash());
  };
  differs([](Images* c) { ++c->pixels.back(); });
  differs([](Images* c) { ++c->pixels.front(); });
  differs([](Images* c) { std::swap(c->pixels[3], c->pixels[40]); });
  differs([](Images* c) { c->labels[7] ^= 1; });
  differs([](Images* c) { c->extents = {1, 4, 6}; });
  differs([](Images* c) {
    c->pixels.resize(49 * 24);
    c->labels.resize(49);
  });
}

// Of more classes than a byte tells apart, all of a label counts.
TEST(ContentHash, TellsLabelsApartThatDifferInTheirHighBytesAlone) {
  const auto hash = [](int classes, std::vector<int32_t> labels) {
    return ContentHash(MemoryDataset("set", {1, 1, 1}, classes, {1, 2}, std::move(labels))).value();
  };
  EXPECT_NE(hash(1000, {0, 1}), hash(1000, {256, 1}));
  EXPECT_EQ(hash(10, {0, 1}), hash(256, {0, 1}));
}

// What checkpoints and other processes have is compared with it.
TEST(ContentHash, IsTheSameForEver) { EXPECT_EQ(Images().Hash(), 365243326762859415u); }

TEST(ContentHash, IsTheSameHoweverTheFilesArePacked) {
  const test::ScratchDirectory scratch;
  ReaderRequest request{scratch / "images", scratch / "labels", 5, 0};
  const Images of;
  const auto hash = [&](const test::Bytes& images, const test::Bytes& labels) {
    test::WriteFile(request.images, images);
    test::WriteFile(request.labels, labels);
    return ContentHash(*ReaderOf(DataReader::kIdx).open(request).value()).value();
  };
  const test::Bytes images = test::Idx({50, 6, 4}, of.pixels);
  const test::Bytes labels = test::Idx({50}, of.labels);
  EXPECT_EQ(hash(images, labels), of.Hash());
  EXPECT_EQ(hash(test::Gzip(images), test::Gzip(labels)), of.Hash());
  request.limit = 49;
  EXPECT_NE(hash(images, labels), of.Hash());
}

TEST(ContentHash, IsTheSameWhereverTheSamplesLie) {
  const Images of;
  const MemoryDataset in_memory = of.Set();
  EXPECT_EQ(ContentHash(test::ReadEachTime(&in_memory)).value(), of.Hash());
}

// The images of another set, each of which says itself how large it is: all in a row.
class OfAnySize final : public Dataset {
 public:
  OfAnySize(const Dataset* set, int64_t height) : set_(*set), height_(height) {}

  int64_t size() const override { return set_.size(); }
  const Fields& fields() const override { return fields_; }
  int classes() const override { return set_.classes(); }
  const std::string& name() const override { return set_.name(); }
  Status ReadKey(const SampleKey& key, Sample* sample) const override {
    const int64_t index = key.sample;
    const int64_t width = set_.fields()[0].numbers() / height_;
    const std::vector<int64_t> extents = {1, height_, width};
    sample->SetExtents(0, extents);
    return set_.Read(index, sample);
  }

 private:
  const Dataset& set_;
  const int64_t height_;
  const Fields fields_ = LabelledImage({1, 0, 0});
};

TEST(ContentHash, OfImagesOfAnySizeTheirExtentsCount) {
  const Images of;
  const MemoryDataset set = of.Set();
  const auto hash = [&](int64_t height) { return ContentHash(OfAnySize(&set, height)).value(); };
  EXPECT_EQ(hash(6), hash(6));
  EXPECT_NE(hash(6), hash(4));
}

TEST(ContentHash, OfManyImagesOfAnySizeSamplesCountThatAreSpreadOverTheSet) {
  Images many;
  many.extents = {1, 1, 1};
  many.pixels.assign(3 * kHashedSamples, 1);
  many.labels.assign(3 * kHashedSamples, 0);
  const auto hash = [&] {
    const MemoryDataset set = many.Set();
    return ContentHash(OfAnySize(&set, 1)).value();
  };
  const uint64_t before = hash();
  many.pixels[3 * 100] = 2;
  EXPECT_NE(hash(), before);
  many.pixels[3 * 100] = 1;
  many.pixels[3 * 100 + 1] = 2;  // not among them
  EXPECT_EQ(hash(), before);
}

TEST(HashedBytes, IsTheSameHoweverTheBytesAreCut) {
  Rng rng(1, RngPurpose::kTest);
  std::vector<uint8_t> bytes(3 * HashedBytes::kPiece + 17);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(rng.NextBelow(256));
  const std::span<const std::byte> all = std::as_bytes(std::span(bytes));
  const auto value = [](HashedBytes* hashed) {
    Fnv1a hash;
    hashed->AddTo(&hash);
    return hash.value();
  };
  HashedBytes whole;
  whole.Add(all);
  const uint64_t expected = value(&whole);

  // As docs/formats.md has it.
  Fnv1a pieces, formula;
  for (size_t at = 0; at < all.size(); at += HashedBytes::kPiece) {
    pieces.Add(uint64_t{Crc32c(all.subspan(at, std::min(HashedBytes::kPiece, all.size() - at)))});
  }
  formula.Add(uint64_t{all.size()});
  formula.Add(pieces.value());
  EXPECT_EQ(expected, formula.value());

  for (int i = 0; i < 20; ++i) {
    HashedBytes cut;
    for (size_t at = 0; at < all.size();) {
      const size_t count = std::min<size_t>(1 + rng.NextBelow(1'500'000), all.size() - at);
      cut.Add(all.subspan(at, count));
      at += count;
    }
    EXPECT_EQ(value(&cut), expected);
  }
}

}  // namespace
}  // namespace kumo
