// What a server's own disk has of the job's checkpoints, for another server (docs/formats.md,
// "Files between servers").
//
// Functions; they block while they read. `folder` is <output>/checkpoints.
#pragma once

#include <string>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/transport/message.h"
#include "proto/wire.pb.h"

namespace kumo {

// The newest checkpoints of which there is a manifest that can be read, and which of their files
// are there with the length that it says. Their contents are not read.
wire::HeldCheckpoints HeldCheckpoints(FileSystem& files, const std::string& folder);

// The bytes of a piece that a server asks for, piece->bytes() at most; fills in the file's length.
// The file's name is made of numbers, so none is outside of `folder`. InvalidArgument where the
// file has no such piece; the errors of reading a file.
Result<Payload> ReadPiece(FileSystem& files, const std::string& folder, wire::FilePiece* piece);

}  // namespace kumo
