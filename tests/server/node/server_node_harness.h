// Harness: server nodes of a small job, and messages for them.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/job/protocol.h"
#include "server/node/server_node.h"
#include "tests/server/shard/shard_harness.h"

namespace kumo::test {

inline Job JobOn(int servers) {
  Job job = SmallJob();
  job.experiment.cluster.servers.assign(servers, "ipc://somewhere");
  job.experiment.cluster.workers = 1;
  job.experiment.sync.push_codec = CodecId::kInt8;
  return job;
}

inline ServerNode Node(const Job& job, int index) {
  ServerNodeSettings settings;
  settings.index = index;
  settings.identity = IdentityOf(job.experiment);
  settings.experiment = job.experiment;
  settings.process.host = "here";
  settings.process.incarnation = 3;
  return ServerNode(settings, 0);
}

inline Message Stamped(uint64_t job, Message message, uint32_t generation = 1) {
  message.header.set_protocol(kProtocolVersion);
  message.header.set_job(job);
  message.header.set_generation(generation);
  return message;
}
inline Message Stamped(const Job& job, Message message, uint32_t generation = 1) {
  return Stamped(IdentityOf(job.experiment).JobId(), std::move(message), generation);
}

inline Message WorkerHello(const Job& job, const std::string& name, uint64_t incarnation = 1) {
  Message message;
  message.header.set_type(wire::HELLO);
  wire::Hello* hello = message.header.mutable_hello();
  *hello = HelloOf(IdentityOf(job.experiment), {});
  hello->set_role(wire::Hello::WORKER);
  hello->set_name(name);
  hello->set_incarnation(incarnation);
  *hello->mutable_spec() = SpecToWire(job.spec);
  return Stamped(job, std::move(message), 0);
}

inline Message Plain(const Job& job, wire::Type type) {
  Message message;
  message.header.set_type(type);
  return Stamped(job, std::move(message));
}

inline std::vector<SendAction> Sends(const ServerActions& actions) {
  std::vector<SendAction> sends;
  for (const ServerAction& action : actions) {
    if (const auto* send = std::get_if<SendAction>(&action)) sends.push_back(*send);
    if (const auto* join = std::get_if<JoinAction>(&action)) sends.push_back(join->hello);
  }
  return sends;
}

inline const SendAction* Find(const std::vector<SendAction>& sends, wire::Type type) {
  const auto found = std::find_if(sends.begin(), sends.end(), [&](const SendAction& s) {
    return s.message.header.type() == type;
  });
  return found == sends.end() ? nullptr : &*found;
}

inline std::optional<Status> ExitOf(const ServerActions& actions) {
  for (const ServerAction& action : actions) {
    if (const auto* left = std::get_if<ExitAction>(&action)) return left->status;
  }
  return std::nullopt;
}

inline Message WelcomeTo(const Job& job, uint32_t generation, const std::string& restore = "") {
  Message welcome = Plain(job, wire::WELCOME);
  welcome.header.mutable_welcome()->set_generation(generation);
  welcome.header.mutable_welcome()->set_since(generation);
  welcome.header.mutable_welcome()->set_restore(restore);
  return welcome;
}

}  // namespace kumo::test
