#include "common/transport/name_disputes.h"

#include <glog/logging.h>

namespace kumo {
namespace {

Status NameIsTaken(const PeerName& name) {
  return FailedPrecondition("another process takes part under the name " + name +
                            "; a second one has it only when that has ended, or is silent");
}

}  // namespace

Status NameDisputes::Hear(const std::string& routing_id, const PeerName& name, TimeUs now) {
  if (names_.Hear(routing_id, name, now)) return OkStatus();
  const auto question = names_.Ask(routing_id, name, now);
  if (!question) return NameIsTaken(name);
  wire::Header ping;
  ping.set_type(wire::PING);
  ping.set_request(question->number);
  if (send_(question->to, std::move(ping))) return NameIsTaken(name);
  names_.Replace(routing_id, name, now);
  return OkStatus();
}

void NameDisputes::OnPong(const std::string& routing_id, const PeerName& name, uint64_t number) {
  const auto other = names_.Answer(routing_id, name, number);
  if (!other) return;
  LOG_EVERY_T(WARNING, 1) << "another process under the name " << name
                          << " is refused: the first one lives";
  wire::Header refused;
  refused.set_type(wire::REFUSED);
  const Status taken = NameIsTaken(name);
  refused.mutable_refusal()->set_code(static_cast<uint32_t>(taken.code()));
  refused.mutable_refusal()->set_reason(taken.message());
  (void)send_(*other, std::move(refused));
}

}  // namespace kumo
