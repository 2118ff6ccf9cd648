// A worker's conversation with the servers, as a state machine: it joins, takes leases, and for
// each leased partition pulls the weights of a round, has its block trained, pushes the
// contribution, and again, until the coordinator says that the job is over.
//
// What it wants computed it returns as actions (one at a time); the driver answers with OnTrained
// and its kind. Everything that it asks of a server is repeated until answered, and every request
// may be answered twice. No method blocks, reads a clock or does I/O. One thread.
//
// A round in words. Let r be the smallest round among the leased partitions. (1) Every chunk that
// is not installed at version r is pulled; servers park the pull until the version exists. (2) For
// each partition whose round is r: where version r ends an epoch, its slice of the validation set
// is evaluated and the result acknowledged; then its block is trained and the coded contribution
// pushed chunk by chunk, some perhaps while the block is still computed. (3) Where the pull of
// chunk 0 said that this round ends with a checkpoint, what the partition carries is put on the
// servers too, and acknowledged, before its next round.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/job/codec/codec.h"
#include "common/job/job_identity.h"
#include "common/job/job_plan.h"
#include "common/job/options/experiment.h"
#include "common/job/shard_map.h"
#include "common/job/transport/message.h"
#include "worker/session/actions.h"
#include "worker/session/open_requests.h"

namespace kumo {

struct SessionSettings {
  JobIdentity identity;
  Experiment experiment;
  JobSpec spec;
  std::string name;  // "worker-0"
  std::string device;
  ProcessIdentity process;
};

class Session {
 public:
  static Result<Session> Make(SessionSettings settings, TimeUs now);

  // The name that this worker's messages travel under.
  PeerName peer_name() const;
  const JobPlan& plan() const { return plan_; }
  const ShardMap& map() const { return map_; }
  // The codec of a round's contributions to a chunk.
  const Codec& PushCodec(const RoundPlan& round, Segment segment) const;

  WorkerActions OnMessage(int server, const Message& message, TimeUs now);
  // The connection to a server was made (again): what it may have missed is asked at once.
  WorkerActions OnConnected(int server, TimeUs now);
  WorkerActions Tick(TimeUs now);
  TimeUs NextDeadline() const;

  // weights: by chunk, float32.
  WorkerActions OnInitialised(InitialWeights weights, TimeUs now);
  // The driver hands on chunks of the block's contribution (not chunk 0) that are final while the
  // rest is still computed; all before OnTrained.
  WorkerActions OnCoded(std::vector<CodedChunk> chunks, TimeUs now);
  WorkerActions OnTrained(TrainedBlock block, TimeUs now);
  WorkerActions OnEvaluated(const wire::Metrics& metrics, TimeUs now);
  // The block could not be computed (numbers that are not finite, a device's failure): tells the
  // coordinator and leaves.
  WorkerActions OnFailed(const Status& status, TimeUs now);
  // A worker that gets SIGTERM asks the coordinator to move its leases to others, goes on until
  // what its partitions carry is on the servers, and leaves. When it is asked again, or after
  // checkpoint.grace_s, it leaves as it is.
  WorkerActions Leave(TimeUs now);

  // The report in each heartbeat says how much was sent and received,
  void SetTraffic(uint64_t bytes_sent, uint64_t bytes_received);
  // and how long the last block was computed and coded, in milliseconds.
  void SetTimes(double compute_ms, double coding_ms);
  // Whom it waits for before it can begin, or go on: "server 1 at tcp://beta:7700", or what the
  // coordinator says that the job waits for; "" when nobody is missing.
  std::string WaitsForProcesses() const;
  // "round 812: waits for the weights (chunks on server 1)"
  std::string StateInWords() const;

 private:
  struct Server {
    bool welcomed = false;
    TimeUs heard = 0;
    bool unheard = false;  // for longer than a process may be silent
    TimeUs next_hello = 0;
  };
  struct Lease {
    int64_t from = 0;          // as ordered
    int64_t round = 0;         // next to compute
    int64_t until = 0;         // computes rounds before this; the last of all where it is no helper
    bool handed_over = false;  // what it carries is still on its way from a live worker
    bool adopted = false;      // has what it carries
    int64_t evaluated = -1;    // version whose evaluation is acknowledged
  };
  enum class Busy { kNo, kInitialising, kTraining, kEvaluating };

