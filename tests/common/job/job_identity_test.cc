#include "common/job/job_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <cmath>

#include "common/job/protocol.h"
#include "common/settings/experiment_text.h"
#include "tests/common/job/loss_and_accuracy.h"

namespace kumo {
namespace {

using testing::HasSubstr;

Experiment SomeExperiment() {
  Experiment e;
  e.job.name = "digits";
  e.cluster.servers = {"tcp://127.0.0.1:7700", "tcp://127.0.0.1:7701"};
  return e;
}

JobSpec SomeSpec() {
  JobSpec spec;
  spec.layout = ParameterLayout::Make({{"fc.weight", {10, 20}, Segment::kDecayed},
                                       {"fc.bias", {10}, Segment::kUndecayed}})
                    .value();
  spec.metrics = test::LossAndAccuracy();
  spec.train_samples = 1000;
  spec.validation_samples = 100;
  return spec;
}

// What a process of that experiment says.
wire::Header HelloOf(const Experiment& experiment, const JobSpec& spec) {
  wire::Header header;
  header.set_protocol(kProtocolVersion);
  header.set_type(wire::HELLO);
  wire::Hello* hello = header.mutable_hello();
  *hello = kumo::HelloOf(IdentityOf(experiment), ProcessIdentity());
  hello->set_role(wire::Hello::WORKER);
  hello->set_name("worker-0");
  *hello->mutable_spec() = SpecToWire(spec);
  return header;
}

wire::Header GoodHello() { return HelloOf(SomeExperiment(), SomeSpec()); }

std::string Refusal(const wire::Header& header, const std::optional<JobSpec>& established,
                    StatusCode code = StatusCode::kFailedPrecondition) {
  const Status status = CheckHello(header, IdentityOf(SomeExperiment()), established);
  EXPECT_EQ(status.code(), code) << status.message();
  return status.message();
}

TEST(CheckHello, AnotherNetworkOfTheSameTensorsIsRefused) {
  JobSpec established = SomeSpec();
  JobSpec spec = SomeSpec();
  established.network = "layers { name: \"a\" relu {} }";
  EXPECT_TRUE(
      CheckHello(HelloOf(SomeExperiment(), spec), IdentityOf(SomeExperiment()), established).ok());
  spec.network = "layers { name: \"a\" tanh {} }";
  EXPECT_THAT(Refusal(HelloOf(SomeExperiment(), spec), established),
              AllOf(HasSubstr("another network"), HasSubstr("layer a relu { } -> tanh { }")));
}

TEST(JobSpec, WhatDescribesItTravelsWhereItFits) {
  JobSpec spec = SomeSpec();
  spec.Describe("name: \"n\"", {"cat", "dog"}, std::vector<float>{0.1F, 200});
  const Result<JobSpec> read = ParseSpec(SpecToWire(spec));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->network, "name: \"n\"");
  EXPECT_EQ(read->class_names, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(read->mean_image, (std::vector<float>{0.1F, 200}));
  // Names and means are not compared.
  JobSpec other = spec;
  other.Describe("name: \"n\"", {}, {});
  EXPECT_TRUE(
      CheckHello(HelloOf(SomeExperiment(), spec), IdentityOf(SomeExperiment()), other).ok());
  spec.Describe(std::string(1 << 20, 'x'), {"cat", std::string(256, 'x')},
                std::vector<float>((32 << 10) + 1));
  EXPECT_EQ(spec.network, "");
  EXPECT_TRUE(spec.mean_image.empty());
  EXPECT_TRUE(spec.class_names.empty());
  spec.Describe("", std::vector<std::string>(5000, "x"), {});
  EXPECT_TRUE(spec.class_names.empty());
}

TEST(CheckHello, AcceptsTheSameJob) {
  const JobIdentity identity = IdentityOf(SomeExperiment());
  EXPECT_TRUE(CheckHello(GoodHello(), identity, {}).ok());
  EXPECT_TRUE(CheckHello(GoodHello(), identity, SomeSpec()).ok());
}

TEST(CheckHello, SettingsThatTheResultDoesNotDependOnMayDiffer) {
  Experiment other = SomeExperiment();
  other.cluster.workers = 17;
  other.output.directory = "elsewhere";
  other.checkpoint.keep = 9;
  EXPECT_TRUE(CheckHello(HelloOf(other, SomeSpec()), IdentityOf(SomeExperiment()), {}).ok());
}

TEST(CheckHello, NamesTheReleaseFirst) {
  wire::Header header = GoodHello();
  header.set_protocol(kProtocolVersion + 1);
  header.mutable_hello()->set_job_name("other");
  EXPECT_THAT(Refusal(header, {}), HasSubstr("protocol version"));
}

TEST(CheckHello, NamesBothJobs) {
  Experiment other = SomeExperiment();
  other.job.name = "letters";
  const std::string refusal = Refusal(HelloOf(other, SomeSpec()), {});
  EXPECT_THAT(refusal, HasSubstr("digits"));
  EXPECT_THAT(refusal, HasSubstr("letters"));
}

TEST(CheckHello, NamesTheSettingAndBothValues) {
  Experiment other = SomeExperiment();
  other.sync.minibatch = 77;
  const std::string refusal = Refusal(HelloOf(other, SomeSpec()), {});
  EXPECT_THAT(refusal, HasSubstr("sync.minibatch"));
  EXPECT_THAT(refusal, HasSubstr("77"));
  EXPECT_THAT(refusal, HasSubstr("64"));
}

TEST(CheckHello, NamesTheNumberOfServersAndTheLengthOfChunks) {
  Experiment other = SomeExperiment();
  other.cluster.servers.pop_back();
  EXPECT_THAT(Refusal(HelloOf(other, SomeSpec()), {}), HasSubstr("servers"));
  other = SomeExperiment();
  other.cluster.chunk_kib = 5;
  EXPECT_THAT(Refusal(HelloOf(other, SomeSpec()), {}), HasSubstr("chunk_kib"));
}

TEST(CheckHello, NamesTheTensor) {
  JobSpec other = SomeSpec();
  other.layout = ParameterLayout::Make({{"fc.weight", {10, 21}, Segment::kDecayed},
                                        {"fc.bias", {10}, Segment::kUndecayed}})
                     .value();
  const std::string refusal = Refusal(HelloOf(SomeExperiment(), other), SomeSpec());
  EXPECT_THAT(refusal, HasSubstr("fc.weight [10, 20]"));
  EXPECT_THAT(refusal, HasSubstr("fc.weight [10, 21]"));
}

TEST(CheckHello, NamesTheMetrics) {
  JobSpec network = SomeSpec();
  network.network = "layers { name: \"a\" relu {} }";
  JobSpec other = network;
  other.metrics =
      MetricList::Make({{"loss", 0}, {"top5_accuracy", 1, MetricFormula::kShare}}).value();
  EXPECT_THAT(Refusal(HelloOf(SomeExperiment(), other), network),
              HasSubstr("another network: its loss declares the metrics loss, top5_accuracy, in "
                        "the job they are loss, accuracy; copy the same network file to every"));
  other.metrics = MetricList::Make({{"loss", 1}, {"accuracy", 0}}).value();
  EXPECT_THAT(
      Refusal(HelloOf(SomeExperiment(), other), network),
      HasSubstr("loss, accuracy, but with other definitions than in the job; copy the same"));
}

TEST(CheckHello, NamesTheMetricsOfAProgram) {
  JobSpec other = SomeSpec();
  other.metrics = MetricList::Make({{"loss", 0}}).value();
  EXPECT_THAT(Refusal(HelloOf(SomeExperiment(), other), SomeSpec()),
              HasSubstr("another model: the program declares the metrics loss, in the job they are "
                        "loss, accuracy; run the same program in every worker"));
  JobSpec network = SomeSpec();
  network.network = "layers { name: \"a\" relu {} }";
  EXPECT_THAT(Refusal(HelloOf(SomeExperiment(), other), network),
              HasSubstr("loss, accuracy; make the program and the network file declare the same "
                        "metrics"));
  network.metrics = other.metrics;
  EXPECT_THAT(Refusal(HelloOf(SomeExperiment(), network), SomeSpec()),
              HasSubstr("another network: its loss declares the metrics loss, in the job they are "
                        "loss, accuracy; make the program"));
}

TEST(CheckHello, NamesTheDataAndTheLocalState) {
  JobSpec other = SomeSpec();
  other.train_samples = 999;
  EXPECT_THAT(Refusal(HelloOf(SomeExperiment(), other), SomeSpec()),
              testing::AllOf(HasSubstr("training samples"), HasSubstr("1000"), HasSubstr("999")));
  other = SomeSpec();
  other.validation_samples = 99;
  EXPECT_THAT(Refusal(HelloOf(SomeExperiment(), other), SomeSpec()),
              HasSubstr("validation samples"));
  other = SomeSpec();
  other.optimiser_slots = 2;
  EXPECT_THAT(Refusal(HelloOf(SomeExperiment(), other), SomeSpec()), HasSubstr("slots"));
}

TEST(CheckHello, NamesDataOfOtherContents) {
  JobSpec ours = SomeSpec();
  ours.train = {0xabc, "/there/images"};
  ours.validation = {5, "/there/others"};
  EXPECT_TRUE(CheckHello(HelloOf(SomeExperiment(), ours), IdentityOf(SomeExperiment()), ours).ok());
  JobSpec other = ours;
  other.train = {0xdef, "/here/images"};
  EXPECT_THAT(Refusal(HelloOf(SomeExperiment(), other), ours),
              testing::AllOf(HasSubstr("training samples"), HasSubstr("hash 0000000000000abc"),
                             HasSubstr("hash 0000000000000def"), HasSubstr("/there/images"),
                             HasSubstr("/here/images"), HasSubstr("copy the same files")));
  other = ours;
  other.validation.hash = 6;
  EXPECT_THAT(Refusal(HelloOf(SomeExperiment(), other), ours), HasSubstr("validation samples"));
  // Elsewhere, but the same.
  other = ours;
  other.train.name = other.validation.name = "/here";
  EXPECT_TRUE(
      CheckHello(HelloOf(SomeExperiment(), other), IdentityOf(SomeExperiment()), ours).ok());
  // Of a program, which knows no hash.
  other.train = other.validation = {0, "samples of a program"};
  EXPECT_TRUE(
      CheckHello(HelloOf(SomeExperiment(), other), IdentityOf(SomeExperiment()), ours).ok());
}

TEST(CheckHello, AServerHasToBeOneOfTheList) {
  wire::Header header = GoodHello();
  header.mutable_hello()->set_role(wire::Hello::SERVER);
  header.mutable_hello()->set_server_index(1);
  EXPECT_TRUE(CheckHello(header, IdentityOf(SomeExperiment()), {}).ok());
  for (const int index : {0, 2, -1, INT32_MIN, INT32_MAX}) {
    header.mutable_hello()->set_server_index(index);
    EXPECT_THAT(Refusal(header, {}), HasSubstr("no server"));
  }
}

TEST(CheckHello, AHelloOfNoRoleIsRefused) {
  wire::Header header = GoodHello();
  header.mutable_hello()->clear_role();
  EXPECT_THAT(Refusal(header, {}, StatusCode::kInvalidArgument), HasSubstr("role"));
  header.mutable_hello()->set_role(static_cast<wire::Hello::Role>(77));
  EXPECT_THAT(Refusal(header, {}, StatusCode::kInvalidArgument), HasSubstr("role"));
}

TEST(CheckHello, NothingThatAHelloHoldsIsMoreThanAnError) {
  EXPECT_FALSE(CheckHello(wire::Header(), IdentityOf(SomeExperiment()), SomeSpec()).ok());
  wire::Header header = GoodHello();
  header.mutable_hello()->set_experiment_hash(1);
  header.mutable_hello()->set_experiment_text(std::string(100'000, '\n') + "= = \x01\x02");
  EXPECT_LT(Refusal(header, {}).size(), 1000u);
  // The text of another job with our hash, and the reverse: the hash decides.
  header = GoodHello();
  header.mutable_hello()->clear_experiment_text();
  EXPECT_TRUE(CheckHello(header, IdentityOf(SomeExperiment()), {}).ok());
}

// Names go to logs, tables and statuses, and claims into memory, for as long as the member is
// there.
TEST(CheckHello, NamesAreShortAndOfOneLineAndClaimsNoMoreThanPartitions) {
  const std::string wrong[] = {"a\nE20261122 forged", "\x1b[31mred", std::string(256, 'x'),
                               std::string(900'000, 'x')};
  for (const std::string& text : wrong) {
    for (const auto set :
         {&wire::Hello::set_name<const std::string&>, &wire::Hello::set_host<const std::string&>,
          &wire::Hello::set_device<const std::string&>,
          &wire::Hello::set_boot<const std::string&>}) {
      wire::Header header = GoodHello();
      (header.mutable_hello()->*set)(text);
      const std::string refusal = Refusal(header, {}, StatusCode::kInvalidArgument);
      EXPECT_THAT(refusal, HasSubstr("not a name"));
      EXPECT_LT(refusal.size(), 300u);
      EXPECT_EQ(refusal.find_first_of("\n\x1b"), std::string::npos);
    }
  }
  wire::Header header = GoodHello();
  for (int i = 0; i < 4096; ++i) header.mutable_hello()->add_claims();
  EXPECT_TRUE(CheckHello(header, IdentityOf(SomeExperiment()), {}).ok());
  header.mutable_hello()->add_claims();
  EXPECT_THAT(Refusal(header, {}, StatusCode::kInvalidArgument), HasSubstr("claims"));
  header = GoodHello();
  for (int i = 0; i < 4097; ++i) header.mutable_hello()->add_hands_over();
  EXPECT_THAT(Refusal(header, {}, StatusCode::kInvalidArgument), HasSubstr("claims"));
}

TEST(ParseSpec, IsTheInverseOfSpecToWire) {
  JobSpec spec = SomeSpec();
  spec.optimiser_slots = 2;
  const Result<JobSpec> parsed = ParseSpec(SpecToWire(spec));
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed->layout.FirstDifference(spec.layout), "");
  EXPECT_EQ(parsed->metrics, spec.metrics);
  EXPECT_EQ(parsed->train_samples, 1000);
  EXPECT_EQ(parsed->validation_samples, 100);
  EXPECT_EQ(parsed->optimiser_slots, 2);
}

TEST(ParseSpec, FactorsOfTensorsComeBackAndThoseOf1AreNotSent) {
  JobSpec spec = SomeSpec();
  const wire::JobSpec without = SpecToWire(spec);
  for (const wire::Tensor& tensor : without.tensors()) {
    EXPECT_FALSE(tensor.has_rate_factor() || tensor.has_decay_factor()) << tensor.name();
  }
  spec.layout = ParameterLayout::Make({{"fc.weight", {10, 20}, Segment::kDecayed, {0.5f, 3}},
                                       {"fc.bias", {10}, Segment::kUndecayed, {0, 1}}})
                    .value();
  const Result<JobSpec> parsed = ParseSpec(SpecToWire(spec));
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed->layout.tensors(), spec.layout.tensors());
  EXPECT_THAT(parsed->layout.FirstDifference(SomeSpec().layout),
              HasSubstr("fc.weight [10, 20] (decayed, learning_rate_factor 0.5, "
                        "weight_decay_factor 3)"));
}

TEST(ParseSpec, WhatNoJobHasIsRefused) {
  const auto refused = [](auto change) {
    wire::JobSpec spec = SpecToWire(SomeSpec());
    change(&spec);
    EXPECT_EQ(ParseSpec(spec).status().code(), StatusCode::kInvalidArgument);
  };
  refused([](wire::JobSpec* s) { s->set_train_samples(0); });
  refused([](wire::JobSpec* s) { s->set_train_samples(-5); });
  refused([](wire::JobSpec* s) { s->set_validation_samples(-1); });
  refused([](wire::JobSpec* s) { s->set_optimiser_slots(-1); });
  refused([](wire::JobSpec* s) { s->set_optimiser_slots(INT32_MAX); });
  refused([](wire::JobSpec* s) { s->clear_tensors(); });
  refused([](wire::JobSpec* s) { s->mutable_tensors(0)->set_segment(0xFFFFFFFF); });
  refused([](wire::JobSpec* s) { s->mutable_tensors(0)->add_shape(-1); });
  refused([](wire::JobSpec* s) { s->mutable_tensors(0)->add_shape(INT64_MAX); });
  refused([](wire::JobSpec* s) { *s->add_tensors() = s->tensors(0); });
  refused([](wire::JobSpec* s) { s->mutable_tensors(0)->set_rate_factor(-1); });
  refused([](wire::JobSpec* s) { s->mutable_tensors(0)->set_rate_factor(std::nanf("")); });
  refused([](wire::JobSpec* s) { s->mutable_tensors(0)->set_decay_factor(HUGE_VALF); });
  refused([](wire::JobSpec* s) { s->mutable_metrics(0)->set_sum(INT32_MAX); });
  refused([](wire::JobSpec* s) { s->mutable_metrics(0)->set_sum(INT32_MIN); });
  refused([](wire::JobSpec* s) { s->mutable_metrics(0)->set_name("a\x1b[2J"); });
  refused([](wire::JobSpec* s) { s->mutable_metrics(0)->set_name(std::string(1 << 20, 'a')); });
  refused([](wire::JobSpec* s) { *s->add_metrics() = s->metrics(0); });
  refused([](wire::JobSpec* s) {
    for (int i = 0; i < 100'000; ++i) s->add_metrics();
  });
  refused([](wire::JobSpec* s) {
    for (int i = 0; i < 100'001; ++i) s->add_tensors();
  });
}

TEST(JobIdentity, TheJobIdTellsJobsAndExperimentsApart) {
  const uint64_t id = IdentityOf(SomeExperiment()).JobId();
  Experiment other = SomeExperiment();
  other.job.seed = 2;
  EXPECT_NE(IdentityOf(other).JobId(), id);
  other = SomeExperiment();
  other.job.name = "digit";
  EXPECT_NE(IdentityOf(other).JobId(), id);
  other = SomeExperiment();
  other.cluster.workers = 5;
  EXPECT_EQ(IdentityOf(other).JobId(), id);
}

// The settings of a checkpoint are not compared with each other where they are read.
TEST(PlanFor, RefusesSettingsThatContradictEachOtherAsTheParserDoes) {
  const auto refusal = [](auto change) {
    Experiment e = SomeExperiment();
    e.sync.mode = SyncMode::kBlock;
    change(&e.sync);
    const Result<JobPlan> plan = PlanFor(e, SomeSpec());
    EXPECT_EQ(plan.status().code(), StatusCode::kInvalidArgument);
    return plan.status().message();
  };
  EXPECT_EQ(refusal([](auto* sync) { sync->block = 2, sync->fragments = 4; }),
            "sync.fragments = 4: sync.block = 2 is no multiple of it; set it to 2, or sync.block "
            "to 4");
  EXPECT_EQ(refusal([](auto* sync) { sync->block = 8, sync->fragments = 2, sync->overlap = 4; }),
            "sync.overlap = 4: must be less than sync.block / sync.fragments = 4; set it to at "
            "most 3");
  EXPECT_EQ(refusal([](auto* sync) { sync->minibatch = 10, sync->minibatch_parts = 3; }),
            "sync.minibatch_parts = 3: sync.minibatch = 10 is no multiple of it; set it to 2, or "
            "sync.minibatch to 12");
  EXPECT_EQ(refusal([](auto* sync) { sync->mode = SyncMode::kGradient, sync->overlap = 9; }),
            "sync.overlap = 9: must be at most 8 in gradient mode, where it is a delay in rounds");
}

// What partitions report waits in the coordinator's state, which goes through messages.
TEST(PlanFor, SumsOfMetricsThatAreTooManyForAllPartitionsAreRefused) {
  Experiment e;
  JobSpec spec = SomeSpec();
  spec.metrics =
      MetricList::Make({{"iou", 0, MetricFormula::kMeanOfRatios, true, 500, 500}}).value();
  e.sync.partitions = 65;
  EXPECT_TRUE(PlanFor(e, spec).ok());
  e.sync.partitions = 66;
  EXPECT_EQ(PlanFor(e, spec).status().message(),
            "sync.partitions = 66: each partition reports 1000 sums of metrics, and servers keep "
            "65536 in all; set it to at most 65, or measure less (mean_iou has two sums for each "
            "class)");
}

TEST(PlanFor, AChunkThatIsTooLongForAMessageIsRefused) {
  Experiment e;
  e.cluster.chunk_kib = 16;
  JobSpec spec;
  spec.train_samples = 1000;
  spec.layout = ParameterLayout::Make({{"weight", {1 << 16, 4096}}}).value();
  EXPECT_TRUE(PlanFor(e, spec).ok());
  spec.layout = ParameterLayout::Make({{"weight", {1 << 16, 5000}}}).value();
  const auto refused = PlanFor(e, spec);
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.status().message(), HasSubstr("set it to at least 20"));
  e.cluster.chunk_kib = 20;
  EXPECT_TRUE(PlanFor(e, spec).ok());
}

TEST(PlanFor, TakesTheExperimentsSettings) {
  Experiment e = SomeExperiment();
  e.job.epochs = 3;
  e.sync.partitions = 4;
  e.sync.minibatch = 5;
  e.sync.block = 6;
  e.sync.warmup_samples = 20;
  const Result<JobPlan> plan = PlanFor(e, SomeSpec());
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->Round(0).samples.size(), 20);   // the warm-up: 4 * 5
  EXPECT_EQ(plan->Round(1).samples.size(), 120);  // 4 * 5 * 6
  EXPECT_EQ(plan->Round(plan->rounds() - 1).epoch, 2);
}

}  // namespace
}  // namespace kumo
