// Checkpoint survey: server 0 looks for a checkpoint on the other servers' disks, if servers have
// disks of their own and its own disk was lost or is damaged.
//
// Before the job begins, server 0 waits for every other server and asks for the checkpoints on its
// disk. It takes the newest checkpoint whose files are all on some disk, fetches the manifest and
// the missing files, and then goes on from it as from any checkpoint of its own. A checkpoint that
// lacks a file is skipped, and named. The survey also learns the last generation that any server
// has taken part in, which no later process may use again.
//
// A state machine, like the ServerNode that comes after it. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/job/job_identity.h"
#include "server/disks/file_fetch.h"
#include "server/protocol/actions.h"

namespace kumo {

struct SurveySettings {
  JobIdentity identity;
  uint64_t piece_bytes = 1 << 20;
  TimeUs join_timeout = 60 * kSecond;
  int64_t newer_than = -1;      // the newest good checkpoint on this disk; -1: none
  std::optional<int64_t> only;  // look for the checkpoint of this version only
};

class CheckpointSurvey {
 public:
  CheckpointSurvey(SurveySettings settings, TimeUs now);

  ServerActions OnMessage(const PeerName& from, const Message& message, TimeUs now);
  ServerActions OnAnswer(const FilesAnswer& answer, TimeUs now);
  ServerActions Tick(TimeUs now);

  // nullopt while the survey goes on. Unavailable: a server has not come in time.
  // FailedPrecondition: there are checkpoints, and each lacks a file; names them. If the other
  // servers have the job's versions in memory (cluster.replicas), no checkpoint is needed.
  const std::optional<Status>& outcome() const { return outcome_; }
  // Checkpoints that were skipped, and why.
  const std::vector<std::string>& skipped() const { return skipped_; }
  // A generation that no process of the job has exceeded: the last one that another server has
  // taken part in, plus some that a server 0 may have reached without the others. 0: there was
  // none.
  uint32_t generation() const { return generation_ == 0 ? 0 : generation_ + kUnheardOf; }
  // The servers or files that it waits for; "" if there are none.
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
  void Advance(StepContext* context);
  void Skip(const std::string& why, StepContext* context);
  ServerActions Done(StepContext context) const;

  const SurveySettings settings_;
  TimeUs until_;  // limit for the next answer
  std::set<int> answered_;
  uint32_t generation_ = 0;
  std::map<int, wire::Hello> hellos_;
  std::map<Name, std::map<int, int>> held_;  // index of a file -> a server that has it
  std::map<Name, int> manifests_;            // a server that has it
  std::optional<Name> current_;
  std::optional<FileFetch> manifest_fetch_;
  std::optional<Collection> collection_;
  uint64_t collections_ = 0;
  std::vector<std::string> skipped_;
  std::optional<Status> outcome_;
};

}  // namespace kumo
