#include "server/service/survey_service.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>
#include <variant>

#include <glog/logging.h>

#include "common/telemetry/wait_notice.h"
#include "common/transport/zmq_transport.h"
#include "server/disks/disk.h"
#include "server/service/server_service.h"

namespace kumo {
namespace {

// Carries out the actions of a survey. Nothing else goes on, so the disk may block.
class SurveyDriver {
 public:
  SurveyDriver(CheckpointSurvey* survey, Disk* disk, ZmqTransport* transport, const Clock* clock)
      : survey_(survey), disk_(disk), transport_(transport), clock_(clock) {}

  void Perform(ServerActions actions) {
    std::deque<ServerAction> waiting(std::make_move_iterator(actions.begin()),
                                     std::make_move_iterator(actions.end()));
    while (!waiting.empty()) {
      const ServerAction action = std::move(waiting.front());
      waiting.pop_front();
      for (ServerAction& next : Do(action)) waiting.push_back(std::move(next));
    }
  }

 private:
  ServerActions Do(const ServerAction& action) {
    if (const auto* send = std::get_if<SendAction>(&action)) {
      // The survey repeats requests that are not answered.
      const Status status = transport_->Send(send->to, send->message);
      if (!status.ok()) VLOG(1) << status.message();
    } else if (const auto* check = std::get_if<CheckFilesAction>(&action)) {
      return survey_->OnAnswer(FilesChecked{check->fetch, disk_->Check(*check)}, clock_->NowUs());
    } else if (const auto* write = std::get_if<WritePieceAction>(&action)) {
      return survey_->OnAnswer(PieceWritten{write->fetch, write->offset, disk_->Write(*write)},
                               clock_->NowUs());
    } else if (const auto* keep = std::get_if<KeepManifestAction>(&action)) {
      disk_->KeepManifest(*keep);
    } else {
      LOG(DFATAL) << "a survey asks its driver for an action that only a server has";
    }
    return {};
  }

  CheckpointSurvey* const survey_;
  Disk* const disk_;
  ZmqTransport* const transport_;
  const Clock* const clock_;
};

}  // namespace

Result<SurveyedDisks> SurveyDisks(const ServerNodeSettings& settings, const std::string& address,
                                  FileSystem* files, const Clock* clock, StopSource* stops,
                                  Console* console) {
  Disk disk(files, settings.experiment);
  const auto needed = disk.NeededSurvey(settings.identity);
  if (!needed) return SurveyedDisks();
  KUMO_ASSIGN_OR_RETURN(ZmqTransportOptions options, TransportOptions(settings));
  KUMO_ASSIGN_OR_RETURN(std::unique_ptr<ZmqTransport> transport,
                        ZmqTransport::Make(std::move(options)));
  KUMO_RETURN_IF_ERROR(transport->Bind(address));
  bool stopped = false;
  transport->AddFd(stops->fd(), [&] { stopped = !stops->Take().empty() || stopped; });
  CheckpointSurvey survey(*needed, clock->NowUs());
  SurveyDriver driver(&survey, &disk, transport.get(), clock);
  WaitNotice wait_notice;
  TimeUs next_tick = 0;
  const auto on_message = [&](const PeerName& from, const Message& message) {
    driver.Perform(survey.OnMessage(from, message, clock->NowUs()));
  };
  while (!survey.outcome()) {
    if (stopped) return Unavailable("stopped while it asked the other servers for checkpoints");
    const TimeUs now = clock->NowUs();
    if (now >= next_tick) {
      next_tick = now + kServerTick;
      driver.Perform(survey.Tick(now));
      const std::string waits = survey.WaitsFor();
      const auto notice = wait_notice.Update(
          waits.empty() ? "" : waits + ", whose disks may have checkpoints that this one lacks",
          now);
      if (notice) {
        LOG(INFO) << *notice;
        console->Write(*notice + "\n");
      }
    }
    transport->Poll(std::max<TimeUs>(next_tick - clock->NowUs(), 0), on_message);
  }
  KUMO_RETURN_IF_ERROR(*survey.outcome());
  return SurveyedDisks{survey.generation(), survey.skipped()};
}

}  // namespace kumo
