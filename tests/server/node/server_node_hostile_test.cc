#include "server/node/server_node.h"

#include <limits>

#include <gtest/gtest.h>

#include "tests/common/job/loss_and_accuracy.h"
#include "tests/server/node/server_node_harness.h"

namespace kumo {
namespace {

using test::ExitOf;
using test::Job;
using test::JobOn;
using test::Node;
using test::Sends;
using test::Stamped;
using test::WelcomeTo;
using test::WorkerHello;

class WildMessages {
 public:
  WildMessages(const Job& job, uint64_t seed)
      : job_(job),
        map_(job.spec.layout, static_cast<int>(job.experiment.cluster.servers.size()),
             job.experiment.cluster.chunk_kib * 1024),
        job_id_(IdentityOf(job.experiment).JobId()),
        hello_(WorkerHello(job, "w0")),
        rng_(seed, RngPurpose::kTest) {}

  Rng& rng() { return rng_; }
  uint64_t job_id() const { return job_id_; }

  // A message of the worker of that name and incarnation, whose hellos are mostly its own.
  Message Next(const std::string& name, uint64_t incarnation) {
    const Chunk& chunk = map_.chunks()[rng_.NextBelow(map_.chunks().size())];
    Message m = test::PushMessage(job_, chunk, static_cast<int64_t>(rng_.NextBelow(8)),
                                  static_cast<int>(rng_.NextBelow(3)));
    wire::Header& h = m.header;
    const int types[] = {1, 4, 6, 10, 11, 13, 16, 17, 20, 21, 30};
    if (rng_.NextBelow(3)) h.set_type(static_cast<wire::Type>(types[rng_.NextBelow(11)]));
    if (rng_.NextBelow(30) == 0) h.set_type(static_cast<wire::Type>(Wild(40)));
    if (h.type() == wire::INITIALISE || h.type() == wire::PUT_STATE) {
      m.payload = test::PackFloats(std::vector<float>(chunk.range.size()));
    }
    if (h.type() == wire::HELLO) m = RandomHello(name, incarnation);
    m = Stamped(job_id_, std::move(m));
    for (uint64_t i = rng_.NextBelow(4); i > 0; --i) Mutate(&m);
    return m;
  }

 private:
  int64_t Wild(int64_t sensible) {
    const int64_t extremes[] = {-1, INT64_MIN, INT64_MAX, INT32_MIN, INT32_MAX, 1 << 20};
    if (rng_.NextBelow(3) == 0) return extremes[rng_.NextBelow(6)];
    return static_cast<int64_t>(rng_.NextBelow(sensible));
  }

  Message RandomHello(const std::string& name, uint64_t incarnation) {
    Message m = hello_;
    wire::Hello* hello = m.header.mutable_hello();
    hello->set_name(name);
    hello->set_incarnation(incarnation);
    if (rng_.NextBelow(4) == 0) {
      hello->set_role(wire::Hello::SERVER);
      hello->set_server_index(static_cast<int32_t>(Wild(3)));
    }
    if (rng_.NextBelow(8) == 0) hello->set_incarnation(rng_.NextBelow(3));
    if (rng_.NextBelow(4) == 0) hello->mutable_spec()->set_train_samples(Wild(100));
    if (rng_.NextBelow(4) == 0) hello->mutable_spec()->mutable_tensors(0)->add_shape(Wild(9));
    if (rng_.NextBelow(4) == 0) hello->set_experiment_hash(rng_.NextUint64());
    if (rng_.NextBelow(4) == 0) hello->set_name(std::string(1000, '\x7f'));
    return m;
  }

