// Frames from any peer to a server in the middle of a job. The first byte chooses the moment.
#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include <glog/logging.h>

#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/server_job.h"
#include "tests/fuzz/steps.h"

namespace kumo::fuzz {
namespace {

constexpr size_t kMostActions = 400;     // of one call: an answer or two to each member and request
constexpr size_t kMostStatus = 200'000;  // bytes

// The node with a driver that carries out all actions, at once except for the arithmetic.
class ServerUnderTest {
 public:
  explicit ServerUnderTest(const ServerCase& one) : framing_(one.framing), node_(one.settings, 0) {
    Take(node_.Tick(0));
  }

  bool over() const { return over_; }

  void Hear(uint8_t peer, const Message& message) {
    Take(node_.OnMessage(kPeers[peer], message, now_));
  }

  void Happen(const Step& step) {
    now_ += step.later * kMillisecond * 10;
    if (step.what < kPeerCount) {
      std::vector<Payload> frames = {PayloadOf(step.header)};
      if (!step.payload.empty()) frames.push_back(PayloadOf(step.payload));
      const Result<Message> message = DecodeMessage(framing_, frames);
      if (message.ok()) Hear(step.what, *message);
    } else if (step.what == static_cast<uint8_t>(Event::kTick)) {
      Take(node_.Tick(now_));
    } else if (step.what == static_cast<uint8_t>(Event::kStop)) {
      Take(node_.RequestStop(now_));
    } else {
      Compute();
    }
  }

  void Compute() {
    while (!work_.empty() && !over_) {
      const auto work = std::move(work_.front());
      work_.pop_front();
      work->Run();
      Take(node_.OnComputed(*work, now_));
    }
  }

  void Check() {
    Require(work_.size() < 50, "more work than chunks");
    Require(node_.Describe(now_).ByteSizeLong() < kMostStatus, "a status without end");
  }

 private:
  void Take(ServerActions actions) {
    Require(actions.size() < kMostActions, "one call returns too many actions");
    for (ServerAction& action : actions) {
      if (over_) return;
      std::visit([this](auto& one) { Do(one); }, action);
    }
  }
  void Do(const SendAction& send) { Require(!send.to.empty(), "sent to nobody"); }
  void Do(const ComputeAction& compute) { work_.push_back(compute.work); }
  void Do(const SaveAction& save) {
    Take(node_.OnSaved(save.header.generation, save.header.version, save.attempt,
                       SavedShardFile{1, 1}, now_));
  }
  void Do(const RestoreAction& restore) {
    Take(node_.OnRestored(restore.generation, NotFound("there is no such checkpoint"), now_));
  }
  void Do(const ChooseCheckpointAction& choose) {
    Take(node_.OnDiskAnswer(choose.generation,
                            CheckpointChosen{std::optional<checkpoint::Manifest>()}, now_));
  }
  void Do(const ReserveGenerationAction& reserve) {
    Take(node_.OnDiskAnswer(reserve.generation, GenerationReserved(), now_));
  }
  void Do(const CommitAction& commit) {
    Take(node_.OnDiskAnswer(commit.manifest.generation(),
                            CheckpointCommitted{commit.manifest.version(), OkStatus()}, now_));
  }
  void Do(const KeepEvaluationAction& keep) {
    Take(node_.OnDiskAnswer(keep.since, EvaluationKept(), now_));
  }
  void Do(const ExitAction&) { over_ = true; }
  template <class Told>
  void Do(const Told&) {}

  const FramingOptions& framing_;
  ServerNode node_;
  std::deque<std::shared_ptr<ChunkWork>> work_;
  TimeUs now_ = 0;
  bool over_ = false;
};

void Play(std::string_view input) {
  StepReader steps(input);
  const auto& cases = ServerCases();
  const ServerCase& one = cases[steps.start() % cases.size()];
  ServerUnderTest server(one);
  // Replays so many messages of the job.
  const size_t heard = one.arrivals.size() * (steps.start() / cases.size()) / 64;
  for (size_t i = 0; i < heard && !server.over(); ++i) {
    server.Hear(one.arrivals[i].peer, one.arrivals[i].message);
    server.Compute();
  }
  for (Step step; !server.over() && steps.Next(&step);) {
    step.what %= static_cast<uint8_t>(Event::kCount);
    server.Happen(step);
    server.Check();
  }
}

}  // namespace
}  // namespace kumo::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  FLAGS_minloglevel = google::GLOG_FATAL;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kumo::fuzz::Play(kumo::fuzz::AsText(data, size));
  return 0;
}
