#include "data/readers/archive_walk.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/image_bytes.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using test::Bytes;
using test::NamedFiles;
using test::Pack;
using testing::ElementsAreArray;
using testing::HasSubstr;

constexpr Pack kPacks[] = {Pack::kTar, Pack::kTarGz, Pack::kZip, Pack::kDeflatedZip,
                           Pack::kUtf8Zip};

NamedFiles SomeFiles() {
  return {{"b/2.png", test::Pattern(3000)}, {"a.txt", Bytes{7}}, {"b/c/1.png", test::Pattern(700)}};
}

class ArchiveWalkTest : public testing::Test {
 protected:
  Result<ArchiveWalk> Open(const Bytes& bytes) {
    test::WriteFile(path_, bytes);
    return ArchiveWalk::Open(path_);
  }
  // Reads all entries; the first error.
  Status ReadAll(const Bytes& bytes) {
    KUMO_ASSIGN_OR_RETURN(ArchiveWalk walk, Open(bytes));
    for (;;) {
      KUMO_ASSIGN_OR_RETURN(const std::optional<ArchiveEntry> entry, walk.Next());
      if (!entry) return OkStatus();
      if (entry->kind == ArchiveEntry::Kind::kFile) {
        KUMO_RETURN_IF_ERROR(walk.Content().status());
      }
    }
  }

  test::ScratchDirectory scratch_;
  const std::string path_ = scratch_ / "archive";
};

TEST_F(ArchiveWalkTest, EntriesComeInTheirOrderWithTheirContent) {
  for (const Pack pack : kPacks) {
    Result<ArchiveWalk> walk = Open(test::Archive(pack, SomeFiles()));
    ASSERT_TRUE(walk.ok()) << walk.status().message();
    for (const auto& [name, content] : SomeFiles()) {
      const auto entry = walk->Next();
      ASSERT_TRUE(entry.ok() && entry->has_value()) << name;
      EXPECT_EQ((*entry)->kind, ArchiveEntry::Kind::kFile);
      EXPECT_EQ((*entry)->name, name);
      const auto read = walk->Content();
      ASSERT_TRUE(read.ok()) << read.status().message();
      EXPECT_THAT(*read, ElementsAreArray(content));
    }
    const auto end = walk->Next();
    ASSERT_TRUE(end.ok()) << end.status().message();
    EXPECT_FALSE(end->has_value());
  }
}

TEST_F(ArchiveWalkTest, ThePlaceOfAFileHasItsBytes) {
  for (const Pack pack : kPacks) {
    const Bytes archive = test::Archive(pack, SomeFiles());
    Result<ArchiveWalk> walk = Open(archive);
    ASSERT_TRUE(walk.ok()) << walk.status().message();
    for (const auto& [name, content] : SomeFiles()) {
      ASSERT_TRUE(walk->Next().ok());
      const auto place = walk->Place();
      if (pack == Pack::kTarGz) {
        EXPECT_EQ(place.status().code(), StatusCode::kFailedPrecondition);
        EXPECT_THAT(place.status().message(), HasSubstr("repack it as plain .tar or .zip"));
        continue;
      }
      ASSERT_TRUE(place.ok()) << place.status().message();
      EXPECT_EQ(place->size, std::ssize(content));
      EXPECT_EQ(place->deflated, pack == Pack::kDeflatedZip);
      if (place->deflated) continue;
      ASSERT_LE(place->offset + place->size, std::ssize(archive));
      EXPECT_THAT(std::span(archive).subspan(place->offset, place->size),
                  ElementsAreArray(content));
    }
  }
}

TEST_F(ArchiveWalkTest, LinksHaveTheNameOfTheirTargetInTheArchive) {
  using Kind = ArchiveEntry::Kind;
  const std::vector<test::TarLink> links = {
      {"a/up.png", "../store/0.png"},
      {"a/beside.png", "x.png"},
      {"hard.png", "store/0.png", '1'},
      {"out.png", "../x.png"},
      {"a/absolute.png", "/x.png"},
      {"folder", "", '5'},
      {"pipe", "", '6'},
  };
  const std::vector<std::pair<Kind, std::string>> expected = {
      {Kind::kLink, "store/0.png"},
      {Kind::kLink, "a/x.png"},
      {Kind::kLink, "store/0.png"},
      {Kind::kLink, ""},
      {Kind::kLink, ""},
      {Kind::kFolder, ""},
      {Kind::kOther, ""},
  };
  const NamedFiles stored = {{"store/0.png", Bytes{1, 2}}};
  Result<ArchiveWalk> walk = Open(test::TarWithLinks(stored, links));
  ASSERT_TRUE(walk.ok()) << walk.status().message();
  ASSERT_TRUE(walk->Next().ok());
  for (size_t i = 0; i < links.size(); ++i) {
    const auto entry = walk->Next();
    ASSERT_TRUE(entry.ok() && entry->has_value()) << links[i].name;
    EXPECT_EQ((*entry)->name, links[i].name);
    EXPECT_EQ((*entry)->kind, expected[i].first) << links[i].name;
    EXPECT_EQ((*entry)->target, expected[i].second) << links[i].name;
  }
}

TEST_F(ArchiveWalkTest, AnArchiveThatIsCutOffIsDamaged) {
  for (const Pack pack : kPacks) {
    const Bytes whole = test::Archive(pack, SomeFiles());
    ASSERT_TRUE(ReadAll(whole).ok());
    for (size_t size = 1; size < whole.size(); size += 61) {
      EXPECT_FALSE(ReadAll({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}).ok())
          << size << " of " << whole.size();
    }
  }
  const Status no_archive = ReadAll({'n', 'o', ' ', 'a', 'r', 'c', 'h', 'i', 'v', 'e'});
  EXPECT_EQ(no_archive.code(), StatusCode::kDataLoss);
  EXPECT_THAT(no_archive.message(), HasSubstr(path_ + ": the tar, tar.gz or zip archive is dam"));
}

// Any bytes give entries or an error.
TEST_F(ArchiveWalkTest, DamagedBytesAreReadToAnEnd) {
  for (const Pack pack : kPacks) {
    const Bytes whole = test::Archive(pack, SomeFiles());
    for (size_t byte = 0; byte < whole.size(); byte += 53) {
      for (const int change : {0x01, 0x80, 0xff}) {
        Bytes damaged = whole;
        damaged[byte] = static_cast<uint8_t>(damaged[byte] ^ change);
        const Status read = ReadAll(damaged);
        EXPECT_TRUE(read.ok() || !read.message().empty()) << byte;
      }
    }
  }
}

TEST_F(ArchiveWalkTest, ANameThatNoSystemTakesIsRefused) {
  EXPECT_TRUE(ReadAll(test::Archive(Pack::kZip, {{std::string(4095, 'a'), Bytes{7}}})).ok());
  const Status refused = ReadAll(test::Archive(Pack::kZip, {{std::string(4096, 'a'), Bytes{7}}}));
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("the name of entry 1 has 4096 bytes, but a path has"));
}

}  // namespace
}  // namespace kumo
