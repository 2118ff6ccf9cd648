#include "server/disks/private_disks.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <glog/logging.h>

#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/relocation.h"

namespace kumo {

PrivateDisks::PrivateDisks(int index, int servers, const Experiment& experiment, Role* role)
    : index_(index),
      servers_(servers),
      keeps_server_0s_(index == 1 && experiment.cluster.KeepsVersionsTwice()),
      piece_bytes_(static_cast<uint64_t>(experiment.cluster.chunk_kib) * 1024),
      leaves_within_(FromSeconds(experiment.checkpoint.grace_s) / 2),
      role_(role) {}

bool PrivateDisks::IsServer(const PeerName& peer) const {
  for (int s = 0; s < servers_; ++s) {
    if (s != index_ && peer == ServerPeer(s)) return true;
  }
  return false;
}

// --- Messages and answers.

// Server 0 may ask before it has a generation: its disk was lost (checkpoint_survey.h).
void PrivateDisks::OnFromServer0(const Message& message, bool ours, StepContext* context) {
  const wire::Header& header = message.header;
  switch (header.type()) {
    case wire::FETCH_FILE:
    case wire::LIST_CHECKPOINTS:
      OnMessage(ServerPeer(0), message, context);
      return;
    case wire::FILE:
      if (ours) OnMessage(ServerPeer(0), message, context);
      return;
    default:
      if (ours && header.orders().has_complete()) OnComplete(header.orders().complete(), context);
  }
}

void PrivateDisks::OnMessage(const PeerName& from, const Message& message, StepContext* context) {
  if (!IsServer(from)) return;
  if (message.header.type() != wire::FILE) {
    Answer(from, message, context);
    return;
  }
  if (manifest_fetch_) manifest_fetch_->OnMessage(from, message, context);
  if (collection_) collection_->OnMessage(from, message, context);
  Advance(context);
}

// The disk fills in the answer.
void PrivateDisks::Answer(const PeerName& to, const Message& asked, StepContext* context) const {
  SendAction reply{to, {}};
  wire::Header& header = reply.message.header;
  if (asked.header.type() == wire::LIST_CHECKPOINTS) {
    header.set_type(wire::CHECKPOINTS);
  } else {
    header.set_type(wire::FILE);
    *header.mutable_file_piece() = asked.header.file_piece();
    header.mutable_file_piece()->set_bytes(
        static_cast<uint32_t>(std::min<uint64_t>(asked.header.file_piece().bytes(), piece_bytes_)));
  }
  context->Do(AnswerFromDiskAction{std::move(reply)});
}

void PrivateDisks::OnAnswer(const FilesAnswer& answer, StepContext* context) {
  if (!collection_) return;
  collection_->OnAnswer(answer, context);
  const auto* written = std::get_if<PieceWritten>(&answer);
  if (written && written->status.ok() && std::holds_alternative<CommitAction>(tasks_.front())) {
    role_->OnDiskAnswer(FilesCollected(), context);
  }
  Advance(context);
}

// Server 0 has said which checkpoint is the newest complete one.
void PrivateDisks::OnComplete(int64_t version, StepContext* context) {
  if (version < 0 || version == kept_) return;
  kept_ = version;
  // An older checkpoint that is still queued is not worth its transfer any more.
  std::erase_if(tasks_, [&](const Task& task) {
    return std::holds_alternative<Keep>(task) && &task != &tasks_.front();
  });
  tasks_.emplace_back(Keep{version});
  Begin(context);
}

void PrivateDisks::Tick(StepContext* context) {
  if (manifest_fetch_) manifest_fetch_->Tick(context);
  if (collection_) collection_->Tick(context);
}

// Tasks of a generation that is over have no effect: the coordinator does not wait for their
// answers. Only EvaluationKept is awaited whatever the generation, so evaluations are released.
void PrivateDisks::Clear(StepContext* context) {
  manifest_fetch_.reset();
  collection_.reset();
  for (Task& task : tasks_) {
    if (auto* keep = std::get_if<KeepEvaluationAction>(&task)) released_.emplace_back(*keep);
  }
  tasks_.clear();
  kept_ = -1;
  HoldBack(context);
}

// Takes actions out of the context, in order, that need files: commits (server 0 fetches the files
// first), restores (another server fetches the manifest and its files first), and evaluations
// behind a commit, whose manifest is not written yet. Everything else passes.
void PrivateDisks::HoldBack(StepContext* context) {
  ServerActions others;
  for (ServerAction& action : context->actions) {
    if (auto* commit = std::get_if<CommitAction>(&action)) {
      tasks_.emplace_back(std::move(*commit));
    } else if (auto* keep = std::get_if<KeepEvaluationAction>(&action);
               keep && !tasks_.empty()) {  // its manifest may be among the tasks
      tasks_.emplace_back(*keep);
    } else if (auto* restore = std::get_if<RestoreAction>(&action); restore && index_ != 0) {
      tasks_.emplace_back(std::move(*restore));
    } else {
      others.push_back(std::move(action));
    }
  }
  context->actions = std::move(others);
  Begin(context);
  for (ServerAction& action : std::exchange(released_, {})) context->Do(std::move(action));
  HoldBackLeaving(context);
}

// At the job's end a server leaves when its disk has the files that it is to keep: its goodbye is
// held back until then (server 0 repeats the order to leave), but not longer than server 0 waits.
void PrivateDisks::HoldBackLeaving(StepContext* context) {
  const auto says_bye = [](const ServerAction& action) {
    const auto* send = std::get_if<SendAction>(&action);
    return send && send->message.header.type() == wire::BYE;
  };
  if (index_ == 0 || tasks_.empty() || std::ranges::none_of(context->actions, says_bye)) return;
  if (leaves_since_ < 0) leaves_since_ = context->now;
  if (context->now - leaves_since_ > leaves_within_) return;
  std::erase_if(context->actions, [&](const ServerAction& action) {
    return says_bye(action) || std::holds_alternative<ExitAction>(action);
  });
}

// --- Tasks.

void PrivateDisks::Begin(StepContext* context) {
  if (tasks_.empty() || manifest_fetch_ || collection_) return;
  Task& task = tasks_.front();
  if (auto* commit = std::get_if<CommitAction>(&task)) {
    commit->manifest.set_name(CheckpointName(commit->manifest.version()));
    std::vector<int> all(commit->manifest.files_size());
    std::iota(all.begin(), all.end(), 0);
    Collect(commit->manifest, std::move(all), context);
  } else if (std::holds_alternative<KeepEvaluationAction>(task)) {
    Finish(OkStatus(), context);
  } else {
    const auto* restore = std::get_if<RestoreAction>(&task);
    const int64_t version = restore ? restore->version : std::get<Keep>(task).version;
    manifest_fetch_ = FileFetch::OfManifest(ServerPeer(0), version, piece_bytes_);
    manifest_fetch_->Tick(context);
  }
}

void PrivateDisks::Collect(checkpoint::Manifest manifest, std::vector<int> wanted,
                           StepContext* context) {
  // Server 0 gets each file from the server that wrote it, and the others get all from server 0.
  std::vector<PeerName> holders;
  for (const checkpoint::File& file : manifest.files()) {
    const auto numbers = ParseShardFileName(file.name());
    const int from = index_ == 0 && numbers ? static_cast<int>(numbers->shard) : 0;
    holders.push_back(from == index_ ? PeerName() : ServerPeer(from));
  }
  const auto holder_of = [holders = std::move(holders)](int file) { return holders[file]; };
  collection_.emplace(std::move(manifest), std::move(wanted), holder_of, piece_bytes_,
                      ++collections_);
  collection_->Start(context);
}

void PrivateDisks::OnManifest(StepContext* context) {
  const FileFetch fetch = *std::exchange(manifest_fetch_, std::nullopt);
  if (!fetch.status().ok()) {
    Finish(fetch.status(), context);
    return;
  }
  const auto* restore = std::get_if<RestoreAction>(&tasks_.front());
  const std::string name =
      CheckpointName(restore ? restore->version : std::get<Keep>(tasks_.front()).version);
  auto manifest = ParseManifest(fetch.text(), "server 0's manifest of " + name, name);
  if (!manifest.ok()) {
    Finish(manifest.status(), context);
    return;
  }
  Result<std::vector<int>> wanted = Wanted(*manifest);
  if (!wanted.ok()) {
    Finish(wanted.status(), context);
    return;
  }
  Collect(*std::move(manifest), *std::move(wanted), context);
}

Result<std::vector<int>> PrivateDisks::Wanted(const checkpoint::Manifest& manifest) const {
  const auto* restore = std::get_if<RestoreAction>(&tasks_.front());
  Range range;
  if (restore) {
    // Server 0's part lies before server 1's.
    range = {keeps_server_0s_ ? 0 : restore->wanted.begin, restore->wanted.end};
    KUMO_ASSIGN_OR_RETURN(const Relocation relocation, Relocation::Make(manifest, restore->layout));
    range = relocation.Stored(range);
  }
  std::vector<int> wanted;
  for (int i = 0; i < manifest.files_size(); ++i) {
    const checkpoint::File& file = manifest.files(i);
    bool wants = false;
    if (restore) {
      wants = IsAbout(file, range);
    } else if (const auto numbers = ParseShardFileName(file.name())) {
      const int shard = static_cast<int>(numbers->shard);
      wants = shard == index_ || (shard == 0 && keeps_server_0s_);
    }
    if (wants) wanted.push_back(i);
  }
  return wanted;
}

void PrivateDisks::Advance(StepContext* context) {
  if (manifest_fetch_ && manifest_fetch_->done()) OnManifest(context);
  if (collection_ && collection_->done()) {
    const Collection collected = *std::exchange(collection_, std::nullopt);
    if (index_ != 0 && collected.status().ok()) {
      released_.emplace_back(KeepManifestAction{collected.manifest()});
    }
    Finish(collected.status(), context);
  }
}

void PrivateDisks::Finish(const Status& status, StepContext* context) {
  const Task task = std::move(tasks_.front());
  tasks_.pop_front();
  if (const auto* commit = std::get_if<CommitAction>(&task)) {
    if (status.ok()) {
      released_.emplace_back(*commit);
    } else {
      role_->OnDiskAnswer(CheckpointCommitted{commit->manifest.version(), status}, context);
    }
  } else if (const auto* keep = std::get_if<KeepEvaluationAction>(&task)) {
    released_.emplace_back(*keep);
  } else if (const auto* restore = std::get_if<RestoreAction>(&task)) {
    RestoreAction now = *restore;
    now.fetched = status;
    if (status.ok()) kept_ = now.version;
    released_.emplace_back(std::move(now));
  } else if (!status.ok()) {
    LOG(WARNING) << "keeps no copy of its part of the checkpoint of round "
                 << std::get<Keep>(task).version << ": " << status.message();
  }
  Begin(context);
}

}  // namespace kumo
