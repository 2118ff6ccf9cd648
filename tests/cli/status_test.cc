// kumo status against a server that answers, one that does not, and none.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "common/base/process/output_lock.h"
#include "common/transport/zmq_transport.h"
#include "tests/cli/kumo_runner.h"

namespace kumo {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class StatusTest : public KumoTest {
 protected:
  std::unique_ptr<ZmqTransport> Server() {
    ZmqTransportOptions options;
    options.name = ServerPeer(0);
    options.framing.job = 77;
    auto server = ZmqTransport::Make(options);
    EXPECT_TRUE(server.ok());
    EXPECT_TRUE((*server)->Bind("tcp://127.0.0.1:*").ok());
    return std::move(server).value();
  }
  // Answers one question, within a limit.
  void Answer(ZmqTransport* server) {
    bool answered = false;
    Await("a question", [&] {
      server->Poll(10 * kMillisecond, [&](const PeerName& from, Message question) {
        EXPECT_EQ(question.header.type(), wire::STATUS);
        Message reply;
        reply.header.set_type(wire::STATUS_REPLY);
        reply.header.mutable_job_status()->set_job_name("mine");
        reply.header.mutable_job_status()->set_round(42);
        EXPECT_TRUE(server->Send(from, std::move(reply)).ok());
        answered = true;
      });
      return answered;
    });
  }
};

TEST_F(StatusTest, AnAnswerIsPrintedAsATable) {
  const auto server = Server();
  Start({"status", server->bound_address(), "--timeout-ms", "20000"}, false);
  Answer(server.get());
  const Ended ended = Wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("job mine"));
  EXPECT_THAT(ended.out, HasSubstr("round 42"));
}

TEST_F(StatusTest, AnAnswerIsPrintedAsJson) {
  const auto server = Server();
  Start({"status", server->bound_address(), "--json", "--timeout-ms", "20000"}, false);
  Answer(server.get());
  const Ended ended = Wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("\"job_name\":\"mine\""), HasSubstr("\"round\":42,")));
}

TEST_F(StatusTest, AJobIsFoundByItsOutputFolderAndByItsExperiment) {
  const std::string out = folder_ + "/out";
  for (const std::string& job : {out, experiment_}) {
    const Ended ended = Run({"status", job}, false);
    EXPECT_EQ(ended.code, job == out ? 64 : 75);
    EXPECT_THAT(ended.last_line,
                HasSubstr(job == out ? "existing folder or experiment" : "no job is running"));
  }
  std::filesystem::create_directory(out);
  const auto server = Server();
  {
    const auto lock = OutputLock::Take(out, {1, server->bound_address()});
    ASSERT_TRUE(lock.ok());
    for (const std::string& job : {out, experiment_}) {
      Start({"status", job, "--timeout-ms", "20000"}, false);
      Answer(server.get());
      const Ended ended = Wait();
      EXPECT_EQ(ended.code, 0) << ended.err;
      EXPECT_THAT(ended.out, HasSubstr("job mine"));
    }
  }
  // It has ended; what it wrote down stays.
  for (const std::string& job : {out, experiment_}) {
    const Ended ended = Run({"status", job}, false);
    EXPECT_EQ(ended.code, 75);
    EXPECT_THAT(ended.last_line, HasSubstr("no job is running with output.directory " + out));
  }
  const auto silent = OutputLock::Take(out, {1});
  const Ended ended = Run({"status", out}, false);
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.last_line, HasSubstr("has not written its address there"));
}

TEST_F(StatusTest, AnExperimentsAddressAndItsErrorsAreItsOwn) {
  const auto server = Server();
  std::ofstream(experiment_, std::ios::app)
      << "[cluster]\nservers = " << server->bound_address() << "\n";
  Start({"status", experiment_, "--timeout-ms", "20000"}, false);
  Answer(server.get());
  EXPECT_EQ(Wait().code, 0);
  std::ofstream(experiment_, std::ios::app) << "serwers = 1\n";
  const Ended ended = Run({"status", experiment_}, false);
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.last_line, HasSubstr("unknown key cluster.serwers"));
}

TEST_F(StatusTest, NobodyThereIsUnavailableAndNamesTheAddress) {
  const Ended ended = Run({"status", "tcp://127.0.0.1:1", "--timeout-ms", "200"}, false);
  EXPECT_EQ(ended.code, 75);
  EXPECT_THAT(ended.last_line, HasSubstr("no answer from tcp://127.0.0.1:1 within 200 ms"));
}

TEST_F(StatusTest, AServerThatIsSilentIsUnavailableToo) {
  const auto server = Server();
  const Ended ended = Run({"status", server->bound_address(), "--timeout-ms", "500"}, false);
  EXPECT_EQ(ended.code, 75);
  EXPECT_THAT(ended.last_line, HasSubstr(server->bound_address()));
}

TEST_F(StatusTest, AMalformedAddressIsUsage) {
  EXPECT_EQ(Run({"status", "localhost"}, false).code, 64);
  EXPECT_EQ(Run({"status"}, false).code, 64);
}

using TraceTest = StatusTest;

TEST_F(TraceTest, WithoutAServerThatIsSaid) {
  const Ended ended = Run({"trace", "tcp://127.0.0.1:1", "--seconds", "1"}, false);
  EXPECT_EQ(ended.code, 75);
  EXPECT_THAT(ended.last_line, HasSubstr("no answer from tcp://127.0.0.1:1"));
  EXPECT_EQ(ended.out, "");
  EXPECT_EQ(Run({"trace", "nowhere"}, false).code, 64);
  EXPECT_EQ(Run({"trace", "tcp://127.0.0.1:1", "--seconds", "0"}, false).code, 64);
}

TEST_F(TraceTest, ARefusalIsPassedOn) {
  const auto server = Server();
  Start({"trace", server->bound_address(), "--seconds", "60"}, false);
  // Its questions may come together.
  bool refused = false;
  Await("the wish", [&] {
    server->Poll(10 * kMillisecond, [&](const PeerName& from, const Message& message) {
      Message reply;
      if (message.header.type() == wire::TRACE) {
        reply.header.set_type(wire::REFUSED);
        reply.header.mutable_refusal()->set_reason("somebody else traces the job just now");
        refused = true;
      } else {
        reply.header.set_type(wire::STATUS_REPLY);
      }
      EXPECT_TRUE(server->Send(from, std::move(reply)).ok());
    });
    return refused;
  });
  const Ended ended = Wait();
  EXPECT_EQ(ended.code, 75);
  EXPECT_THAT(ended.last_line, HasSubstr("somebody else traces the job just now"));
}

}  // namespace
}  // namespace kumo
