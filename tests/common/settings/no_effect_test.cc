#include "common/settings/no_effect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "common/settings/option_table.h"

namespace kumo {
namespace {

using ::testing::HasSubstr;

// "section.key=value" each.
using Sets = std::vector<std::string>;

Experiment With(const Sets& sets) {
  Experiment experiment;
  for (const std::string& set : sets) {
    const size_t equals = set.find('=');
    const Option* const option = OptionTable::Shared().Find(set.substr(0, equals));
    EXPECT_NE(option, nullptr) << set;
    if (option == nullptr) continue;
    EXPECT_TRUE(option->read(set.substr(equals + 1), &experiment).ok()) << set;
  }
  return experiment;
}

struct Case {
  NoEffect condition;
  const char* key;  // of a row that names it
  Sets in_vain;
  Sets in_use;
  const char* why;
};

const Case kCases[] = {
    {NoEffect::kProgramDecides, "data.flip", {"worker.command=a"}, {}, "worker.command is set"},
    {NoEffect::kProgramSteps,
     "optimiser.clip_norm",
     {"worker.command=a"},
     {"worker.command=a", "sync.mode=gradient"},
     "worker.command is set"},
    {NoEffect::kProgramForgets,
     "optimiser.type",
     {"worker.command=a"},
     {"worker.command=a", "block.reset_local_state=false"},
     "worker.command is set"},

    {NoEffect::kWithoutPatience, "job.min_improvement", {}, {"job.patience=1"}, "job.patience = 0"},
    {NoEffect::kPatienceWithoutEvaluations,
     "job.patience",
     {"job.patience=1", "evaluation.every_epochs=0"},
     {"evaluation.every_epochs=0"},
     "evaluation.every_epochs = 0"},
    {NoEffect::kBestWithoutEvaluations,
     "checkpoint.best",
     {"checkpoint.best=loss", "evaluation.every_epochs=0"},
     {"checkpoint.best=loss"},
     "evaluation.every_epochs = 0"},
    {NoEffect::kNeverResumes,
     "checkpoint.continue",
     {"checkpoint.resume=never"},
     {"checkpoint.resume=must"},
     "checkpoint.resume = never"},

    {NoEffect::kWithText, "data.flip", {"data.reader=text"}, {}, "data.reader = text"},
    {NoEffect::kWithoutText, "data.window", {}, {"data.reader=text"}, "data.reader = idx"},
    {NoEffect::kLabelsWithSamples,
     "data.train_labels",
     {"data.reader=voc"},
     {"data.reader=coco"},
     "data.reader = voc finds the labels with the samples"},
    {NoEffect::kWithoutLabelFiles,
     "data.validation_labels",
     {"data.validation_images="},
     {},
     "data.validation_images is empty"},
    {NoEffect::kWithValidationFiles,
     "data.validation_share",
     {},
     {"data.reader=text"},
     "data.validation_images is set"},
    {NoEffect::kImagesKeepSize,
     "data.image_size",
     {},
     {"data.crop_area=0.5,1"},
     "data.reader = idx"},
    {NoEffect::kWithoutImageSize,
     "data.resize",
     {},
     {"data.image_size=3x8x8"},
     "data.image_size is empty"},
    {NoEffect::kWithoutImageFiles, "data.damaged", {}, {"data.reader=voc"}, "data.reader = idx"},
    {NoEffect::kWithImagesOnDemand,
     "data.decode",
     {"data.reader=voc"},
     {"data.reader=image_folder"},
     "data.reader = voc decodes images at each read"},
    {NoEffect::kWithoutObjects,
     "data.train_difficult",
     {},
     {"data.reader=coco"},
     "data.reader = idx"},
    {NoEffect::kWithoutClassList, "data.class_list", {}, {"data.reader=voc"}, "data.reader = idx"},
    {NoEffect::kWithoutColumns, "data.columns", {}, {"data.reader=table"}, "data.reader = idx"},
    {NoEffect::kWithoutStreams, "data.ctf_labels", {}, {"data.reader=ctf"}, "data.reader = idx"},
    {NoEffect::kWithNumbers,
     "data.scale",
     {"data.reader=ctf"},
     {},
     "data.reader = ctf does not scale its numbers"},
    {NoEffect::kWithoutCropArea,
     "data.crop_aspect",
     {},
     {"data.crop_area=0.5,1"},
     "data.crop_area is empty"},
    {NoEffect::kWithoutCropPad, "data.pad_value", {}, {"data.crop_pad=2"}, "data.crop_pad = 0"},

    {NoEffect::kOutsideBlocks, "sync.block", {"sync.mode=gradient"}, {}, "sync.mode = gradient"},
    {NoEffect::kOutsideAsync, "sync.staleness", {}, {"sync.mode=async"}, "sync.mode is not async"},
    {NoEffect::kInAsync, "sync.overlap", {"sync.mode=async"}, {}, "takes sync.staleness"},
    {NoEffect::kNothingIsLate,
     "sync.staleness_correction",
     {"sync.mode=async", "sync.staleness=0"},
     {"sync.mode=async"},
     "sync.staleness = 0"},
    {NoEffect::kPushLosesNothing,
     "sync.error_feedback",
     {},
     {"sync.push_codec=1bit"},
     "sync.push_codec = fp32 is lossless"},
    {NoEffect::kPushWithoutThreshold,
     "sync.push_threshold",
     {"sync.push_codec=1bit"},
     {"sync.push_codec=2bit"},
     "sync.push_codec = 1bit has no threshold"},
    {NoEffect::kPushKeepsResidual,
     "sync.residual_factor",
     {"sync.push_codec=1bit"},
     {"sync.push_codec=topk2bit"},
     "sync.push_codec = 1bit keeps the whole residual"},
    {NoEffect::kNothingSelected,
     "sync.topk_values",
     {},
     {"sync.pull_codec=topk"},
     "neither sync.push_codec nor sync.pull_codec is topk"},
    {NoEffect::kMayNotRelay,
     "sync.relay",
     {"sync.push_codec=topk2bit"},
     {"sync.push_codec=topk2bit", "block.rule=average", "sync.relay=false"},
     "contributions are relayed in block mode"},
    {NoEffect::kRelays,
     "sync.pull_codec",
     {"sync.push_codec=topk2bit", "block.rule=average"},
     {"sync.push_codec=topk2bit", "block.rule=average", "sync.relay=false"},
     "pulls relay the contributions"},

    {NoEffect::kRuleWithoutConvention,
     "block.nesterov",
     {"block.rule=slowmo"},
     {},
     "block.rule = slowmo"},
    {NoEffect::kRuleWithoutMomentum,
     "block.momentum",
     {"block.rule=average"},
     {"block.rule=slowmo"},
     "block.rule = average"},
    {NoEffect::kRuleWithoutMoments, "block.beta1", {}, {"block.rule=adamw"}, "block.rule"},
    {NoEffect::kRuleWithoutRate,
     "block_schedule.type",
     {"block.rule=average"},
     {},
     "block.rule = average"},
    {NoEffect::kMomentumByTimeConstant,
     "block.momentum",
     {"block.convention=cntk"},
     {"block.rule=slowmo", "block.convention=cntk"},
     "block.convention = cntk"},
    {NoEffect::kMomentumByShare,
     "block.time_constant",
     {},
     {"block.convention=cntk"},
     "block.convention = paper"},

    {NoEffect::kWithoutMomentum,
     "optimiser.momentum",
     {"optimiser.type=adam"},
     {"optimiser.type=nesterov"},
     "optimiser.type = adam"},
    {NoEffect::kWithTimeConstants,
     "optimiser.momentum",
     {"optimiser.type=momentum", "schedule.time_constants=600"},
     {"optimiser.type=momentum"},
     "schedule.time_constants is set"},
    {NoEffect::kWithoutMatrices,
     "optimiser.adamw_factor",
     {"optimiser.type=adamw"},
     {"optimiser.type=muon"},
     "optimiser.type = adamw"},
    {NoEffect::kWithoutBiasCorrection,
     "optimiser.beta1",
     {"optimiser.type=momentum"},
     {"optimiser.type=adamw"},
     "optimiser.type = momentum"},

    {NoEffect::kScheduleWithStages,
     "schedule.learning_rate",
     {"schedule.type=stages"},
     {"block_schedule.type=stages"},
     "schedule.type = stages"},
    {NoEffect::kScheduleWithStages,
     "block.learning_rate",
     {"block_schedule.type=stages"},
     {"schedule.type=stages"},
     "block_schedule.type = stages"},
    {NoEffect::kScheduleWithoutStages,
     "block_schedule.rates",
     {"schedule.type=stages"},
     {"block_schedule.type=stages"},
     "block_schedule.type = constant"},
    {NoEffect::kScheduleWithoutStep, "schedule.step", {}, {"schedule.type=step"}, "schedule.type"},
    {NoEffect::kScheduleWithoutGamma,
     "schedule.gamma",
     {"schedule.type=poly"},
     {"schedule.type=multistep"},
     "schedule.type = poly"},
    {NoEffect::kScheduleWithoutPower,
     "schedule.power",
     {"schedule.type=cosine"},
     {"schedule.type=poly"},
     "schedule.type = cosine"},
    {NoEffect::kScheduleWithoutFinalRate,
     "schedule.final_rate",
     {"schedule.type=step"},
     {"schedule.type=cosine"},
     "schedule.type = step"},
    {NoEffect::kScheduleWithoutMilestones,
     "schedule.milestones",
     {},
     {"schedule.time_constants=0,600"},
     "schedule.type = constant"},
};

TEST(NoEffect, EachConditionHoldsInOneExperimentAndNotInAnother) {
  for (const Case& test : kCases) {
    const Option* const option = OptionTable::Shared().Find(test.key);
    ASSERT_NE(option, nullptr) << test.key;
    EXPECT_THAT(option->no_effect, ::testing::Contains(test.condition)) << test.key;
    const std::string section = option->section();
    EXPECT_THAT(WhyNoEffect(test.condition, section, With(test.in_vain)), HasSubstr(test.why))
        << test.key;
    EXPECT_EQ(WhyNoEffect(test.condition, section, With(test.in_use)), "") << test.key;
    EXPECT_THAT(option->WhyNoEffect(With(test.in_vain)), HasSubstr(test.why)) << test.key;
    EXPECT_EQ(option->WhyNoEffect(With(test.in_use)), "") << test.key;
  }
}

TEST(NoEffect, EveryConditionOfTheTableIsTested) {
  std::set<NoEffect> tested;
  for (const Case& test : kCases) tested.insert(test.condition);
  for (const Option& option : OptionTable::Shared().options()) {
    for (const NoEffect condition : option.no_effect) {
      EXPECT_TRUE(tested.contains(condition)) << option.key;
    }
  }
}

}  // namespace
}  // namespace kumo
