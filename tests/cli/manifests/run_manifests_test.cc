#include "cli/manifests/run_manifests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "common/settings/experiment_text.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class RunManifestsTest : public ::testing::Test {
 protected:
  LoadedExperiment Load(const std::string& text, const std::vector<std::string>& sets = {}) {
    const std::string path = scratch_.path() + "/mine.conf";
    std::ofstream(path) << text;
    LoadedExperiment loaded = LoadExperiment(path, sets, {{"HOME", "/home/me"}});
    EXPECT_THAT(loaded.problems, IsEmpty());
    return loaded;
  }
  // As the pods read it, with what their command lines set.
  LoadedExperiment LoadInPod(const std::string& text, const std::vector<std::string>& sets = {}) {
    const std::string path = scratch_.path() + "/experiment.conf";
    std::ofstream(path) << text;
    LoadedExperiment loaded = LoadExperiment(path, sets, {});
    EXPECT_THAT(loaded.problems, IsEmpty()) << text;
    return loaded;
  }

  test::ScratchDirectory scratch_;
  ClusterRun run_{
      .name = "r1", .workers = 3, .servers = 2, .components = {"shared-volume"}, .image = "kumo"};
};

TEST_F(RunManifestsTest, NamesMustFitIntoObjectsNames) {
  for (const char* name : {"a", "mnist-lenet", "r1", "a234567890123456789012345678901234567890"}) {
    EXPECT_TRUE(CheckRunName(name).ok()) << name;
  }
  for (const char* name : {"", "-a", "a-", "A", "1a", "a_b", "a.b", "a b", "\xc3\xa4",
                           "a2345678901234567890123456789012345678901"}) {
    EXPECT_EQ(CheckRunName(name).code(), StatusCode::kInvalidArgument) << name;
  }
  EXPECT_EQ(RunNameOf("MNIST_lenet"), "mnist-lenet");
}

TEST_F(RunManifestsTest, PodsReadTheSameExperiment) {
  const LoadedExperiment here = Load(
      "[network]\nfile = nets/a.pbtxt\n[sync]\nblock = 7\n[schedule]\ntype = multistep\n"
      "milestones = 3, 5\n[data]\ndirectory = ~/data\n"
      "train_images = a$$b.gz\n[checkpoint]\nresume = never\nkeep = 9\n",
      {"optimiser.weight_decay=0.001"});
  const std::string text = PodExperimentText(here, run_, "What it is.\n");
  EXPECT_THAT(text, AllOf(HasSubstr("# What it is.\n"), HasSubstr("\nfile = a.pbtxt\n"),
                          Not(HasSubstr("resume")), HasSubstr("\nmilestones = 3, 5\n")));
  const LoadedExperiment there = LoadInPod(text);
  EXPECT_EQ(ExperimentText(there.experiment), ExperimentText(here.experiment));
  EXPECT_EQ(there.experiment.job.name, "mine");
  EXPECT_EQ(there.experiment.checkpoint.keep, 9);
  EXPECT_EQ(there.experiment.checkpoint.resume, ResumeFrom());
}

TEST_F(RunManifestsTest, TheRunSaysWhereThingsAreInPods) {
  const LoadedExperiment there =
      LoadInPod(PodExperimentText(Load("[network]\nfile = n.pbtxt\n"), run_, ""));
  const Experiment& experiment = there.experiment;
  EXPECT_THAT(experiment.cluster.servers,
              ElementsAre("tcp://r1-server-0.r1-server:7700", "tcp://r1-server-1.r1-server:7700"));
  EXPECT_EQ(experiment.cluster.workers, 3);
  EXPECT_EQ(experiment.output.directory, "/output/r1");
  EXPECT_EQ(experiment.data.directory, "/data");
  EXPECT_EQ(experiment.cluster.join_timeout_s, 1800);
  EXPECT_EQ(experiment.output.interval_s, 10);
}

TEST_F(RunManifestsTest, WhatTheExperimentSaysOfWaitingAndPrintingStays) {
  const LoadedExperiment there = LoadInPod(PodExperimentText(
      Load("[network]\nfile = n.pbtxt\n[output]\ninterval_s = 3\n[cluster]\njoin_timeout_s = 5\n"),
      run_, ""));
  EXPECT_EQ(there.experiment.cluster.join_timeout_s, 5);
  EXPECT_EQ(there.experiment.output.interval_s, 3);
}

TEST_F(RunManifestsTest, PathsOfThisMachineAreRefused) {
  const std::vector<Status> problems =
      ProblemsInPods(Load("[network]\nfile = n.pbtxt\ninitial_weights = /home/me/out\n"
                          "[data]\ntrain_images = /home/me/a.gz\nclass_list = /home/me/names\n"),
                     run_);
  ASSERT_EQ(problems.size(), 3u);
  EXPECT_THAT(problems[0].message(), HasSubstr("/home/me/a.gz is a path of this machine"));
  EXPECT_THAT(problems[1].message(), HasSubstr("/home/me/names is a path of this machine"));
  EXPECT_THAT(problems[2].message(), HasSubstr("network.initial_weights"));
}

