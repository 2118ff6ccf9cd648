// kumo keys as a person runs it, and the commands that use what it made.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "common/transport/key_files.h"
#include "common/transport/zmq_transport.h"
#include "tests/cli/kumo_runner.h"

namespace kumo {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class KeysTest : public KumoTest {
 protected:
  std::string Keys() const { return folder_ + "/keys"; }
  std::vector<std::string> With(const std::string& command, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {command, experiment_, "--set", "cluster.keys=" + Keys()});
    return more;
  }
  // None of the secrets in `folder` is in the text.
  void ExpectNoSecretIn(const std::string& text) {
    for (const auto& file : std::filesystem::directory_iterator(Keys())) {
      if (file.path().extension() != ".key") continue;
      const std::string content = Read("keys/" + file.path().filename().string());
      const std::string key = content.substr(content.size() - kKeyCharacters - 1, kKeyCharacters);
      EXPECT_THAT(text, Not(HasSubstr(key))) << file.path();
    }
  }
};

TEST_F(KeysTest, KeysAreMadeOnceAndAddedTo) {
  const Ended first = Run({"keys", Keys(), "--servers", "2", "--workers", "2"}, false);
  EXPECT_EQ(first.code, 0) << first.err;
  for (const char* file : {"server-0", "server-1", "worker-0", "worker-1", "client"}) {
    EXPECT_THAT(first.out, HasSubstr(Keys() + "/" + file + ".key")) << file;
  }
  EXPECT_THAT(first.out, HasSubstr("--set cluster.keys=" + Keys()));
  const std::string before = Read("keys/worker-1.key");
  const Ended more = Run({"keys", Keys(), "--workers", "3"}, false);
  EXPECT_EQ(more.code, 0) << more.err;
  EXPECT_THAT(more.out, AllOf(HasSubstr("worker-2.key"), Not(HasSubstr("worker-1.key")),
                              Not(HasSubstr("server"))));
  EXPECT_EQ(Read("keys/worker-1.key"), before);
  const Ended same = Run({"keys", Keys()}, false);
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("nothing was made"));
  for (const Ended* ended : {&first, &more, &same}) ExpectNoSecretIn(ended->out + ended->err);
}

TEST_F(KeysTest, TheCommandsThatItPrintsCanBeCopied) {
  EXPECT_THAT(Run({"keys", Keys() + " of us", "--shared-worker-key"}, false).out,
              AllOf(HasSubstr("--set 'cluster.keys=" + Keys() + " of us'\n"),
                    HasSubstr("--keys '" + Keys() + " of us'\n")));
}

TEST_F(KeysTest, WhatIsWrongIsUsageOrNamed) {
  EXPECT_EQ(Run({"keys"}, false).code, 64);
  EXPECT_THAT(Run({"keys", Keys()}, false).last_line, HasSubstr("--shared-worker-key"));
  EXPECT_EQ(Run({"keys", Keys(), "--servers", "65", "--shared-worker-key"}, false).code, 64);
  EXPECT_FALSE(std::filesystem::exists(Keys()));
  ASSERT_EQ(Run({"keys", Keys(), "--shared-worker-key"}, false).code, 0);
  std::ofstream(Keys() + "/allow-list", std::ios::app) << "server x y\n";
  const Ended ended = Run({"keys", Keys(), "--workers", "1"}, false);
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.last_line, HasSubstr(Keys() + "/allow-list: line 5: the index"));
}

TEST_F(KeysTest, CheckAndLaunchLookAtTheKeys) {
  EXPECT_THAT(Run(With("check")).last_line, HasSubstr("there is no allow-list"));
  ASSERT_EQ(Run({"keys", Keys(), "--workers", "2"}, false).code, 0);
  const Ended well = Run(With("check", {"--workers", "2"}));
  EXPECT_EQ(well.code, 0) << well.err;
  EXPECT_THAT(well.out, HasSubstr("keys in " + Keys()));
  for (const char* command : {"check", "launch"}) {
    const Ended worker = Run(With(command, {"--workers", "3"}));
    EXPECT_EQ(worker.code, 78);
    EXPECT_THAT(worker.last_line, AllOf(HasSubstr("worker-2.key"), HasSubstr("worker.key")));
    const Ended server = Run(With(command, {"--workers", "2", "--servers", "2"}));
    EXPECT_EQ(server.code, 78);
    EXPECT_THAT(server.last_line, HasSubstr("no key of server 1"));
  }
  ASSERT_EQ(chmod((Keys() + "/server-0.key").c_str(), 0644), 0);
  const Ended open = Run(With("check", {"--workers", "2"}));
  EXPECT_EQ(open.code, 78);
  EXPECT_THAT(open.last_line, AllOf(HasSubstr("server-0.key"), HasSubstr("mode 0644")));
  ExpectNoSecretIn(open.out + open.err + well.out + well.err);
}

TEST_F(KeysTest, AddressesThatOthersReachNeedKeysOrToBeAllowed) {
  ASSERT_EQ(Run({"keys", Keys(), "--workers", "2"}, false).code, 0);
  const std::vector<std::string> set = {"--set", "cluster.servers=tcp://192.0.2.1:5555"};
  const Ended neither = Run({"check", experiment_, set[0], set[1]});
  EXPECT_EQ(neither.code, 78);
  EXPECT_THAT(neither.last_line, AllOf(HasSubstr("cluster.keys"), HasSubstr("cluster.insecure")));
  const Ended keys = Run(With("check", set));
  EXPECT_EQ(keys.code, 0) << keys.err;
  EXPECT_THAT(keys.out, HasSubstr("the keys on each host are not checked"));
}

TEST_F(KeysTest, StatusAsksAServerThatHasKeys) {
  ASSERT_EQ(Run({"keys", Keys(), "--workers", "1"}, false).code, 0);
  ZmqTransportOptions options;
  options.name = ServerPeer(0);
  options.framing.job = 77;
  options.keys = ReadKeys(Keys(), ServerKey(0)).value();
  const auto server = ZmqTransport::Make(options).value();
  ASSERT_TRUE(server->Bind("tcp://127.0.0.1:*").ok());
  const std::string& address = server->bound_address();
  Start({"status", address, "--keys", Keys(), "--timeout-ms", "20000"}, false);
  bool answered = false;
  Await("a question", [&] {
    server->Poll(10 * kMillisecond, [&](const PeerName& from, Message) {
      Message reply;
      reply.header.set_type(wire::STATUS_REPLY);
      reply.header.mutable_job_status()->set_job_name("mine");
      answered = server->Send(from, std::move(reply)).ok();
    });
    return answered;
  });
  const Ended ended = Wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("job mine"));
  const Ended without = Run({"status", address, "--timeout-ms", "300"}, false);
  EXPECT_EQ(without.code, 75);
  EXPECT_THAT(without.last_line, HasSubstr("--keys DIR"));
  const Ended none = Run({"status", address, "--keys", folder_ + "/none"}, false);
  EXPECT_EQ(none.code, 78);
  EXPECT_THAT(none.last_line, HasSubstr("client.key"));
}

}  // namespace
}  // namespace kumo
