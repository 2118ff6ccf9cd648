// How server 0 gets a checkpoint back that its own disk does not have: where servers have disks of
// their own, its disk was lost, or what is on it is damaged.
//
// Before the job begins server 0 waits for every other server, asks what its disk has, and takes
// the newest checkpoint of which each file is on somebody's disk: it fetches the manifest and the
// files that it lacks, and goes on from there like from any checkpoint of its own. One of which a
// file is nowhere is passed over, by name. It also learns the last generation that any of them has
// taken part in, which no later one may repeat.
//
// A state machine, as the ServerNode that comes after it. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/job/job_identity.h"
#include "server/disks/collection.h"
#include "server/protocol/step_context.h"

namespace kumo {

struct SurveySettings {
  JobIdentity identity;
  uint64_t piece_bytes = 1 << 20;
  TimeUs join_timeout = 60 * kSecond;
  int64_t newer_than = -1;      // the newest good checkpoint that is here; -1: none
  std::optional<int64_t> only;  // the checkpoint of that version alone
};

class CheckpointSurvey {
 public:
  CheckpointSurvey(SurveySettings settings, TimeUs now);

  ServerActions OnMessage(const PeerName& from, const Message& message, TimeUs now);
  ServerActions OnAnswer(const FilesAnswer& answer, TimeUs now);
  ServerActions Tick(TimeUs now);

  // None while it goes on. Unavailable: a server has not come in time. FailedPrecondition: there
  // are checkpoints, and each lacks a file; names them. Where the others have what the job is about
  // in memory (cluster.replicas), no checkpoint is needed.
  const std::optional<Status>& outcome() const { return outcome_; }
  // What was passed over, and why.
  const std::vector<std::string>& skipped() const { return skipped_; }
  // No process of the job has used a later generation: the last that another server has taken part
  // in, and some that a server 0 may have come to without them. 0: there was none.
  uint32_t generation() const { return generation_ == 0 ? 0 : generation_ + kUnheardOf; }
  // Whom it waits for; "" for nobody.
  std::string WaitsFor() const;

 private:
  static constexpr uint32_t kUnheardOf = 8;
  using Name = std::pair<int64_t, uint32_t>;  // a checkpoint's version and generation

  SendAction StatusReply(const PeerName& to) const;
  void OnHello(int server, const wire::Header& header, StepContext* context);
  bool OthersHaveJob() const;
  void OnHeld(int server, const wire::HeldCheckpoints& held, StepContext* context);
  void TryNext(StepContext* context);
  void OnManifest(StepContext* context);
  void GoAlong(StepContext* context);
  void PassOver(const std::string& why, StepContext* context);
  ServerActions Done(StepContext context) const;

  const SurveySettings settings_;
  TimeUs until_;  // it waits so long for the next answer
  std::set<int> answered_;
  uint32_t generation_ = 0;
  std::map<int, wire::Hello> hellos_;
  std::map<Name, std::map<int, int>> held_;  // by a file's place: a server that has it
  std::map<Name, int> manifests_;            // a server that has it
  std::optional<Name> current_;
  std::optional<FileFetch> manifest_fetch_;
  std::optional<Collection> collection_;
  uint64_t collections_ = 0;
  std::vector<std::string> skipped_;
  std::optional<Status> outcome_;
};

}  // namespace kumo
