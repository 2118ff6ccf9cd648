// One file of a checkpoint on its way from another server's disk to this one's, piece by piece.
//
// A few pieces are asked for at a time, and one more for each that is on the disk: what is on its
// way or waits for the disk stays bounded, however long the file is. A piece that does not come is
// asked for again. A shard's file goes to the disk, which compares its checksum; a manifest, whose
// size nobody knows before, into memory.
//
// Owned by whoever fetches; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "proto/checkpoint.pb.h"
#include "server/protocol/disk_answers.h"
#include "server/protocol/step_context.h"

namespace kumo {

class FileFetch {
 public:
  // A shard's file of the checkpoint at `version`. piece_bytes: how long a piece is. number: tells
  // the disk's answers from those to other fetches.
  static Result<FileFetch> OfShard(PeerName from, int64_t version, const checkpoint::File& file,
                                   uint64_t piece_bytes, uint64_t number);
  static FileFetch OfManifest(PeerName from, int64_t version, uint64_t piece_bytes);

  // A FILE of `from`; what was not asked for changes nothing.
  void OnMessage(const PeerName& from, const Message& message, StepContext* context);
  void OnWritten(const PieceWritten& written, StepContext* context);
  // Asks for what may be on its way, and again for what did not come.
  void Tick(StepContext* context);

  // All of it is here, or it cannot be had: why not.
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
  std::map<uint64_t, TimeUs> asked_;     // pieces under way by offset: when to ask again
  std::map<uint64_t, Payload> arrived_;  // those that wait for one before them
  uint64_t next_ = 0;                    // the first that was not asked for
  uint64_t handed_on_ = 0;               // so many bytes, to the disk or to the text
  uint64_t finished_ = 0;                // so many are there
  std::string text_;
  Status status_;
};

}  // namespace kumo
