#include "server/coordinator/admission.h"

#include <algorithm>

#include <glog/logging.h>

namespace kumo {
namespace {

wire::Hello::Level LevelOf(const wire::Hello& hello) {
  return hello.role() == wire::Hello::WORKER ? hello.instruction_set()
                                             : wire::Hello::LEVEL_UNSPECIFIED;
}

std::string NameOf(wire::Hello::Level level) {
  switch (level) {
    case wire::Hello::X86_64_V2:
      return std::string(WordOf(InstructionSet::kBaseline));
    case wire::Hello::X86_64_V3:
      return std::string(WordOf(InstructionSet::kV3));
    case wire::Hello::X86_64_V4:
      return std::string(WordOf(InstructionSet::kV4));
    default:
      return "another instruction set than x86-64's";
  }
}

}  // namespace

Status CommonLevel::Admits(const wire::Hello& hello) const {
  const wire::Hello::Level level = LevelOf(hello);
  constexpr auto kNone = wire::Hello::LEVEL_UNSPECIFIED;
  if (may_differ_ || level == kNone || level_ == kNone || level == level_) return OkStatus();
  const wire::Hello::Level common = std::min(level, level_);
  return FailedPrecondition(
      hello.name() + " on " + hello.host() + " computes with " + NameOf(level) + ", but " +
      worker_ + " with " + NameOf(level_) +
      ", and the weights would depend on the assignment of partitions to workers; set "
      "network.instruction_set = " +
      (common < wire::Hello::X86_64_V2 ? "" : NameOf(common) + ", which both have, or ") +
      "mixed to allow it");
}

void CommonLevel::OnJoined(const wire::Hello& hello) {
  if (level_ != wire::Hello::LEVEL_UNSPECIFIED) return;
  level_ = LevelOf(hello);
  worker_ = hello.name() + " on " + hello.host();
}

Result<bool> SharedFolder::Admits(const PeerName& from, const wire::Hello& hello,
                                  uint32_t generation, StepContext* context) const {
  if (hello.role() != wire::Hello::SERVER || token_ == 0) return true;
  const bool looked = hello.asked() == generation;
  const bool found = hello.folder() == token_;
  if (private_disks_ ? looked && !found : found) return true;
  if (!looked) {
    SendAction ask{from, {}};
    ask.message.header.set_type(wire::ASK_FOLDER);
    context->Do(std::move(ask));
    return false;
  }
  if (private_disks_) {
    Status refused = FailedPrecondition(
        "output.directory of server " + std::to_string(hello.server_index()) + " on " +
        hello.host() + " is the folder " + directory_ + " of server 0: with checkpoint.disks = " +
        "private each server needs one of its own; name another one with kumo-server --disk, or "
        "set checkpoint.disks = shared");
    LOG_EVERY_T(ERROR, 1) << refused.message();
    return refused;
  }
  Status refused = FailedPrecondition(
      "output.directory of server " + std::to_string(hello.server_index()) + " on " + hello.host() +
      " is not the folder " + directory_ + " of server 0 on " + host_ +
      ": each server saves its part of a checkpoint there, so it must be one folder for all of "
      "them; name storage that they share, or set checkpoint.disks = private");
  LOG_EVERY_T(ERROR, 1) << refused.message();
  return refused;
}

}  // namespace kumo
