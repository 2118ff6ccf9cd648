#include "common/transport/keys.h"

#include <algorithm>
#include <cstdint>
#include <set>

#include <gmock/gmock.h>
#include <zmq.h>

#include "common/base/rng.h"

namespace kumo {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Bytes(const std::string& key) {
  std::string bytes(kKeyBytes, '\0');
  CHECK(zmq_z85_decode(reinterpret_cast<uint8_t*>(bytes.data()), key.c_str()) != nullptr);
  return bytes;
}

std::string WhyNoList(const std::string& text) { return AllowList::Parse(text).status().message(); }

TEST(KeysTest, AHolderHasAFileAndMaySpeakUnderItsOwnNamesOnly) {
  EXPECT_EQ(ServerKey(1).FileName(), "server-1.key");
  EXPECT_EQ(WorkerKey(3).FileName(), "worker-3.key");
  EXPECT_EQ(kSharedWorkerKey.FileName(), "worker.key");
  EXPECT_EQ(kClientKey.FileName(), "client.key");
  const PeerName names[] = {ServerPeer(0),
                            ServerPeer(1),
                            ServerPeer(11),
                            WorkerPeer("worker-3", 5),
                            WorkerPeer("worker-30", 5),
                            WorkerPeer("gpu", 5),
                            "client/5",
                            "",
                            "server/",
                            "worker"};
  const auto allowed = [&](const KeyHolder& holder) {
    std::set<PeerName> these;
    for (const PeerName& name : names) {
      if (MayUse(holder.Names(), name)) these.insert(name);
    }
    return these;
  };
  EXPECT_EQ(allowed(ServerKey(1)), std::set<PeerName>{"server/1"});
  EXPECT_EQ(allowed(WorkerKey(3)), std::set<PeerName>{"worker/worker-3/5"});
  EXPECT_EQ(allowed(kSharedWorkerKey),
            (std::set<PeerName>{"worker/worker-3/5", "worker/worker-30/5", "worker/gpu/5"}));
  EXPECT_EQ(allowed(kClientKey), std::set<PeerName>{"client/5"});
  for (const PeerName& name : names) EXPECT_FALSE(MayUse("", name)) << name;
}

TEST(KeysTest, AWorkersNameSaysWhichKeyIsItsOwn) {
  EXPECT_EQ(WorkerIndexIn("worker-3"), 3);
  EXPECT_EQ(WorkerIndexIn("worker-0"), 0);
  EXPECT_EQ(WorkerIndexIn("worker-4095"), 4095);
  for (const char* name : {"worker-4096", "worker-03", "worker--1", "worker-", "worker", "gpu-3",
                           "", "worker-3x", "worker-99999999999999999999"}) {
    EXPECT_EQ(WorkerIndexIn(name), std::nullopt) << name;
  }
}

TEST(KeysTest, ASecretKeyIsReadBackWithItsPublicKey) {
  const KeyPair keys = MakeKeyPair().value();
  EXPECT_EQ(keys.public_key.size(), kKeyCharacters);
  EXPECT_NE(keys.secret_key, MakeKeyPair().value().secret_key);
  const std::string text = SecretKeyText(ServerKey(0), keys);
  const Result<KeyPair> read = ParseSecretKey(text, ServerKey(0));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->public_key, keys.public_key);
  EXPECT_EQ(read->secret_key, keys.secret_key);
  EXPECT_THAT(text, Not(HasSubstr(keys.public_key)));
}

TEST(KeysTest, AWrongSecretKeyIsRefusedWithItsLineAndWithoutWhatItSays) {
  const std::string secret = MakeKeyPair().value().secret_key;
  const struct {
    std::string text, why;
  } cases[] = {
      {"", "the file has no key"},
      {"# nothing\n\n", "the file has no key"},
      {"server 1 " + secret, "line 1: the file has the key of server 1, not of server 0"},
      {"\nserver 0 " + secret + "\nserver 0 " + secret, "line 3: the file has a second key"},
      {secret, "line 1 must have three words"},
      {"server 0 " + secret + " " + secret, "line 1 must have three words"},
      {secret + " 0 " + secret, "line 1: the role must be"},
      {"server " + secret + " " + secret, "line 1: the index must be a number"},
      {"server 0 " + secret.substr(1), "line 1: the key must have 40 characters"},
      {"server 0 " + secret + "0", "line 1: the key must have 40 characters"},
      {"server 0 \"" + secret.substr(1), "line 1: the key must have 40 characters of Z85"},
      {std::string("server 0 \0", 10) + secret, "line 1 contains a zero byte"},
      {"\xff\xfe", "line 1 must have three words"},
  };
  for (const auto& [text, why] : cases) {
    const Result<KeyPair> keys = ParseSecretKey(text, ServerKey(0));
    ASSERT_FALSE(keys.ok()) << why;
    EXPECT_THAT(keys.status().message(), HasSubstr(why));
    EXPECT_THAT(keys.status().message(), Not(HasSubstr(secret.substr(1, 20))));
  }
}