// Workers read the initial weights, and mount the claim of the data, not the servers' volume.
TEST_F(RunManifestsTest, InitialWeightsAreOnTheClaimOfTheData) {
  const auto problems = [&](const std::string& weights, const std::string& names) {
    std::vector<std::string> texts;
    for (const Status& problem :
         ProblemsInPods(Load("[network]\nfile = n.pbtxt\ninitial_weights = " + weights +
                             "\ninitial_names = " + names + "\n"),
                        run_)) {
      texts.push_back(problem.message());
    }
    return texts;
  };
  EXPECT_THAT(problems("/data/w.safetensors", "/data/w.names"), IsEmpty());
  EXPECT_THAT(problems("/output/r1/checkpoints/", "/output/w.names"),
              ElementsAre(AllOf(HasSubstr("network.initial_weights = /output/r1/checkpoints"),
                                HasSubstr("kumo-data"), HasSubstr("/data/checkpoints")),
                          AllOf(HasSubstr("network.initial_names = /output/w.names: "),
                                HasSubstr("kumo-data"), HasSubstr("/data/w.names"))));
  EXPECT_THAT(problems("/data/../home/w.npz", "torchvision"),
              ElementsAre(HasSubstr("/data/w.npz"), HasSubstr("n.torchvision.names")));
}

TEST_F(RunManifestsTest, TheFinalModelGoesToAVolume) {
  const std::string network = "[network]\nfile = n.pbtxt\n";
  const LoadedExperiment here = Load(network + "[output]\nfinal_model = models/mine\n");
  const std::vector<Status> problems = ProblemsInPods(here, run_);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_THAT(problems[0].message(), AllOf(HasSubstr("output.final_model = models/mine"),
                                           HasSubstr("--with final-model")));
  const auto in_pods = [&](const LoadedExperiment& loaded) {
    EXPECT_THAT(ProblemsInPods(loaded, run_), IsEmpty());
    return LoadInPod(PodExperimentText(loaded, run_, "")).experiment.output.final_model;
  };
  EXPECT_EQ(in_pods(Load(network)), "");
  EXPECT_EQ(in_pods(Load(network + "[output]\nfinal_model = /output/best\n")), "/output/best");
  run_.components.push_back("final-model");
  EXPECT_EQ(in_pods(here), "/models/r1");
  EXPECT_EQ(in_pods(Load(network)), "/models/r1");
  EXPECT_EQ(in_pods(Load(network + "[output]\nfinal_model = /models/a/b\n")), "/models/a/b");
}

TEST_F(RunManifestsTest, ComponentsThatAreMissingOrExcludeEachOtherAreNamed) {
  const LoadedExperiment loaded = Load("[network]\nfile = n.pbtxt\ndevice = cuda\n");
  run_.components = {"kueue", "workers-statefulset"};
  const std::vector<Status> problems = ProblemsInPods(loaded, run_);
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_THAT(problems[0].message(), HasSubstr("--with gpu"));
  EXPECT_THAT(problems[1].message(), HasSubstr("remove kueue"));
  run_.components = {"gpu"};
  EXPECT_THAT(ProblemsInPods(loaded, run_), IsEmpty());
}

// Servers and workers would refuse the experiment, or wait for workers that no pod is.
TEST_F(RunManifestsTest, TheRunsNumbersOfServersAndWorkersAreChecked) {
  const LoadedExperiment loaded = Load(
      "[network]\nfile = n.pbtxt\n[cluster]\nservers = tcp://127.0.0.1:1, tcp://127.0.0.1:2\n"
      "replicas = 2\nmin_workers = 4\n");
  run_.workers = 4;
  EXPECT_THAT(ProblemsInPods(loaded, run_), IsEmpty());
  run_.components = {"keys"};
  EXPECT_THAT(ProblemsInPods(loaded, run_), IsEmpty());
  run_.workers = 2;
  run_.servers = 1;
  const std::vector<Status> problems = ProblemsInPods(loaded, run_);
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_THAT(problems[0].message(),
              HasSubstr("mine.conf:5: cluster.replicas = 2: needs at least 2 servers, but the job "
                        "has 1; add servers (cluster.servers or --servers)"));
  EXPECT_THAT(problems[1].message(),
              HasSubstr("cluster.min_workers = 4, but the run has 2 workers, so it would wait "
                        "without end; use --workers 4"));
}

// Whatever the experiment says: it is about other machines.
TEST_F(RunManifestsTest, ServersHaveDisksOfTheirOwnUnlessTheyShareAVolume) {
  for (const char* here : {"shared", "private"}) {
    const LoadedExperiment loaded =
        Load(std::string("[network]\nfile = n.pbtxt\n[checkpoint]\ndisks = ") + here + "\n");
    const auto in_pods = [&] {
      EXPECT_THAT(ProblemsInPods(loaded, run_), IsEmpty());
      return LoadInPod(PodExperimentText(loaded, run_, "")).experiment.checkpoint.disks;
    };
    run_.components = {"shared-volume"};
    EXPECT_EQ(in_pods(), CheckpointDisks::kShared);
    run_.components = {};
    EXPECT_EQ(in_pods(), CheckpointDisks::kPrivate);
  }
}

