#include "server/disks/private_disks.h"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "common/base/crc32c.h"
#include "common/checkpoint/checkpoint.h"
#include "tests/common/base/memory_file_system.h"

namespace kumo {
namespace {

using testing::ElementsAre;

// Remembers what it is told.
class SomeRole : public Role {
 public:
  const Generation& generation() const override { return generation_; }
  const SaveOrder& save_order() const override { return order_; }
  const LeaseTable& leases() const override { return leases_; }
  void OnSpec(const JobPlan&, const ShardMap&, const JobSpec&) override {}
  Result<bool> OnHello(const PeerName&, const wire::Hello&, StepContext*) override { return true; }
  Status OnMessage(const PeerName&, const wire::Header&, StepContext*) override {
    return OkStatus();
  }
  Directive OnVersion(int64_t, const MetricSums&, StepContext*) override { return {}; }
  void TakeOver(int64_t, const Directive&, StepContext*) override {}
  void OnDiskAnswer(const DiskAnswer& answer, StepContext*) override {
    if (const auto* one = std::get_if<CheckpointCommitted>(&answer)) committed = *one;
    collected += std::holds_alternative<FilesCollected>(answer);
  }
  void RequestStop(const ShardStatus&, StepContext*) override {}
  TimeUs Tick(const ShardStatus&, StepContext* context) override { return context->now; }
  void OnHeard(const PeerName&, const wire::Header&, TimeUs) override {}
  void OnPeerConnection(const PeerName&, bool, TimeUs) override {}
  bool Knows(const PeerName&, TimeUs, TimeUs) const override { return true; }
  std::string WaitsForProcesses(TimeUs) const override { return ""; }
  wire::JobStatus Describe(TimeUs) const override { return {}; }

  std::optional<CheckpointCommitted> committed;
  int collected = 0;

