#include "server/disks/file_fetch.h"

#include <algorithm>
#include <utility>

#include "common/base/printable.h"
#include "common/checkpoint/checkpoint.h"

namespace kumo {
namespace {

constexpr size_t kWindow = 4;  // pieces
constexpr TimeUs kAskAgain = 2 * kSecond;
constexpr size_t kLongestFailure = 1000;

}  // namespace

Result<FileFetch> FileFetch::OfShard(PeerName from, int64_t version, const checkpoint::File& file,
                                     uint64_t piece_bytes, uint64_t number) {
  const auto numbers = ParseShardFileName(file.name());
  if (!numbers || file.bytes() == 0) {
    return DataLoss(Printable(file.name(), kLongestFailure) + " is no shard's file");
  }
  wire::FilePiece which;
  which.set_version(version);
  which.set_shard(static_cast<int32_t>(numbers->shard));
  which.set_shards(static_cast<int32_t>(numbers->shards));
  which.set_generation(numbers->generation);
  FileFetch fetch(std::move(from), std::move(which), piece_bytes);
  fetch.file_ = file;
  fetch.size_ = file.bytes();
  fetch.number_ = number;
  return fetch;
}

FileFetch FileFetch::OfManifest(PeerName from, int64_t version, uint64_t piece_bytes) {
  wire::FilePiece which;
  which.set_version(version);
  which.set_shard(-1);
  return {std::move(from), std::move(which), piece_bytes};
}

void FileFetch::OnMessage(const PeerName& from, const Message& message, StepContext* context) {
  const wire::FilePiece& piece = message.header.file_piece();
  if (done() || from != from_ || piece.version() != which_.version() ||
      piece.shard() != which_.shard() || piece.shards() != which_.shards() ||
      piece.generation() != which_.generation()) {
    return;
  }
  const uint64_t offset = piece.offset();
  if (!asked_.contains(offset) || offset < handed_on_ || arrived_.contains(offset)) return;
  if (!piece.failure().empty()) {
    status_ = DataLoss(from_ + ": " + Printable(piece.failure(), kLongestFailure));
  } else if (!TakeSize(piece, message.payload.bytes.size())) {
    status_ = DataLoss(from_ + " sent " + std::to_string(message.payload.bytes.size()) +
                       " bytes at " + std::to_string(offset) + " of a file of " +
                       std::to_string(piece.file_bytes()) + ", which is not what was asked for");
  }
  if (!status_.ok()) return;
  arrived_[offset] = message.payload;
  HandOn(context);
  Tick(context);
}

// A manifest's size is known with the first piece of it.
bool FileFetch::TakeSize(const wire::FilePiece& piece, uint64_t bytes) {
  if (!size_ && (piece.file_bytes() == 0 || piece.file_bytes() > kManifestLimitBytes)) return false;
  const uint64_t size = size_.value_or(piece.file_bytes());
  if (piece.file_bytes() != size || bytes != std::min(piece_bytes_, size - piece.offset())) {
    return false;
  }
  size_ = size;
  return true;
}

void FileFetch::HandOn(StepContext* context) {
  for (auto next = arrived_.find(handed_on_); next != arrived_.end();
       next = arrived_.find(handed_on_)) {
    const Payload payload = std::move(next->second);
    arrived_.erase(next);
    const uint64_t offset = std::exchange(handed_on_, handed_on_ + payload.bytes.size());
    if (file_) {
      context->Do(WritePieceAction{number_, which_.version(), *file_, offset, payload});
      continue;
    }
    text_.append(reinterpret_cast<const char*>(payload.bytes.data()), payload.bytes.size());
    asked_.erase(offset);
    finished_ = handed_on_;
  }
}

void FileFetch::OnWritten(const PieceWritten& written, StepContext* context) {
  if (done() || written.fetch != number_ || written.offset >= handed_on_) return;
  if (!written.status.ok()) {
    status_ = written.status;
  } else if (asked_.erase(written.offset) > 0) {
    finished_ += std::min(piece_bytes_, *size_ - written.offset);
    Tick(context);
  }
}

void FileFetch::Tick(StepContext* context) {
  if (done()) return;
  while (asked_.size() < kWindow && (size_ ? next_ < *size_ : next_ == 0)) {
    asked_[next_] = context->now;
    next_ += piece_bytes_;
  }
  for (auto& [offset, ask_at] : asked_) {
    if (context->now < ask_at || offset < handed_on_ || arrived_.contains(offset)) continue;
    ask_at = context->now + kAskAgain;
    SendAction ask{from_, {}};
    ask.message.header.set_type(wire::FETCH_FILE);
    wire::FilePiece* const piece = ask.message.header.mutable_file_piece();
    *piece = which_;
    piece->set_offset(offset);
    piece->set_bytes(static_cast<uint32_t>(piece_bytes_));
    context->Do(std::move(ask));
  }
}

}  // namespace kumo
