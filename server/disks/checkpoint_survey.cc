#include "server/disks/checkpoint_survey.h"

#include <algorithm>
#include <numeric>

#include <glog/logging.h>

#include "common/checkpoint/checkpoint.h"
#include "common/job/phase.h"
#include "common/job/protocol.h"
#include "server/protocol/messages.h"

namespace kumo {

CheckpointSurvey::CheckpointSurvey(SurveySettings settings, TimeUs now)
    : settings_(std::move(settings)), until_(now + settings_.join_timeout) {
  if (settings_.identity.servers == 1) outcome_ = OkStatus();
}

ServerActions CheckpointSurvey::OnMessage(const PeerName& from, const Message& message,
                                          TimeUs now) {
  StepContext context{now, {}};
  const wire::Header& header = message.header;
  if (header.type() == wire::STATUS) {
    context.Do(StatusReply(from));
    return Done(std::move(context));
  }
  int server = 1;
  while (server < settings_.identity.servers && from != ServerPeer(server)) ++server;
  if (outcome_ || server == settings_.identity.servers) return {};
  if (header.type() == wire::HELLO) {
    OnHello(server, header, &context);
  } else if (header.job() != settings_.identity.JobId()) {
    return {};
  } else if (header.type() == wire::HEARTBEAT) {
    // The sender takes part in a generation that this process does not know: it has to join again.
    SendAction gone{from, {}};
    gone.message.header.set_type(wire::GONE);
    gone.message.header.set_generation(header.generation());
    context.Do(std::move(gone));
  } else if (header.type() == wire::CHECKPOINTS) {
    OnHeld(server, header.held_checkpoints(), &context);
  } else if (header.type() == wire::FILE) {
    until_ = now + settings_.join_timeout;
    if (manifest_fetch_) manifest_fetch_->OnMessage(from, message, &context);
    if (collection_) collection_->OnMessage(from, message, &context);
    Advance(&context);
  }
  return Done(std::move(context));
}

// Says that this process is alive, and which servers it waits for.
SendAction CheckpointSurvey::StatusReply(const PeerName& to) const {
  SendAction reply{to, {}};
  reply.message.header.set_type(wire::STATUS_REPLY);
  wire::JobStatus* const status = reply.message.header.mutable_job_status();
  status->set_job_name(settings_.identity.job_name);
  status->set_phase(std::string(WordOf(JobPhase::kWaiting)));
  status->set_waits_for(WaitsFor());
  status->set_last_checkpoint(settings_.newer_than);
  return reply;
}

void CheckpointSurvey::OnHello(int server, const wire::Header& header, StepContext* context) {
  if (answered_.contains(server)) return;
  if (Status status = CheckHello(header, settings_.identity, std::nullopt); !status.ok()) {
    context->Do(Refusal(ServerPeer(server), status, header.hello().incarnation()));
    return;
  }
  hellos_[server] = header.hello();
  SendAction ask{ServerPeer(server), {}};
  ask.message.header.set_type(wire::LIST_CHECKPOINTS);
  context->Do(std::move(ask));
}

void CheckpointSurvey::OnHeld(int server, const wire::HeldCheckpoints& held, StepContext* context) {
  if (!hellos_.contains(server) || !answered_.insert(server).second) return;
  until_ = context->now + settings_.join_timeout;
  if (held.generation() <= kLastGeneration) {
    generation_ = std::max(generation_, held.generation());
  }
  for (const auto& one : held.checkpoints()) {
    const bool wanted =
        settings_.only ? one.version() == *settings_.only : one.version() > settings_.newer_than;
    if (one.version() < 0 || !wanted) continue;
    const Name name(one.version(), one.generation());
    manifests_[name] = server;
    for (const int file : one.files()) held_[name][file] = server;
  }
  if (static_cast<int>(answered_.size()) == settings_.identity.servers - 1) TryNext(context);
}

// The same condition as in Recovery::Decide.
bool CheckpointSurvey::OthersHaveJob() const {
  const wire::Hello& first = hellos_.begin()->second;
  return first.since() > 0 && first.holds_replica() &&
         std::ranges::all_of(
             hellos_, [&](const auto& hello) { return hello.second.since() == first.since(); });
}

// Tries the newest checkpoint that was not tried yet.
void CheckpointSurvey::TryNext(StepContext* context) {
  if (manifests_.empty()) {
    outcome_ = OkStatus();
    if (skipped_.empty() || settings_.newer_than >= 0 || OthersHaveJob()) return;
    std::string what = "no checkpoint is whole on the servers' disks";
    for (const std::string& skipped : skipped_) what += "; " + skipped;
    outcome_ = FailedPrecondition(what +
                                  "; bring back the disk with the missing file, or start anew with "
                                  "checkpoint.resume=never");
    return;
  }
  const auto newest = std::prev(manifests_.end());
  current_ = newest->first;
  const PeerName holder = ServerPeer(newest->second);
  manifests_.erase(newest);
  LOG(WARNING) << "this disk lacks checkpoint " << CheckpointName(current_->first)
               << ": fetches it from the other servers";
  manifest_fetch_ = FileFetch::OfManifest(holder, current_->first, settings_.piece_bytes);
  manifest_fetch_->Tick(context);
}

void CheckpointSurvey::OnManifest(StepContext* context) {
  const FileFetch fetch = *std::exchange(manifest_fetch_, std::nullopt);
  const std::string name = CheckpointName(current_->first);
  Result<checkpoint::Manifest> manifest =
      fetch.status().ok() ? ParseManifest(fetch.text(), "its manifest", name) : fetch.status();
  if (manifest.ok() && manifest->generation() != current_->second) {
    manifest = DataLoss("its manifest is of generation " + std::to_string(manifest->generation()));
  }
  if (!manifest.ok()) {
    Skip(manifest.status().message(), context);
    return;
  }
  const auto holder_of = [held = held_[*current_]](int file) {
    const auto found = held.find(file);
    return found == held.end() ? PeerName() : ServerPeer(found->second);
  };
  std::vector<int> all(manifest->files_size());
  std::iota(all.begin(), all.end(), 0);
  collection_.emplace(*std::move(manifest), std::move(all), holder_of, settings_.piece_bytes,
                      ++collections_);
  collection_->Start(context);
}

void CheckpointSurvey::Advance(StepContext* context) {
  if (manifest_fetch_ && manifest_fetch_->done()) OnManifest(context);
  if (!collection_ || !collection_->done()) return;
  const Collection collected = *std::exchange(collection_, std::nullopt);
  if (!collected.status().ok()) {
    Skip(collected.status().message(), context);
    return;
  }
  context->Do(KeepManifestAction{collected.manifest(), /*prune=*/false});
  outcome_ = OkStatus();
}

void CheckpointSurvey::Skip(const std::string& why, StepContext* context) {
  skipped_.push_back(CheckpointName(current_->first) + ": " + why);
  LOG(ERROR) << "skips " << skipped_.back();
  TryNext(context);
}

ServerActions CheckpointSurvey::OnAnswer(const FilesAnswer& answer, TimeUs now) {
  StepContext context{now, {}};
  if (outcome_ || !collection_) return {};
  collection_->OnAnswer(answer, &context);
  Advance(&context);
  return Done(std::move(context));
}

ServerActions CheckpointSurvey::Tick(TimeUs now) {
  StepContext context{now, {}};
  if (outcome_) return {};
  if (manifest_fetch_) manifest_fetch_->Tick(&context);
  if (collection_) collection_->Tick(&context);
  const std::string waits = WaitsFor();
  if (now >= until_ && !waits.empty()) {
    outcome_ =
        Unavailable("waited " + std::to_string(settings_.join_timeout / kSecond) +
                    " s (cluster.join_timeout_s) for " + waits +
                    ": this disk has no checkpoint; the other servers may have one; start them");
  }
  return Done(std::move(context));
}

std::string CheckpointSurvey::WaitsFor() const {
  std::string waits;
  for (int s = 1; s < settings_.identity.servers; ++s) {
    if (answered_.contains(s)) continue;
    waits += (waits.empty() ? "server " : ", ") + std::to_string(s);
  }
  if (waits.empty() && (manifest_fetch_ || collection_)) {
    waits = "the files of " + CheckpointName(current_->first);
  }
  return waits;
}

ServerActions CheckpointSurvey::Done(StepContext context) const {
  for (ServerAction& action : context.actions) {
    auto* const send = std::get_if<SendAction>(&action);
    if (!send) continue;
    send->message.header.set_protocol(kProtocolVersion);
    send->message.header.set_job(settings_.identity.JobId());
  }
  return std::move(context.actions);
}

}  // namespace kumo
