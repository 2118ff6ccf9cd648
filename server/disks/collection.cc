#include "server/disks/collection.h"

#include <algorithm>
#include <utility>

#include <glog/logging.h>

namespace kumo {

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
  GoAlong(context);
}

void Collection::OnAnswer(const FilesAnswer& answer, StepContext* context) {
  if (const auto* written = std::get_if<PieceWritten>(&answer)) {
    if (fetch_) fetch_->OnWritten(*written, context);
    GoAlong(context);
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

void Collection::GoAlong(StepContext* context) {
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