  void Mutate(Message* m) {
    wire::Header& h = m->header;
    switch (rng_.NextBelow(16)) {
      case 0:
        h.set_round(Wild(10));
        break;
      case 1:
        h.set_partition(static_cast<int32_t>(Wild(4)));
        break;
      case 2:
        h.set_chunk(static_cast<int32_t>(Wild(6)));
        break;
      case 3:
        h.set_codec(static_cast<uint32_t>(Wild(7)));
        break;
      case 4:
        h.set_samples(Wild(9));
        h.set_weight(Wild(9));
        break;
      case 5:
        h.set_carried_array(static_cast<int32_t>(Wild(2)));
        h.set_request(static_cast<uint64_t>(Wild(9)));
        break;
      case 6:
        h.set_vector(static_cast<wire::Vector>(Wild(3)));
        break;
      case 7:
        h.set_generation(static_cast<uint32_t>(Wild(3)));
        break;
      case 8:
        h.set_job(rng_.NextUint64());
        break;
      case 9:
        m->payload = test::PackFloats(std::vector<float>(rng_.NextBelow(600)));
        break;
      case 10:
        h.mutable_metrics()->set_samples(Wild(100));
        break;
      case 11:
        test::SetLossSum(std::numeric_limits<double>::quiet_NaN(), h.mutable_metrics());
        break;
      case 16:
        h.mutable_metrics()->mutable_sums()->Resize(static_cast<int>(rng_.NextBelow(40)), 0.5);
        break;
      case 12:
        h.mutable_worker_report()->set_samples(Wild(100));
        break;
      case 13:
        h.mutable_server_report()->set_version(Wild(9));
        break;
      case 14:
        h.mutable_saved_file()->set_bytes(static_cast<uint64_t>(Wild(100)));
        break;
      default:
        h.set_wait(true);
    }
  }

