// Messages from servers to a worker in the middle of a job: answers to its requests with other
// fields, and messages without a request.
#include <string>
#include <utility>

#include <glog/logging.h>
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include "common/transport/framing.h"
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/steps.h"
#include "tests/worker/session/session_harness.h"

namespace kumo::fuzz {
namespace {

// Step::what: the low bits choose the event, the high bits the server or the request.
enum What : uint8_t { kAnswer, kChanged, kUnasked, kWork, kTick, kLeave, kConnected, kWhats };

const SessionSettings& Settings(int which) {
  static const auto make = [](int servers, CodecId codec, bool nesterov) {
    SessionSettings settings = test::SmallSettings(servers);
    settings.experiment.sync.push_codec = codec;
    settings.experiment.block.nesterov = nesterov;
    settings.experiment.cluster.chunk_kib = 1;
    settings.identity = IdentityOf(settings.experiment);
    return settings;
  };
  static const SessionSettings settings[] = {make(1, CodecId::kFp32, false),
                                             make(2, CodecId::kOneBit, true)};
  return settings[which];
}

// The answer of an honest server, which the input's fields overwrite.
Message Changed(Message message, const Step& step) {
  wire::Header fields;
  if (fields.ParseFromArray(step.header.data(), static_cast<int>(step.header.size()))) {
    message.header.MergeFrom(fields);
  }
  if (!step.payload.empty()) message.payload = PayloadOf(step.payload);
  return message;
}

void Play(std::string_view input) {
  StepReader steps(input);
  const uint8_t start = steps.start();
  const SessionSettings& settings = Settings(start % 2);
  const int servers = settings.identity.servers;
  test::Script script(settings);
  if (start & 2) script.generation = 2;
  script.Join();
  if (start & 4) {
    script.Order({{start / 8 % 3, 0}, {2, 1}});
    // Answers so many of its requests first.
    for (int answers = start / 8; answers > 0 && !script.left;) {
      if (script.sent.empty()) {
        if (!script.Work()) break;
        continue;
      }
      const SendToServerAction send = script.sent.front();
      script.sent.pop_front();
      script.Answer(send);
      --answers;
    }
  }
  for (Step step; !script.left && steps.Next(&step);) {
    script.now += step.later * 10 * kMillisecond;
    const size_t which = step.what / kWhats;
    switch (step.what % kWhats) {
      case kAnswer:
      case kChanged: {
        if (script.sent.empty()) break;
        const SendToServerAction send = script.sent[which % script.sent.size()];
        script.sent.erase(script.sent.begin() +
                          static_cast<std::ptrdiff_t>(which % script.sent.size()));
        std::optional<Message> reply = script.Reply(send);
        if (!reply) break;
        const bool changed = step.what % kWhats == kChanged;
        script.Receive(send.server, changed ? Changed(*std::move(reply), step) : *reply);
        break;
      }
      case kUnasked:
        script.Receive(static_cast<int>(which) % servers, Changed({}, step));
        break;
      case kWork:
        (void)script.Work();
        break;
      case kTick:
        script.Tick();
        break;
      case kLeave:
        script.Take(script.session().Leave(script.now));
        break;
      default:
        script.Take(script.session().OnConnected(static_cast<int>(which) % servers, script.now));
    }
    Require(script.sent.size() < 2000, "asks without end");
    while (script.sent.size() > 300) script.sent.pop_front();
    Require(!script.session().StateInWords().empty(), "no state");
  }
}

}  // namespace
}  // namespace kumo::fuzz

// A failed expectation of the harness ends the process, too.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  FLAGS_minloglevel = google::GLOG_FATAL;
  google::protobuf::SetLogHandler(nullptr);
  int none = 1;
  testing::InitGoogleTest(&none, *argv);
  GTEST_FLAG_SET(break_on_failure, true);
  (void)argc;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kumo::fuzz::Play(kumo::fuzz::AsText(data, size));
  return 0;
}