TEST(KeysTest, AnAllowListIsWhatWasWrittenAndKnowsWhoseAKeyIs) {
  AllowList list;
  std::string worker_key;
  for (const KeyHolder& holder :
       {WorkerKey(10), ServerKey(0), kClientKey, WorkerKey(2), kSharedWorkerKey, ServerKey(1)}) {
    worker_key = MakeKeyPair().value().public_key;
    ASSERT_TRUE(list.Add(holder, worker_key).ok());
  }
  const Result<AllowList> read = AllowList::Parse(list.ToString());
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->entries(), list.entries());
  EXPECT_EQ(read->ToString(), list.ToString());
  for (const auto& [holder, key] : list.entries()) {
    ASSERT_NE(read->HolderOf(Bytes(key)), nullptr);
    EXPECT_EQ(*read->HolderOf(Bytes(key)), holder);
  }
  EXPECT_EQ(read->HolderOf(Bytes(MakeKeyPair().value().public_key)), nullptr);
  EXPECT_EQ(read->HolderOf(""), nullptr);
  EXPECT_EQ(read->Find(WorkerKey(3)), nullptr);
}

TEST(KeysTest, AWrongAllowListIsRefusedWithItsLine) {
  const std::string one = MakeKeyPair().value().public_key;
  const std::string two = MakeKeyPair().value().public_key;
  EXPECT_THAT(WhyNoList("server 0 " + one + "\nserver 0 " + two),
              HasSubstr("line 2: server 0 has a key already"));
  EXPECT_THAT(WhyNoList("server 0 " + one + "\n# \nworker 1 " + one),
              HasSubstr("line 3: the key of worker 1 is also the key of server 0"));
  EXPECT_THAT(WhyNoList("server any " + one), HasSubstr("line 1: a server's index"));
  EXPECT_THAT(WhyNoList("client 1 " + one), HasSubstr("line 1: a client's index must be any"));
  for (const char* index : {"-1", "4096", "1e3", "01", "+1", "99999999999999999999"}) {
    EXPECT_THAT(WhyNoList(std::string("worker ") + index + " " + one),
                HasSubstr("line 1: the index must be a number from 0 to 4095, or any"))
        << index;
  }
  EXPECT_THAT(WhyNoList("Server 0 " + one), HasSubstr("line 1: the role"));
  // Nobody is let in by a list of nobody.
  EXPECT_TRUE(AllowList::Parse("").ok());
  EXPECT_TRUE(AllowList::Parse("\r\n\tserver  0\t" + one + "\r\n").ok());
}

// Whatever stands in a file: it is read or refused, and what was read is written as it was.
TEST(KeysTest, DamagedTextsAreReadOrRefused) {
  AllowList list;
  for (const KeyHolder& holder : {ServerKey(0), WorkerKey(2), kSharedWorkerKey, kClientKey}) {
    ASSERT_TRUE(list.Add(holder, MakeKeyPair().value().public_key).ok());
  }
  const std::string whole = list.ToString();
  int read = 0, refused = 0;
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    Rng rng(seed, RngPurpose::kTest, 13);
    std::string text = whole;
    for (uint64_t change = rng.NextBelow(4); change > 0; --change) {
      const size_t at = rng.NextBelow(text.size());
      const size_t length = std::min<size_t>(rng.NextBelow(60), text.size() - at);
      const uint64_t kind = rng.NextBelow(3);
      if (kind == 0) text[at] = static_cast<char>(rng.NextUint32());
      if (kind == 1) text.erase(at, length);
      if (kind == 2) text.insert(rng.NextBelow(text.size() + 1), text.substr(at, length));
      if (text.empty()) break;
    }
    const Result<AllowList> parsed = AllowList::Parse(text);
    (void)ParseSecretKey(text, ServerKey(0));
    ++(parsed.ok() ? read : refused);
    if (!parsed.ok()) continue;
    const Result<AllowList> again = AllowList::Parse(parsed->ToString());
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(again->entries(), parsed->entries());
  }
  EXPECT_GT(read, 500);
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace kumo