  const Job& job_;
  const ShardMap map_;
  const uint64_t job_id_;  // both take long to work out
  const Message hello_;
  Rng rng_;
};

// What a member says of itself is kept, and sent to everybody who asks for the job's status.
TEST(ServerNode, AStatusStaysSmallWhateverMembersSayOfThemselves) {
  const Job job = JobOn(1);
  ServerNode node = Node(job, 0);
  (void)node.OnMessage("worker/a/1", WorkerHello(job, "a"), 0);
  Message beat = test::Plain(job, wire::HEARTBEAT);
  wire::WorkerReport* report = beat.header.mutable_worker_report();
  report->set_state(std::string(900'000, 'x') + "\n");
  report->set_failure(std::string(900'000, '\n'));
  for (int i = 0; i < 200'000; ++i) {
    report->add_partitions(i);
    report->add_unheard(i);
  }
  (void)node.OnMessage("worker/a/1", beat, 0);
  const auto sends = Sends(node.OnMessage("client/x", test::Plain(job, wire::STATUS), 0));
  ASSERT_EQ(sends.size(), 1u);
  const wire::JobStatus& status = sends[0].message.header.job_status();
  ASSERT_EQ(status.workers_size(), 1);
  EXPECT_LT(status.ByteSizeLong(), 4000u);
  EXPECT_EQ(status.workers(0).report().state().find('\n'), std::string::npos);
}

TEST(ServerNode, RandomMessagesNeitherCrashNorFillAServer) {
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE(seed);
    const int servers = 1 + static_cast<int>(seed % 3);
    const Job job = JobOn(servers);
    WildMessages wild(job, seed);
    const int index = static_cast<int>(seed % servers);
    ServerNode node = Node(job, index);
    if (index > 0) (void)node.OnMessage(ServerPeer(0), WelcomeTo(job, 1), 0);
    if (seed % 4) (void)node.OnMessage("worker/w0/1", WorkerHello(job, "w0"), 0);
    std::vector<std::shared_ptr<ChunkWork>> work;
    bool over = false;
    size_t most = 0;
    TimeUs now = 0;
    const auto take = [&](ServerActions actions) {
      most = std::max(most, actions.size());
      over |= ExitOf(actions).has_value();
      for (ServerAction& action : actions) {
        if (auto* compute = std::get_if<ComputeAction>(&action)) work.push_back(compute->work);
      }
    };
    for (int i = 0; i < 1000 && !over; ++i) {
      now += static_cast<TimeUs>(wild.rng().NextBelow(20 * kMillisecond));
      const std::string name = "w" + std::to_string(wild.rng().NextBelow(5));
      const uint64_t incarnation = wild.rng().NextBelow(3);
      PeerName from = WorkerPeer(name, incarnation);
      if (wild.rng().NextBelow(20) == 0) from = ServerPeer(static_cast<int>(i % servers));
      if (from == ServerPeer(0) && index > 0) from = "client/1";  // server 0 itself is trusted
      take(node.OnMessage(from, wild.Next(name, incarnation), now));
      if (wild.rng().NextBelow(5) == 0) take(node.Tick(now));
      while (!work.empty() && wild.rng().NextBelow(2)) {
        const auto next = work.back();
        work.pop_back();
        next->Run();
        take(node.OnComputed(*next, now));
      }
      ASSERT_LT(work.size(), 10u);
    }
    // Never more than an answer or two for each of the few members and parked requests.
    EXPECT_LT(most, 200u);
    if (index == 0) {
      Message status;
      status.header.set_type(wire::STATUS);
      EXPECT_EQ(Sends(node.OnMessage("client/1", status, now)).size(), 1u);
      EXPECT_LT(node.Describe(now).ByteSizeLong(), 100'000u);
    }
  }
}

// A neighbour's messages neither: what it is sent to keep, and what it fetches.
TEST(ServerNode, RandomMessagesBetweenNeighboursDoNotCrashThem) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    Job job = JobOn(2);
    job.experiment.cluster.replicas = 2;
    WildMessages wild(job, seed);
    ServerNode node = Node(job, 1);
    const bool fetches = seed % 2 == 0;
    Message welcome = WelcomeTo(job, 2);
    if (fetches) welcome.header.mutable_welcome()->set_since(1);
    (void)node.OnMessage(ServerPeer(0), welcome, 0);
    (void)node.OnMessage("worker/a/1", WorkerHello(job, "a"), 0);
    const ShardMap map(job.spec.layout, 2, job.experiment.cluster.chunk_kib * 1024);
    for (int i = 0; i < 1000; ++i) {
      const auto below = [&](uint64_t n) { return static_cast<int>(wild.rng().NextBelow(n)); };
      Message m = wild.Next("a", 1);
      wire::Header& h = m.header;
      const wire::Type types[] = {wire::REPLICATE, wire::FETCH_REPLICA, wire::ACK};
      h.set_type(types[below(3)]);
      h.set_acknowledges(types[below(2)]);
      h.set_generation(2);
      h.set_job(wild.job_id());
      h.set_chunk(below(map.chunks().size() + 2) - 1);
      h.set_round(below(5) == 0 ? INT64_MAX - below(3) : below(4) - 1);
      h.set_version_array(below(6) - 1);
      h.set_arrays(static_cast<uint32_t>(below(5)));
      h.set_versions(static_cast<uint32_t>(below(5)));
      const bool known = h.chunk() >= 0 && h.chunk() < static_cast<int>(map.chunks().size());
      if (known && below(4) > 0) {
        m.payload = test::PackFloats(std::vector<float>(map.chunks()[h.chunk()].range.size()));
      }
      (void)node.OnMessage(ServerPeer(0), m, i * kMillisecond);
      (void)node.Tick(i * kMillisecond);
    }
  }
}

TEST(ServerNode, RandomMessagesFromServer0DoNotCrashAFollower) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    const Job job = JobOn(2);
    WildMessages wild(job, seed);
    ServerNode node = Node(job, 1);
    const int types[] = {2, 4, 5, 12, 14, 15};
    for (int i = 0; i < 500; ++i) {
      Message m = wild.Next("a", 1);
      m.header.set_type(static_cast<wire::Type>(types[wild.rng().NextBelow(6)]));
      m.header.mutable_welcome()->set_generation(static_cast<uint32_t>(wild.rng().NextBelow(3)));
      m.header.mutable_welcome()->set_since(static_cast<uint32_t>(wild.rng().NextBelow(3)));
      m.header.mutable_welcome()->set_restore("../..");
      if (wild.rng().NextBelow(20) == 0) m.header.mutable_refusal()->set_code(12345);
      (void)node.OnMessage(ServerPeer(0), m, i * kMillisecond);
      (void)node.Tick(i * kMillisecond);
    }
  }
}

}  // namespace
}  // namespace kumo
