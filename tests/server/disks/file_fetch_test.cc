#include "server/disks/file_fetch.h"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/checkpoint/checkpoint.h"

namespace kumo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t kPiece = 10;

checkpoint::File FileOf(uint64_t bytes) {
  checkpoint::File file;
  file.set_name(ShardFileName(1, 2, 3));
  file.set_bytes(bytes);
  return file;
}

FileFetch Fetch(uint64_t bytes) {
  return FileFetch::OfShard("server/1", 7, FileOf(bytes), kPiece, 5).value();
}

// The offsets that are asked for.
std::vector<uint64_t> PiecesAsked(const StepContext& context) {
  std::vector<uint64_t> offsets;
  for (const ServerAction& action : context.actions) {
    const auto* send = std::get_if<SendAction>(&action);
    if (send) offsets.push_back(send->message.header.file_piece().offset());
  }
  return offsets;
}

// The offsets that are written.
std::vector<uint64_t> Written(const StepContext& context) {
  std::vector<uint64_t> offsets;
  for (const ServerAction& action : context.actions) {
    const auto* write = std::get_if<WritePieceAction>(&action);
    if (write) offsets.push_back(write->offset);
  }
  return offsets;
}

Message Piece(uint64_t offset, const std::string& bytes, uint64_t file_bytes, int shard = 1) {
  Message message;
  message.header.set_type(wire::FILE);
  wire::FilePiece* piece = message.header.mutable_file_piece();
  piece->set_version(7);
  piece->set_shard(shard);
  if (shard >= 0) {
    piece->set_shards(2);
    piece->set_generation(3);
  }
  piece->set_offset(offset);
  piece->set_file_bytes(file_bytes);
  const auto owner = std::make_shared<std::string>(bytes);
  message.payload = {owner, AsBytes(*owner)};
  return message;
}

TEST(FileFetch, AsksForAFewPiecesAndForOneMoreWithEachThatIsOnTheDisk) {
  FileFetch fetch = Fetch(65);
  StepContext context{0, {}};
  fetch.Tick(&context);
  EXPECT_THAT(PiecesAsked(context), ElementsAre(0, 10, 20, 30));
  context.actions.clear();
  fetch.OnMessage("server/1", Piece(0, std::string(10, 'a'), 65), &context);
  EXPECT_THAT(Written(context), ElementsAre(0));
  EXPECT_THAT(PiecesAsked(context), ElementsAre());  // it is not on the disk yet
  fetch.OnWritten({5, 0, OkStatus()}, &context);
  EXPECT_THAT(PiecesAsked(context), ElementsAre(40));
}

TEST(FileFetch, PiecesAreWrittenInOrderHoweverTheyArriveAndOnce) {
  FileFetch fetch = Fetch(25);
  StepContext context{0, {}};
  fetch.Tick(&context);
  fetch.OnMessage("server/1", Piece(20, std::string(5, 'c'), 25), &context);
  fetch.OnMessage("server/1", Piece(10, std::string(10, 'b'), 25), &context);
  EXPECT_TRUE(Written(context).empty());
  fetch.OnMessage("server/1", Piece(0, std::string(10, 'a'), 25), &context);
  fetch.OnMessage("server/1", Piece(10, std::string(10, 'b'), 25), &context);
  EXPECT_THAT(Written(context), ElementsAre(0, 10, 20));
  for (const uint64_t offset : {0, 10}) fetch.OnWritten({5, offset, OkStatus()}, &context);
  EXPECT_FALSE(fetch.done());
  fetch.OnWritten({4, 20, OkStatus()}, &context);  // of another fetch
  fetch.OnWritten({5, 10, OkStatus()}, &context);  // again
  EXPECT_FALSE(fetch.done());
  fetch.OnWritten({5, 20, OkStatus()}, &context);
  EXPECT_TRUE(fetch.done() && fetch.status().ok());
}

TEST(FileFetch, WhatDoesNotComeIsAskedForAgain) {
  FileFetch fetch = Fetch(15);
  StepContext context{0, {}};
  fetch.Tick(&context);
  fetch.OnMessage("server/1", Piece(10, std::string(5, 'b'), 15), &context);
  context = {kSecond, {}};
  fetch.Tick(&context);
  EXPECT_TRUE(PiecesAsked(context).empty());
  context = {3 * kSecond, {}};
  fetch.Tick(&context);
  EXPECT_THAT(PiecesAsked(context), ElementsAre(0));
}

