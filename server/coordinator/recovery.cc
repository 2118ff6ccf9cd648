#include "server/coordinator/recovery.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <glog/logging.h>

namespace kumo {

Recovery::Recovery(uint32_t generation, bool may_be_further,
                   std::optional<checkpoint::Manifest> restored)
    : undecided_(may_be_further) {
  generation_.number = generation_.since = generation;
  generation_.choosing = may_be_further;
  StartFrom(std::move(restored));
}

void Recovery::StartFrom(std::optional<checkpoint::Manifest> restored) {
  restored_ = std::move(restored);
  generation_.start_version = restored_ ? restored_->version() : 0;
  generation_.restore = restored_ ? restored_->name() : "";
}

// Where versions are kept twice this process may have taken the place of a server 0 that died, and
// all that the job is about may still be with the others. They say so in their hellos, so it is
// known when they are all there.
bool Recovery::Decide(const std::vector<ServerMember>& servers, StepContext* context) {
  const uint32_t since = servers[1].hello.since();
  for (size_t i = 1; i < servers.size(); ++i) {
    if (servers[i].peer.empty()) return false;
  }
  const bool all_there =
      since > 0 && servers[1].hello.holds_replica() &&
      std::all_of(servers.begin() + 1, servers.end(),
                  [&](const ServerMember& server) { return server.hello.since() == since; });
  undecided_ = generation_.choosing = false;
  if (!all_there) {
    context->Do(WentBackAction{restored_ ? generation_.start_version : -1,
                               restored_ ? restored_->progress().samples() : -1,
                               "nothing newer is in the servers' memory"});
    return false;
  }
  LOG(WARNING) << "takes the place of a server 0 that has died: the others go on where they are";
  generation_.since = since;
  return true;
}

void Recovery::GoBack(const std::string& why, int64_t newest, StepContext* context) {
  LOG(WARNING) << why << ": the job goes back to its last checkpoint";
  generation_.since = ++generation_.number;
  generation_.choosing = true;
  went_back_why_ = why;
  context->Do(ChooseCheckpointAction{generation_.number, newest});
}

void Recovery::GoOn(StepContext* context) {
  ++generation_.number;
  generation_.choosing = true;
  context->Do(ReserveGenerationAction{generation_.number});
}

Status Recovery::OnChosen(const Result<std::optional<checkpoint::Manifest>>& chosen,
                          StepContext* context) {
  generation_.choosing = false;
  if (!chosen.ok()) return chosen.status().WithContext(went_back_why_);
  StartFrom(*chosen);
  const std::string where = restored_ ? "round " + std::to_string(generation_.start_version)
                                      : "its beginning, as there is no checkpoint yet";
  LOG(WARNING) << "generation " << generation_.number << " goes back to " << where << ": "
               << went_back_why_;
  context->Do(WentBackAction{generation_.start_version,
                             restored_ ? restored_->progress().samples() : 0, went_back_why_});
  return OkStatus();
}

std::string Recovery::WaitsFor() const {
  return generation_.since == generation_.number ? "the checkpoint to go back to" : "the disk";
}

}  // namespace kumo
