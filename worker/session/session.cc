#include "worker/session/session.h"

#include <algorithm>
#include <limits>

#include <glog/logging.h>

#include "common/job/buggify.h"
#include "common/transport/message.h"

namespace kumo {
namespace {

wire::Hello::Level LevelOf(std::optional<Isa> isa) {
  if (!isa) return wire::Hello::LEVEL_UNSPECIFIED;
#if defined(__x86_64__)
  switch (*isa) {
    case Isa::kBaseline:
      return wire::Hello::X86_64_V2;
    case Isa::kV3:
      return wire::Hello::X86_64_V3;
    case Isa::kV4:
      return wire::Hello::X86_64_V4;
  }
#endif
  return wire::Hello::OTHER_ARCHITECTURE;
}

// The part of a HELLO that is the same for all servers.
wire::Hello Introduction(const SessionSettings& settings) {
  wire::Hello hello = HelloOf(settings.identity, settings.process);
  hello.set_role(wire::Hello::WORKER);
  hello.set_name(settings.name);
  hello.set_device(settings.device);
  hello.set_instruction_set(LevelOf(settings.isa));
  *hello.mutable_spec() = SpecToWire(settings.spec);
  return hello;
}

}  // namespace

Result<Session> Session::Make(const SessionSettings& settings, TimeUs now) {
  KUMO_ASSIGN_OR_RETURN(JobShape shape, JobShape::Make(settings.experiment, settings.spec,
                                                       settings.identity.servers));
  return Session(settings, std::make_unique<const JobShape>(std::move(shape)), now);
}

Session::Session(const SessionSettings& settings, std::unique_ptr<const JobShape> shape, TimeUs now)
    : peer_name_(WorkerPeer(settings.name, settings.process.incarnation)),
      shape_(std::move(shape)),
      servers_(settings.identity.servers, settings.experiment.cluster, Introduction(settings),
               settings.identity.JobId(), now),
      requests_(ChunkWindow(settings.experiment.cluster.chunk_kib * 1024),
                shape_->plan.delay() + 1),
      rounds_(shape_.get()),
      grace_s_(settings.experiment.checkpoint.grace_s) {}

// --- Messages.

WorkerActions Session::OnMessage(int server, const Message& message, TimeUs now) {
  if (finished_) return {};
  WorkerStepContext context = Begin(now);
  const wire::Header& header = message.header;
  if (header.type() == wire::REFUSED) {
    OnRefused(server, header, &context);
    return End(std::move(context));
  }
  switch (servers_.Hear(server, header, now)) {
    case JoinedServers::Heard::kOther:
      return {};
    case JoinedServers::Heard::kRejoined:
      rounds_.ForgetOrders();
      Greet(0, &context);
      return End(std::move(context));
    case JoinedServers::Heard::kOurs:
      break;
  }
  switch (header.type()) {
    case wire::WELCOME:
      OnWelcome(server, header.welcome(), &context);
      break;
    case wire::HEARTBEAT_REPLY:
      if (server == 0) OnReply(header, &context);
      break;
    case wire::GONE:
      OnGone(server, message, &context);
      break;
    default:
      rounds_.OnAnswer(server, message, &context);
  }
  Proceed(&context);
  LeaveIfHandedOver(&context);
  return End(std::move(context));
}

void Session::OnWelcome(int server, const wire::Welcome& welcome, WorkerStepContext* context) {
  const JoinedServers::Welcomed welcomed = servers_.OnWelcome(server, welcome, context->now);
  if (welcomed.anew) rounds_.Forget(servers_.start_version(), context);
  if (!welcomed.joined) return;
  requests_.Reopen(server);
  if (server != 0) return;
  for (int i = 1; i < shape_->map.servers(); ++i) Greet(i, context);
}

void Session::OnRefused(int server, const wire::Header& header, WorkerStepContext* context) {
  const std::string text = servers_.NameOf(server) + " refused: " + header.refusal().reason();
  const StatusCode code = ErrorFromPeer(header.refusal().code(), text).code();
  if (code == StatusCode::kAborted) {
    // The message was a moment early or late; if it still matters, it is repeated.
    LOG(WARNING) << text;
    return;
  }
  Finish(Status(code == StatusCode::kInvalidArgument ? StatusCode::kInternal : code, text),
         context);
}

void Session::OnReply(const wire::Header& header, WorkerStepContext* context) {
  if (header.has_refusal()) {
    Finish(ErrorFromPeer(header.refusal().code(), "the job failed: " + header.refusal().reason()),
           context, /*handed_over=*/false, /*job_ended=*/true);
  } else if (header.orders().finished()) {
    const bool stopped = header.orders().stopped();
    Finish(stopped ? Unavailable("the job was stopped and saved") : OkStatus(), context,
           /*handed_over=*/false, /*job_ended=*/true);
  } else if (header.has_orders()) {
    rounds_.OnOrders(header, context);
  }
}

void Session::OnGone(int server, const Message& message, WorkerStepContext* context) {
  if (message.header.request() != 0) {
    rounds_.OnAnswer(server, message, context);
    return;
  }
  // The server has no record of this worker. If it is server 0, other workers have its leases.
  servers_.OnForgotten(server);
  if (server == 0) rounds_.Forget(servers_.start_version(), context);
  Greet(server, context);
}

WorkerActions Session::OnConnected(int server, TimeUs now) {
  if (finished_) return {};
  WorkerStepContext context = Begin(now);
  servers_.OnConnected(server, now);
  requests_.SendAgain(server);
  return End(std::move(context));
}

// --- Timers.

WorkerActions Session::Tick(TimeUs now, const Traffic& traffic) {
  if (finished_) return {};
  WorkerStepContext context = Begin(now);
  report_.set_bytes_sent(traffic.bytes_sent);
  report_.set_bytes_received(traffic.bytes_received);
  const JoinedServers::Due due = servers_.Tick(now);
  for (const int server : due.greetings) Greet(server, &context);
  if (!due.lost.empty()) {
    Finish(Unavailable(due.lost + " (" + StateInWords() + ")"), &context);
    return End(std::move(context));
  }
  if (due.heartbeats && !Buggify(RareWay::kHeartbeatSkipped)) SendHeartbeats(&context);
  for (const OpenRequest* request : requests_.Due(now)) {
    context.Send(request->server, request->message);
  }
  Proceed(&context);
  LeaveIfHandedOver(&context);
  return End(std::move(context));
}

TimeUs Session::NextDeadline() const {
  if (finished_) return std::numeric_limits<TimeUs>::max();
  return std::min(servers_.NextDeadline(), requests_.NextDue());
}

void Session::Greet(int server, WorkerStepContext* context) {
  Message hello = servers_.Greeting(server, context->now);
  rounds_.Claim(requests_, hello.header.mutable_hello());
  context->Send(server, std::move(hello));
}

void Session::SendHeartbeats(WorkerStepContext* context) {
  rounds_.Report(context->now, &report_);
  report_.set_state(StateInWords());
  report_.clear_unheard();
  for (const int server : servers_.Unheard()) report_.add_unheard(server);
  for (int i = 0; i < shape_->map.servers(); ++i) {
    Message heartbeat;
    heartbeat.header.set_type(wire::HEARTBEAT);
    if (i == 0) *heartbeat.header.mutable_worker_report() = report_;
    context->Send(i, std::move(heartbeat));
  }
}

// --- Computations.

void Session::Proceed(WorkerStepContext* context) {
  if (finished_ || servers_.Missing() >= 0 || Buggify(RareWay::kGoesOnLate)) return;
  rounds_.Proceed(context);
}

WorkerActions Session::OnInitialised(InitialWeights weights, TimeUs now) {
  if (finished_) return {};
  WorkerStepContext context = Begin(now);
  rounds_.OnInitialised(std::move(weights), &context);
  Proceed(&context);
  return End(std::move(context));
}

WorkerActions Session::OnCoded(std::vector<CodedChunk> chunks, TimeUs now) {
  if (finished_) return {};
  WorkerStepContext context = Begin(now);
  rounds_.OnCoded(std::move(chunks), /*leaving=*/leave_by_ > 0, &context);
  return End(std::move(context));
}

WorkerActions Session::OnTrained(TrainedBlock block, TimeUs now) {
  if (finished_) return {};
  WorkerStepContext context = Begin(now);
  rounds_.OnTrained(std::move(block), &context);
  Proceed(&context);
  return End(std::move(context));
}

WorkerActions Session::OnTrainedAhead(TrainedAhead ahead, TimeUs now) {
  if (finished_) return {};
  WorkerStepContext context = Begin(now);
  rounds_.OnTrainedAhead(std::move(ahead), &context);
  Proceed(&context);
  LeaveIfHandedOver(&context);
  return End(std::move(context));
}

WorkerActions Session::OnEvaluated(const Evaluation& evaluation, TimeUs now) {
  if (finished_) return {};
  WorkerStepContext context = Begin(now);
  rounds_.OnEvaluated(evaluation, &context);
  Proceed(&context);
  return End(std::move(context));
}

WorkerActions Session::OnFailed(const Status& status, TimeUs now) {
  WorkerStepContext context = Begin(now);
  Finish(status, &context);
  return End(std::move(context));
}

// --- Departure.

WorkerActions Session::Leave(TimeUs now) {
  if (finished_) return {};
  WorkerStepContext context = Begin(now);
  const int request = stop_requests_.OnSignal(now);
  if (request == 0) return {};
  const bool again = request > 1;
  if (!again) leave_by_ = now + FromSeconds(grace_s_);
  if (again || !servers_.joined()) {
    // A worker that has never joined has no partitions; one that joins again may have some.
    Finish(Unavailable("ended by a signal before its partitions were handed over"), &context,
           /*handed_over=*/!servers_.ever_joined());
  } else {
    report_.set_leaving(true);
    SendHeartbeats(&context);
    LeaveIfHandedOver(&context);
  }
  return End(std::move(context));
}

// A worker that was told to leave can end without loss when it has no lease, no half-pushed block
// and no unacknowledged request.
void Session::LeaveIfHandedOver(WorkerStepContext* context) {
  if (leave_by_ == 0 || finished_) return;
  if (rounds_.HandedOver() && requests_.empty()) {
    report_.set_handed_over(true);
    Finish(Unavailable("left on request; other workers take over its partitions"), context,
           /*handed_over=*/true);
  } else if (context->now > leave_by_) {
    Finish(Unavailable("left on request, but its partitions were not handed over within " +
                       std::to_string(static_cast<int>(grace_s_)) + " s (checkpoint.grace_s)"),
           context);
  }
}

void Session::Finish(Status status, WorkerStepContext* context, bool handed_over, bool job_ended) {
  if (finished_) return;
  finished_ = true;
  rounds_.Report(context->now, &report_);
  Message bye;
  bye.header.set_type(wire::BYE);
  *bye.header.mutable_worker_report() = report_;
  bye.header.mutable_worker_report()->set_failure(status.message());
  bye.header.mutable_worker_report()->set_failure_code(static_cast<uint32_t>(status.code()));
  context->Send(0, std::move(bye));
  context->Do(LeaveAction{std::move(status), handed_over, job_ended});
}

// --- Descriptions.

std::string Session::WaitsForProcesses() const {
  if (const int missing = servers_.Missing(); missing >= 0) return servers_.NameOf(missing);
  const std::string job_waits_for = rounds_.JobWaitsFor();
  return job_waits_for.empty() ? "" : "the job, which waits for " + job_waits_for;
}

std::string Session::StateInWords() const {
  if (const std::string missing = WaitsForProcesses(); !missing.empty()) {
    return "waits for " + missing;
  }
  return rounds_.InWords(requests_);
}

}  // namespace kumo
