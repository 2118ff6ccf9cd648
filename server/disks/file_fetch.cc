#include "server/disks/file_fetch.h"

#include <algorithm>
#include <utility>

#include <glog/logging.h>

#include "common/base/printable.h"
#include "common/checkpoint/checkpoint.h"

namespace kumo {
namespace {

constexpr size_t kWindow = 4;  // pieces
constexpr TimeUs kPieceTimeout = 2 * kSecond;
constexpr size_t kLongestQuote = 1000;

}  // namespace

Result<FileFetch> FileFetch::OfShard(PeerName from, int64_t version, const checkpoint::File& file,
                                     uint64_t piece_bytes, uint64_t number) {
  const auto numbers = ParseShardFileName(file.name());
  if (!numbers || file.bytes() == 0) {
    return DataLoss(Printable(file.name(), kLongestQuote) + " is not the name of a shard file");
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
    status_ = DataLoss(from_ + ": " + Printable(piece.failure(), kLongestQuote));
  } else if (!TakeSize(piece, message.payload.bytes.size())) {
    status_ =
        DataLoss(from_ + " sent " + std::to_string(message.payload.bytes.size()) +
                 " bytes at offset " + std::to_string(offset) + " of a file of " +
                 std::to_string(piece.file_bytes()) + " bytes: not the piece that was requested");
  }
  if (!status_.ok()) return;
  arrived_[offset] = message.payload;
  HandOn(context);
  Tick(context);
}

// Checks a piece against the size of the file; the size of a manifest is known from its first
// piece.
bool FileFetch::TakeSize(const wire::FilePiece& piece, uint64_t bytes) {
  if (!size_ && (piece.file_bytes() == 0 || piece.file_bytes() > kManifestLimitBytes)) return false;
  const uint64_t size = size_.value_or(piece.file_bytes());
  if (piece.file_bytes() != size || bytes != std::min(piece_bytes_, size - piece.offset())) {
    return false;
  }
  size_ = size;
  return true;
}

// Pieces go on in the order of their offsets, since the file is written and its checksum computed
// in one pass.
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
    ask_at = context->now + kPieceTimeout;
    SendAction ask{from_, {}};
    ask.message.header.set_type(wire::FETCH_FILE);
    wire::FilePiece* const piece = ask.message.header.mutable_file_piece();
    *piece = which_;
    piece->set_offset(offset);
    piece->set_bytes(static_cast<uint32_t>(piece_bytes_));
    context->Do(std::move(ask));
  }
}

// --- Collection.

Collection::Collection(checkpoint::Manifest manifest, std::vector<int> wanted, HolderOf holder_of,
                       uint64_t piece_bytes, uint64_t number)
    : manifest_(std::move(manifest)),
      wanted_(std::move(wanted)),
      holder_of_(std::move(holder_of)),
      piece_bytes_(piece_bytes),
      number_(number) {}

void Collection::Start(StepContext* context) {
  context->Do(CheckFilesAction{number_, manifest_, wanted_});
}

void Collection::OnMessage(const PeerName& from, const Message& message, StepContext* context) {
  if (!fetch_) return;
  fetch_->OnMessage(from, message, context);
  Advance(context);
}

void Collection::OnAnswer(const FilesAnswer& answer, StepContext* context) {
  if (const auto* written = std::get_if<PieceWritten>(&answer)) {
    if (fetch_) fetch_->OnWritten(*written, context);
    Advance(context);
    return;
  }
  const auto& checked = std::get<FilesChecked>(answer);
  if (checked.fetch != number_ || checked_) return;
  checked_ = true;
  if (!checked.missing.ok()) {
    status_ = checked.missing.status();
    return;
  }
  missing_ = *checked.missing;
  for (const int file : missing_) {
    if (!holder_of_(file).empty()) continue;
    status_ = DataLoss("no server's disk has its file " + manifest_.files(file).name());
    return;
  }
  FetchNext(context);
}

void Collection::FetchNext(StepContext* context) {
  fetch_.reset();
  if (missing_.empty()) return;
  const checkpoint::File& file = manifest_.files(missing_.back());
  const PeerName holder = holder_of_(missing_.back());
  LOG(INFO) << "fetches " << file.name() << " of " << manifest_.name() << " from " << holder;
  Result<FileFetch> fetch =
      FileFetch::OfShard(holder, manifest_.version(), file, piece_bytes_, number_);
  if (!fetch.ok()) {
    status_ = fetch.status();
    return;
  }
  fetch_ = *std::move(fetch);
  fetch_->Tick(context);
}

void Collection::Advance(StepContext* context) {
  if (done() || !fetch_ || !fetch_->done()) return;
  if (!fetch_->status().ok()) {
    status_ = fetch_->status().WithContext("file " + manifest_.files(missing_.back()).name());
    return;
  }
  missing_.pop_back();
  FetchNext(context);
}

void Collection::Tick(StepContext* context) {
  if (!done() && fetch_) fetch_->Tick(context);
}

}  // namespace kumo