 private:
  Generation generation_;
  SaveOrder order_;
  LeaseTable leases_{0};
};

Experiment SomeExperiment(int replicas = 1) {
  Experiment e;
  e.cluster.servers.assign(3, "ipc://somewhere");
  e.cluster.replicas = replicas;
  e.cluster.chunk_kib = 1;
  e.checkpoint.disks = CheckpointDisks::kPrivate;
  return e;
}

checkpoint::Manifest SomeManifest() {
  checkpoint::Manifest manifest;
  manifest.set_version(12);
  manifest.set_generation(1);
  for (int s = 0; s < 3; ++s) {
    checkpoint::File* file = manifest.add_files();
    file->set_name(ShardFileName(s, 3, 1));
    file->set_bytes(100);
    file->set_begin(10 * s);
    file->set_end(10 * s + 10);
  }
  return manifest;
}

std::string TextOf(const checkpoint::Manifest& manifest) {
  MemoryFileSystem files;
  EXPECT_TRUE(files.CreateDirectories("/c/" + CheckpointName(manifest.version())).ok());
  EXPECT_TRUE(WriteManifest(files, "/c", manifest).ok());
  return *files.Contents("/c/" + CheckpointName(manifest.version()) + "/MANIFEST");
}

template <typename Action>
std::vector<Action> All(const StepContext& context) {
  std::vector<Action> all;
  for (const ServerAction& action : context.actions) {
    if (const auto* one = std::get_if<Action>(&action)) all.push_back(*one);
  }
  return all;
}

Message FileMessage(const wire::FilePiece& asked, const std::string& bytes, uint64_t file_bytes) {
  Message message;
  message.header.set_type(wire::FILE);
  *message.header.mutable_file_piece() = asked;
  message.header.mutable_file_piece()->set_file_bytes(file_bytes);
  const auto owner = std::make_shared<std::string>(bytes);
  message.payload = {owner, AsBytes(*owner)};
  return message;
}

Message Orders(int64_t complete) {
  Message message;
  message.header.set_type(wire::HEARTBEAT_REPLY);
  message.header.mutable_orders()->set_complete(complete);
  return message;
}

// Server 0 answers what a server asks for of the manifest. Returns what is checked then.
std::optional<CheckFilesAction> BringManifest(
    PrivateDisks* disks, StepContext* context,
    const checkpoint::Manifest& manifest = SomeManifest()) {
  const std::string text = TextOf(manifest);
  for (int i = 0; i < 100; ++i) {
    const auto sends = All<SendAction>(*context);
    context->actions.clear();
    for (const SendAction& send : sends) {
      const wire::FilePiece& piece = send.message.header.file_piece();
      EXPECT_EQ(send.to, ServerPeer(0));
      const std::string bytes = text.substr(piece.offset(), piece.bytes());
      disks->OnFromServer0(FileMessage(piece, bytes, text.size()), true, context);
    }
    const auto checks = All<CheckFilesAction>(*context);
    if (!checks.empty()) return checks[0];
  }
  return std::nullopt;
}

TEST(PrivateDisks, ServerZeroFetchesTheOthersFilesBeforeItCommits) {
  SomeRole role;
  PrivateDisks disks(0, 3, SomeExperiment(), &role);
  StepContext context{0, {}};
  context.Do(CommitAction{SomeManifest()});
  disks.HoldBack(&context);
  EXPECT_TRUE(All<CommitAction>(context).empty());
  const auto checks = All<CheckFilesAction>(context);
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_THAT(checks[0].wanted, ElementsAre(0, 1, 2));

  context.actions.clear();
  disks.OnAnswer(FilesChecked{checks[0].fetch, std::vector<int>{2}}, &context);
  const auto sends = All<SendAction>(context);
  ASSERT_EQ(sends.size(), 1u);
  EXPECT_EQ(sends[0].to, ServerPeer(2));
  const wire::FilePiece& piece = sends[0].message.header.file_piece();
  context.actions.clear();
  disks.OnMessage(ServerPeer(2), FileMessage(piece, std::string(100, 'x'), 100), &context);
  ASSERT_EQ(All<WritePieceAction>(context).size(), 1u);
  context.actions.clear();
  disks.OnAnswer(PieceWritten{checks[0].fetch, 0, OkStatus()}, &context);
  disks.HoldBack(&context);
  EXPECT_EQ(All<CommitAction>(context).size(), 1u);
  EXPECT_FALSE(role.committed);
  EXPECT_EQ(role.collected, 1);
}

TEST(PrivateDisks, ACheckpointOfWhichAFileIsDamagedIsNotCommitted) {
  SomeRole role;
  PrivateDisks disks(0, 3, SomeExperiment(), &role);
  StepContext context{0, {}};
  context.Do(CommitAction{SomeManifest()});
  disks.HoldBack(&context);
  const auto check = All<CheckFilesAction>(context).at(0);
  disks.OnAnswer(FilesChecked{check.fetch, std::vector<int>{1}}, &context);
  const wire::FilePiece piece = All<SendAction>(context).at(0).message.header.file_piece();
  disks.OnMessage(ServerPeer(1), FileMessage(piece, std::string(100, 'x'), 100), &context);
  context.actions.clear();
  disks.OnAnswer(PieceWritten{check.fetch, 0, DataLoss("another checksum")}, &context);
  disks.HoldBack(&context);
  EXPECT_TRUE(All<CommitAction>(context).empty());
  ASSERT_TRUE(role.committed);
  EXPECT_EQ(role.committed->version, 12);
  EXPECT_EQ(role.committed->status.code(), StatusCode::kDataLoss);
  // Its own file is missing: nobody has it.
  role.committed.reset();
  context = {0, {}};
  context.Do(CommitAction{SomeManifest()});
  disks.HoldBack(&context);
  disks.OnAnswer(FilesChecked{All<CheckFilesAction>(context).at(0).fetch, std::vector<int>{0}},
                 &context);
  ASSERT_TRUE(role.committed);
  EXPECT_FALSE(role.committed->status.ok());
}

// It is of the manifest that is still to be written.
TEST(PrivateDisks, AnEvaluationWaitsForTheManifestAndIsKeptInAnyCase) {
  SomeRole role;
  PrivateDisks disks(0, 3, SomeExperiment(), &role);
  StepContext context{0, {}};
  context.Do(CommitAction{SomeManifest()});
  context.Do(KeepEvaluationAction{12, 0, {}});
  disks.HoldBack(&context);
  EXPECT_TRUE(All<KeepEvaluationAction>(context).empty());
  const uint64_t fetch = All<CheckFilesAction>(context).at(0).fetch;
  context.actions.clear();
  disks.OnAnswer(FilesChecked{fetch, std::vector<int>{}}, &context);
  disks.HoldBack(&context);
  ASSERT_EQ(context.actions.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<CommitAction>(context.actions[0]));
  EXPECT_TRUE(std::holds_alternative<KeepEvaluationAction>(context.actions[1]));

  context = {0, {}};
  context.Do(CommitAction{SomeManifest()});
  context.Do(KeepEvaluationAction{12, 0, {}});
  disks.HoldBack(&context);
  context.actions.clear();
  disks.Clear(&context);
  EXPECT_TRUE(All<CommitAction>(context).empty());  // of a generation that is over
  EXPECT_EQ(All<KeepEvaluationAction>(context).size(), 1u);
}

TEST(PrivateDisks, AnotherServerRestoresByServerZerosManifestWhatItsRangeNeeds) {
  SomeRole role;
  PrivateDisks disks(1, 3, SomeExperiment(), &role);
  StepContext context{0, {}};
  context.Do(RestoreAction{4, CheckpointName(12), {15, 25}, 12});
  disks.HoldBack(&context);
  EXPECT_TRUE(All<RestoreAction>(context).empty());
  const auto check = BringManifest(&disks, &context);
  ASSERT_TRUE(check);
  EXPECT_THAT(check->wanted, ElementsAre(1, 2));
  context.actions.clear();
  disks.OnAnswer(FilesChecked{check->fetch, std::vector<int>{}}, &context);
  disks.HoldBack(&context);
  ASSERT_EQ(context.actions.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<KeepManifestAction>(context.actions[0]));
  const auto& restore = std::get<RestoreAction>(context.actions[1]);
  EXPECT_TRUE(restore.fetched.ok());
  // It is kept already.
  context.actions.clear();
  disks.OnFromServer0(Orders(12), true, &context);
  EXPECT_TRUE(context.actions.empty());
}

// Frozen tensors come last.
TEST(PrivateDisks, WithOtherFactorsTheFilesAreThoseOfTheTensorsPlacesThen) {
  std::vector<TensorSpec> tensors = {{"a", {10}}, {"b", {10}}, {"c", {10}}};
  checkpoint::Manifest manifest = SomeManifest();
  const ParameterLayout then = ParameterLayout::Make(tensors).value();
  SetTensors(then, &manifest);
  manifest.set_fingerprint(then.fingerprint());
  tensors[0].factors.rate = 0;
  const ParameterLayout now = ParameterLayout::Make(tensors).value();
  SomeRole role;
  PrivateDisks disks(2, 3, SomeExperiment(), &role);
  StepContext context{0, {}};
  context.Do(RestoreAction{4, CheckpointName(12), now.tensor(0), 12, OkStatus(), now});
  disks.HoldBack(&context);
  const auto check = BringManifest(&disks, &context, manifest);
  ASSERT_TRUE(check);
  EXPECT_THAT(check->wanted, ElementsAre(0));
}

TEST(PrivateDisks, WhatCannotBeHadFailsTheRestoreByName) {
  SomeRole role;
  PrivateDisks disks(1, 3, SomeExperiment(), &role);
  StepContext context{0, {}};
  context.Do(RestoreAction{4, CheckpointName(12), {15, 25}, 12});
  disks.HoldBack(&context);
  wire::FilePiece piece = All<SendAction>(context).at(0).message.header.file_piece();
  piece.set_failure("no such file");
  context.actions.clear();
  disks.OnFromServer0(FileMessage(piece, "", 0), true, &context);
  disks.HoldBack(&context);
  ASSERT_EQ(All<RestoreAction>(context).size(), 1u);
  EXPECT_FALSE(All<RestoreAction>(context)[0].fetched.ok());
}

TEST(PrivateDisks, EachKeepsItsOwnFileAndServerOneThatOfServerZeroToo) {
  struct Case {
    int index, replicas;
    std::vector<int> wanted;
  };
  for (const Case& one : {Case{1, 1, {1}}, {2, 1, {2}}, {1, 2, {0, 1}}, {2, 2, {2}}}) {
    SomeRole role;
    PrivateDisks disks(one.index, 3, SomeExperiment(one.replicas), &role);
    StepContext context{0, {}};
    disks.OnFromServer0(Orders(12), true, &context);
    const auto check = BringManifest(&disks, &context);
    ASSERT_TRUE(check);
    EXPECT_EQ(check->wanted, one.wanted) << one.index << " " << one.replicas;
  }
}

TEST(PrivateDisks, WhoIsToLeaveKeepsTheLastCheckpointFirst) {
  SomeRole role;
  PrivateDisks disks(1, 3, SomeExperiment(), &role);
  const auto leave = [](StepContext* context) {
    SendAction bye{ServerPeer(0), {}};
    bye.message.header.set_type(wire::BYE);
    context->Do(bye);
    context->Do(ExitAction{OkStatus()});
  };
  StepContext context{0, {}};
  disks.OnFromServer0(Orders(12), true, &context);
  leave(&context);
  disks.HoldBack(&context);
  EXPECT_TRUE(All<ExitAction>(context).empty());
  // Not for ever.
  context = {13 * kSecond, {}};
  leave(&context);
  disks.HoldBack(&context);
  EXPECT_EQ(All<ExitAction>(context).size(), 1u);
  // Whom server 0 does not answer any more leaves at once.
  context = {0, {}};
  context.Do(ExitAction{Unavailable("server 0 does not answer")});
  disks.HoldBack(&context);
  EXPECT_EQ(All<ExitAction>(context).size(), 1u);
}

TEST(PrivateDisks, OnlyServersGetFilesAndNoMoreThanAPieceAtATime) {
  SomeRole role;
  PrivateDisks disks(0, 3, SomeExperiment(), &role);
  Message ask;
  ask.header.set_type(wire::FETCH_FILE);
  ask.header.mutable_file_piece()->set_bytes(0xffffffff);
  for (const PeerName& stranger : {WorkerPeer("worker-0", 1), PeerName("client/1"), ServerPeer(3),
                                   ServerPeer(0), PeerName("server/"), PeerName("server/-1")}) {
    StepContext context{0, {}};
    disks.OnMessage(stranger, ask, &context);
    EXPECT_TRUE(context.actions.empty()) << stranger;
  }
  StepContext context{0, {}};
  disks.OnMessage(ServerPeer(1), ask, &context);
  const auto answers = All<AnswerFromDiskAction>(context);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].reply.to, ServerPeer(1));
  EXPECT_EQ(answers[0].reply.message.header.file_piece().bytes(), 1024u);
}

}  // namespace
}  // namespace kumo