  Session(SessionSettings settings, JobPlan plan, ShardMap map, TimeUs now);

  void OnWelcome(int server, const wire::Welcome& welcome, WorkerActions* actions);
  void Rejoin(uint32_t generation, WorkerActions* actions);
  void LeaveIfHandedOver(WorkerActions* actions);
  void OnOrders(const wire::Header& header, WorkerActions* actions);
  void ForgetRounds(WorkerActions* actions);
  void OnAck(const wire::Header& header);
  void OnChunk(const Message& message);
  void OnGone(int server, const wire::Header& header, WorkerActions* actions);
  void OnState(const Message& message);
  void OnRefused(int server, const wire::Header& header, WorkerActions* actions);

  // Starts whatever can be started next.
  void Proceed(WorkerActions* actions);
  void ReportTimes();
  bool PullMissing(wire::Vector vector, int64_t version, WorkerActions* actions);
  bool NeedsWeightsApart(int64_t version) const;
  void ComputePartition(int partition, Lease* lease, WorkerActions* actions);
  Lease* LeaseOfBlock();
  bool HalfPushed() const;
  void EndBlock(std::vector<TrainedBlock::Array> carried, Lease* lease, WorkerActions* actions);
  void Push(int chunk, Payload payload, const wire::Metrics* metrics, WorkerActions* actions);
  void AskForState(int partition, const Lease& lease, WorkerActions* actions);
  void Ask(int server, wire::Header header, Payload payload, WorkerActions* actions);
  void SendHello(int server, WorkerActions* actions);
  void SendHeartbeats(WorkerActions* actions);
  void Finish(Status status, WorkerActions* actions);
  // "server 0 at tcp://host:7700"
  std::string NameOf(int server) const;
  int ServerOf(int chunk) const { return map_.chunks()[chunk].server; }
  int64_t TargetRound() const;
  WorkerActions Stamp(WorkerActions actions) const;

  SessionSettings settings_;
  JobPlan plan_;
  ShardMap map_;
  PushCodecs push_codecs_;

  TimeUs now_ = 0;
  TimeUs ticked_at_ = 0, held_up_at_ = 0;
  std::vector<Server> servers_;
  uint32_t generation_ = 0;         // 0: not welcomed yet
  uint32_t newest_generation_ = 0;  // that server 0 has spoken of
  uint32_t since_ = 0;              // the generation that our leases and requests began in
  int64_t start_version_ = 0;
  TimeUs next_heartbeat_ = 0;
  bool finished_ = false;
  TimeUs leave_by_ = 0;    // was told to leave; 0: was not
  bool released_ = false;  // was, and the coordinator has nothing more for it

  std::map<int, Lease> leases_;        // by partition
  bool initialised_ = false;           // the initial weights were pushed, or are not wanted
  std::vector<int64_t> installed_[2];  // by vector and chunk: version, or -1
  std::vector<std::optional<Message>> waiting_[2];  // pulled, not installed yet
  OpenRequests requests_;
  std::map<std::tuple<int, int, int>, Payload> received_states_;  // partition, chunk, array

  // Times of the round under way, as far as it has come: when its last block was pushed, when the
  // last push was acknowledged, and when the first and the last chunk of the next version came.
  struct RoundTimes {
    std::optional<TimeUs> pushed, acknowledged, first_chunk, last_chunk;
  };
  RoundTimes times_;
  double coding_ms_ = 0;

  Busy busy_ = Busy::kNo;
  int busy_partition_ = 0;  // -1: the result is to be thrown away
  int64_t busy_round_ = 0;
  std::vector<bool> pushed_;  // by chunk, of the block that is being trained
  bool save_ = false;         // what chunk 0, as installed, says of its round
  int64_t halted_at_ = -1;    // the version that the job stops at
  // Leases may have moved at `orders_due_`: what is leased from there on is known when orders of
  // that version have come. orders_at_: the version of the newest orders.
  int64_t orders_due_ = -1, orders_at_ = -1;
  std::string job_waits_for_;  // as the newest orders say

  wire::WorkerReport report_;
};

}  // namespace kumo
