// Disk files: a server's files of checkpoints as other servers get them, piece by piece
// (docs/formats.md, "Files between servers"). HeldCheckpoints lists what a disk has, ReadPiece
// reads a piece of a file for another server, and PieceWriter writes a file that comes in pieces.
//
// The functions block while they read or write. `folder` is <output>/checkpoints.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/transport/message.h"
#include "proto/wire.pb.h"
#include "server/protocol/actions.h"

namespace kumo {

// The newest checkpoints that have a readable manifest, and which of their files are there with the
// length that the manifest says. The contents are not read.
wire::HeldCheckpoints HeldCheckpoints(FileSystem& files, const std::string& folder);

// Reads a piece of at most piece->bytes() bytes, and fills in the file's length. The name of the
// file is made of numbers, so no file outside of `folder` can be read. InvalidArgument if the file
// has no such piece; errors of reading a file.
Result<Payload> ReadPiece(FileSystem& files, const std::string& folder, wire::FilePiece* piece);

// Piece writer: writes files of checkpoints that come in pieces (file_fetch.h), one at a time. Each
// appears under its name, durable, with its last piece, if it is as its manifest says.
//
// Owned by the Disk; on its thread.
class PieceWriter {
 public:
  // files is borrowed for life.
  PieceWriter(FileSystem* files, std::string folder) : files_(files), folder_(std::move(folder)) {}

  // A piece at offset 0 begins another file, and drops a file that is not complete. DataLoss: the
  // file is complete and differs from its manifest. Internal: the piece is out of order.
  Status Write(const WritePieceAction& write);

 private:
  FileSystem* const files_;
  const std::string folder_;
  std::unique_ptr<AtomicFile> file_;
  std::string path_;
  uint64_t fetch_ = 0;
  uint64_t bytes_ = 0;
  uint32_t crc32c_ = 0;
};

}  // namespace kumo