TEST(FileFetch, WhatWasNotAskedForChangesNothing) {
  FileFetch fetch = Fetch(100);
  StepContext context{0, {}};
  fetch.Tick(&context);
  context.actions.clear();
  fetch.OnMessage("server/2", Piece(0, std::string(10, 'a'), 100), &context);     // another server
  fetch.OnMessage("server/1", Piece(0, std::string(10, 'a'), 100, 0), &context);  // another file
  fetch.OnMessage("server/1", Piece(50, std::string(10, 'a'), 100), &context);    // too early
  fetch.OnMessage("server/1", Piece(3, std::string(10, 'a'), 100), &context);     // no piece
  EXPECT_TRUE(context.actions.empty());
  EXPECT_FALSE(fetch.done());
}

TEST(FileFetch, OtherSizesAreRefused) {
  struct Wrong {
    uint64_t bytes, file_bytes;
  };
  for (const Wrong& wrong : {Wrong{9, 100}, {11, 100}, {0, 100}, {10, 99}, {10, 1ull << 62}}) {
    FileFetch fetch = Fetch(100);
    StepContext context{0, {}};
    fetch.Tick(&context);
    context.actions.clear();
    fetch.OnMessage("server/1", Piece(0, std::string(wrong.bytes, 'a'), wrong.file_bytes),
                    &context);
    EXPECT_TRUE(Written(context).empty());
    EXPECT_EQ(fetch.status().code(), StatusCode::kDataLoss) << wrong.bytes;
  }
}

TEST(FileFetch, AManifestOfAnySizeUpToItsLimitComesIntoMemory) {
  FileFetch fetch = FileFetch::OfManifest("server/0", 7, kPiece);
  StepContext context{0, {}};
  fetch.Tick(&context);
  EXPECT_THAT(PiecesAsked(context), ElementsAre(0));
  context.actions.clear();
  fetch.OnMessage("server/0", Piece(0, "0123456789", 13, -1), &context);
  EXPECT_THAT(PiecesAsked(context), ElementsAre(10));
  fetch.OnMessage("server/0", Piece(10, "abc", 13, -1), &context);
  EXPECT_TRUE(fetch.done());
  EXPECT_EQ(fetch.text(), "0123456789abc");

  for (const uint64_t size : {uint64_t{0}, kManifestLimitBytes + 1, ~uint64_t{0}}) {
    FileFetch hostile = FileFetch::OfManifest("server/0", 7, kPiece);
    hostile.Tick(&context);
    hostile.OnMessage("server/0", Piece(0, "0123456789", size, -1), &context);
    EXPECT_EQ(hostile.status().code(), StatusCode::kDataLoss) << size;
  }
}

TEST(FileFetch, WhyItCannotBeHadIsSaid) {
  FileFetch fetch = Fetch(100);
  StepContext context{0, {}};
  fetch.Tick(&context);
  Message message = Piece(0, "", 0);
  message.header.mutable_file_piece()->set_failure("no such file\n");
  fetch.OnMessage("server/1", message, &context);
  EXPECT_TRUE(fetch.done());
  EXPECT_THAT(fetch.status().message(), HasSubstr("server/1: no such file"));

  FileFetch unwritten = Fetch(100);
  unwritten.Tick(&context);
  unwritten.OnMessage("server/1", Piece(0, std::string(10, 'a'), 100), &context);
  unwritten.OnWritten({5, 0, ResourceExhausted("full")}, &context);
  EXPECT_EQ(unwritten.status().code(), StatusCode::kResourceExhausted);
}

TEST(FileFetch, ANameThatIsNoShardsIsNotFetched) {
  checkpoint::File file = FileOf(10);
  file.set_name("MANIFEST");
  EXPECT_FALSE(FileFetch::OfShard("server/1", 7, file, kPiece, 5).ok());
  EXPECT_FALSE(FileFetch::OfShard("server/1", 7, FileOf(0), kPiece, 5).ok());
}

}  // namespace
}  // namespace kumo