TEST_F(RunManifestsTest, PodsShowThemselvesWhereTheManifestsSay) {
  const LoadedExperiment loaded =
      Load("[network]\nfile = n.pbtxt\n[http]\naddress = 127.0.0.1:8080\n");
  EXPECT_EQ(LoadInPod(PodExperimentText(loaded, run_, "")).experiment.http.address, "");
}

TEST_F(RunManifestsTest, KeysOfThisMachineAreNotForgottenInPods) {
  const LoadedExperiment loaded = Load("[network]\nfile = n.pbtxt\n[cluster]\nkeys = mine\n");
  const std::vector<Status> problems = ProblemsInPods(loaded, run_);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_THAT(problems[0].message(), HasSubstr("--with keys"));
  run_.components.push_back("keys");
  EXPECT_THAT(ProblemsInPods(loaded, run_), IsEmpty());
  const LoadedExperiment there =
      LoadInPod(PodExperimentText(loaded, run_, ""), {"cluster.keys=/keys"});
  EXPECT_FALSE(there.experiment.cluster.insecure);
  EXPECT_EQ(there.experiment.cluster.keys, "/keys");
}

TEST_F(RunManifestsTest, ImagesAreTakenApartAsKustomizeWantsThem) {
  const LoadedExperiment loaded = Load("[network]\nfile = n.pbtxt\n");
  const auto images = [&](const std::string& image) {
    run_.image = image;
    const std::string text = KustomizationText(loaded, run_);
    const size_t at = text.find("newName");
    return text.substr(at, text.find("\n#", at) - at);
  };
  EXPECT_EQ(images("kumo"), "newName: \"kumo\"\n    newTag: \"latest\"");
  EXPECT_EQ(images("host:5000/a/kumo"), "newName: \"host:5000/a/kumo\"\n    newTag: \"latest\"");
  EXPECT_EQ(images("host:5000/kumo:v1"), "newName: \"host:5000/kumo\"\n    newTag: \"v1\"");
  EXPECT_EQ(images("a/kumo:v1@sha256:0f"), "newName: \"a/kumo\"\n    digest: \"sha256:0f\"");
}

TEST_F(RunManifestsTest, AProgramsWorkersHaveAnImageOfTheirOwn) {
  const LoadedExperiment loaded = Load("[worker]\ncommand = python3 train.py\n");
  const std::vector<Status> problems = ProblemsInPods(loaded, run_);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_THAT(problems[0].message(), HasSubstr("name it with --worker-image"));
  run_.worker_image = "host/mine:2";
  EXPECT_THAT(ProblemsInPods(loaded, run_), IsEmpty());
  const std::string text = KustomizationText(loaded, run_);
  EXPECT_THAT(text,
              AllOf(HasSubstr("newName: \"host/mine\"\n    newTag: \"2\""),
                    HasSubstr("files: [experiment.conf]"),
                    HasSubstr("containers/0/image, value: kumo-worker}"),
                    HasSubstr("{op: remove, path: /spec/template/spec/containers/0/liveness")));
  const std::string in_pods = PodExperimentText(loaded, run_, "");
  EXPECT_THAT(in_pods, AllOf(HasSubstr("command = python3 train.py"), Not(HasSubstr("[network]")),
                             Not(HasSubstr("[data]"))));
  EXPECT_EQ(ExperimentText(LoadInPod(in_pods).experiment), ExperimentText(loaded.experiment));
}

TEST_F(RunManifestsTest, PodsAreGivenLongerThanTheExperimentsGrace) {
  const std::string text = KustomizationText(
      Load("[network]\nfile = n.pbtxt\nthreads = 4\n[checkpoint]\ngrace_s = 99.5\n"), run_);
  EXPECT_THAT(text, AllOf(HasSubstr("GracePeriodSeconds, value: 120}"),
                          HasSubstr("requests/cpu, value: \"4\"}"),
                          HasSubstr("/spec/completions, value: 3}")));
}

// kubectl goes on behind what the API server has refused.
TEST_F(RunManifestsTest, AnEditedRunHasSelectorsThatARunOfItsNameCannotBeGiven) {
  const auto selector = [&](const std::string& text, int servers) {
    ClusterRun run = run_;
    run.servers = servers;
    const std::string kustomization = KustomizationText(Load(text), run);
    const std::string key = "/spec/selector/matchLabels/kumo~1experiment, value: ";
    const size_t at = kustomization.find(key);
    EXPECT_NE(at, std::string::npos);
    return kustomization.substr(at + key.size(), 18);
  };
  const std::string text = "[network]\nfile = n.pbtxt\n";
  EXPECT_EQ(selector(text, 2), selector(text, 2));
  EXPECT_NE(selector(text, 2), selector(text, 3));
  EXPECT_NE(selector(text, 2), selector(text + "threads = 4\n", 2));
}

}  // namespace
}  // namespace kumo
