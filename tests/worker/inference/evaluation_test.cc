#include "worker/inference/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/json.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/manifest.h"
#include "common/settings/experiment_text.h"
#include "common/telemetry/figures.h"
#include "tests/worker/training/trainer_harness.h"
#include "worker/inference/confusion_matrix.h"

namespace kumo {
namespace {

using testing::HasSubstr;

class EvaluationTest : public TrainerTest {
 protected:
  // A job's folder with one checkpoint of these weights, whose manifest is what the job says but
  // for the mean image.
  static ModelName Save(const Worker& worker, std::span<const float> weights,
                        const std::vector<float>& mean) {
    PosixFileSystem files;
    const JobSpec& spec = worker.trainer->spec();
    const std::string out = folder_ + "/out";
    const std::string folder = out + "/checkpoints";
    std::filesystem::remove_all(out);
    const uint64_t fingerprint = spec.layout.fingerprint();
    const auto saved = SaveShard(
        files, folder,
        {.fingerprint = fingerprint, .version = 5, .generation = 1, .shard = 0, .shards = 1},
        {5, {{StateKind::kStart, 0, 0, 0, nullptr, weights}}});
    CHECK(saved.ok()) << saved.status().message();
    checkpoint::Manifest manifest;
    manifest.set_generation(1);
    manifest.set_version(5);
    manifest.set_fingerprint(fingerprint);
    manifest.set_experiment_text(ExperimentText(worker.experiment));
    manifest.set_network(spec.network);
    manifest.mutable_mean_image()->Add(mean.begin(), mean.end());
    SetTensors(spec.layout, &manifest);
    checkpoint::File* file = manifest.add_files();
    file->set_name(ShardFileName(0, 1, 1));
    file->set_bytes(saved->bytes);
    file->set_crc32c(saved->crc32c);
    CHECK(WriteManifest(files, folder, manifest).ok());
    return {out, {"data.directory=" + folder_}, "", {}};
  }
};

TEST_F(EvaluationTest, AFoldersFiguresAreThoseOfItsWeights) {
  const Worker worker(Augmented(Block()));
  const std::vector<float> weights = worker.InitialWeights();
  const JobSpec& spec = worker.trainer->spec();
  const ModelName name = Save(worker, weights, spec.mean_image);
  const auto sums = worker.trainer->EvaluateAll(weights);
  ASSERT_TRUE(sums.ok()) << sums.status().message();
  const Result<std::string> json = EvaluateCheckpoint(name, {.json = true});
  ASSERT_TRUE(json.ok()) << json.status().message();
  for (const MetricFigure& figure : spec.metrics.FiguresOf(*sums)) {
    const std::string field =
        JsonFields().Add(ValidationFigure(figure.name), figure.value).object();
    EXPECT_THAT(*json, HasSubstr(field.substr(1, field.size() - 2)));
  }
  EXPECT_THAT(EvaluateCheckpoint(name, {}).value(),
              testing::AllOf(HasSubstr("validation/main/loss"), HasSubstr("(23 samples)")));
}

TEST_F(EvaluationTest, TheClassesHaveTheSamplesAndTheRightAnswersOfTheAccuracy) {
  const Worker worker(Augmented(Block()));
  const std::vector<float> weights = worker.InitialWeights();
  const JobSpec& spec = worker.trainer->spec();
  const ModelName name = Save(worker, weights, spec.mean_image);
  const auto sums = worker.trainer->EvaluateAll(weights);
  ASSERT_TRUE(sums.ok()) << sums.status().message();
  ConfusionMatrix matrix(static_cast<int>(worker.trainer->net().classes()));
  const int label = FindField(worker.trainer->datasets().fields(), kLabelField);
  ASSERT_TRUE(worker.trainer
                  ->PredictAll(weights, 0,
                               [&](const Minibatch& minibatch, std::span<const float> scores) {
                                 matrix.Add({reinterpret_cast<const int32_t*>(
                                                 minibatch.fields[label].data()),
                                             static_cast<size_t>(minibatch.size)},
                                            scores);
                               })
                  .ok());
  int64_t samples = 0, right = 0;
  for (int c = 0; c < matrix.classes(); ++c) {
    samples += matrix.FiguresOf(c).samples;
    right += matrix.count(c, c);
  }
  EXPECT_EQ(samples, 23);
  const auto accuracy = FindFigure(spec.metrics.FiguresOf(*sums), "accuracy");
  EXPECT_DOUBLE_EQ(static_cast<double>(right) / 23, *accuracy);
  EXPECT_THAT(EvaluateCheckpoint(name, {.classes = true}).value(),
              testing::EndsWith("\n" + matrix.Text(spec.class_names)
                                           .substr(0, matrix.Text(spec.class_names).size() - 1)));
  EXPECT_THAT(EvaluateCheckpoint(name, {.json = true, .classes = true}).value(),
              testing::AllOf(HasSubstr("\"confusion_matrix\":[["), HasSubstr("\"recall\":")));
}

TEST_F(EvaluationTest, AnotherMeanImageIsRefused) {
  const Worker worker(Augmented(Block()));
  const std::vector<float> weights = worker.InitialWeights();
  std::vector<float> mean = worker.trainer->spec().mean_image;
  ASSERT_EQ(mean.size(), 784u);
  mean[5] += 1;
  const Status refused = EvaluateCheckpoint(Save(worker, weights, mean), {.json = true}).status();
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.message(), HasSubstr("another mean image"));
  // An earlier release's checkpoint does not say.
  EXPECT_TRUE(EvaluateCheckpoint(Save(worker, weights, {}), {.json = true}).ok());
}

}  // namespace
}  // namespace kumo
