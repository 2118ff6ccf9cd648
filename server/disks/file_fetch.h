// Files of checkpoints on their way from another server's disk to this one's. FileFetch brings one
// file, piece by piece; Collection brings all files of a checkpoint that this disk lacks.
//
// Flow control: a few pieces are requested at a time, and one more for each piece that is on the
// disk; so the memory of pieces on their way or waiting for the disk is bounded, however long the
// file is. A piece that does not come is requested again.
//
// One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "proto/checkpoint.pb.h"
#include "server/protocol/actions.h"

namespace kumo {

// File fetch. A shard's file goes to the disk, which compares its checksum; a manifest, whose size
// is not known before, into memory.
class FileFetch {
 public:
  // A shard's file of the checkpoint at `version`. piece_bytes: length of a piece. number: tells
  // the disk's answers to this fetch from those to others.
  static Result<FileFetch> OfShard(PeerName from, int64_t version, const checkpoint::File& file,
                                   uint64_t piece_bytes, uint64_t number);
  static FileFetch OfManifest(PeerName from, int64_t version, uint64_t piece_bytes);

  // A FILE of `from`; a piece that was not requested changes nothing.
  void OnMessage(const PeerName& from, const Message& message, StepContext* context);
  void OnWritten(const PieceWritten& written, StepContext* context);
  // Requests pieces, and repeats requests that were not answered.
  void Tick(StepContext* context);

  // The whole file is here, or it cannot be had: status() says why.
  bool done() const { return !status_.ok() || (size_ && finished_ == *size_); }
  const Status& status() const { return status_; }
  const std::string& text() const { return text_; }  // of a manifest

 private:
  FileFetch(PeerName from, wire::FilePiece which, uint64_t piece_bytes)
      : from_(std::move(from)), which_(std::move(which)), piece_bytes_(piece_bytes) {}
  bool TakeSize(const wire::FilePiece& piece, uint64_t bytes);
  void HandOn(StepContext* context);

  PeerName from_;
  wire::FilePiece which_;                 // the numbers that name the file
  std::optional<checkpoint::File> file_;  // of a shard
  uint64_t piece_bytes_;
  uint64_t number_ = 0;
  std::optional<uint64_t> size_;
  std::map<uint64_t, TimeUs> asked_;     // pieces under way, by offset: when to ask again
  std::map<uint64_t, Payload> arrived_;  // pieces that wait for an earlier one
  uint64_t next_ = 0;                    // offset of the first piece that was not requested
  uint64_t handed_on_ = 0;               // bytes, to the disk or to the text
  uint64_t finished_ = 0;                // bytes that are on the disk or in the text
  std::string text_;
  Status status_;
};

// Collection: brings to this server's disk the files of a checkpoint that it lacks. The disk says
// which those are; each is fetched from a server that has it, one after the other.
class Collection {
 public:
  // The server that has a file, by its index in the manifest; "": no server has it.
  using HolderOf = std::function<PeerName(int file)>;

  // wanted: indices into manifest.files. piece_bytes: as in FileFetch. number: tells the disk's
  // answers to this collection from those to others.
  Collection(checkpoint::Manifest manifest, std::vector<int> wanted, HolderOf holder_of,
             uint64_t piece_bytes, uint64_t number);

  void Start(StepContext* context);
  void OnMessage(const PeerName& from, const Message& message, StepContext* context);
  void OnAnswer(const FilesAnswer& answer, StepContext* context);
  void Tick(StepContext* context);

  const checkpoint::Manifest& manifest() const { return manifest_; }
  // All files are here, or one cannot be had: status() names it and says why.
  bool done() const { return !status_.ok() || (checked_ && missing_.empty()); }
  const Status& status() const { return status_; }

 private:
  void FetchNext(StepContext* context);
  void Advance(StepContext* context);

  checkpoint::Manifest manifest_;
  std::vector<int> wanted_;
  HolderOf holder_of_;
  uint64_t piece_bytes_;
  uint64_t number_;
  bool checked_ = false;
  std::vector<int> missing_;  // the last one is being fetched
  std::optional<FileFetch> fetch_;
  Status status_;
};

}  // namespace kumo
