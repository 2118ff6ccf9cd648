#include "common/settings/no_effect.h"

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "common/base/text.h"
#include "common/settings/option_value.h"

namespace kumo {
namespace {

// Whether partitions carry the optimiser's arrays: as many as its type says.
bool PartitionsCarryState(const Experiment& e) {
  return !e.block.reset_local_state || e.sync.overlap > 0;
}

bool SelectsValues(const Experiment& e) {
  return CodecOf(e.sync.push_codec).traits().selects || CodecOf(e.sync.pull_codec).traits().selects;
}

// Names of the codecs with a trait: "topk, topk2bit".
std::string CodecsWith(bool CodecTraits::*trait) {
  std::vector<std::string> names;
  for (const Codec* codec : AllCodecs()) {
    if (codec->traits().*trait) names.emplace_back(codec->name());
  }
  return Join(names);
}

// Words of the block rules with a trait.
std::string RulesWith(bool BlockRuleTraits::*trait) {
  std::vector<std::string> words;
  for (const Choice<BlockRule>& rule : kBlockRules) {
    if (TraitsOf(BlockRuleSettings{.rule = rule.value}).*trait) words.emplace_back(rule.word);
  }
  return Join(words);
}

// Whether it depends on sync.relay.
bool MayRelay(const Experiment& e) {
  Experiment relayed = e;
  relayed.sync.relay = true;
  return relayed.RelaysContributions();
}

// Whether images of the reader, or of a transform, come in a size that has to be named.
bool TakesImageSize(const Experiment& e) {
  const ReaderTraits reads = TraitsOf(e.data.reader);
  return reads.image_files || reads.named_streams || e.data.ScalesInTraining() ||
         e.data.shorter_side > 0 || e.data.resize == ResizeMode::kStretch;
}

bool IsOneOf(ScheduleType type, std::initializer_list<ScheduleType> types) {
  return std::ranges::find(types, type) != types.end();
}

// Whether a condition on the schedule holds for one of this type. with_stages: it has a value for
// each stage, whatever its type.
bool Holds(NoEffect condition, ScheduleType type, bool with_stages) {
  using enum ScheduleType;
  switch (condition) {
    case NoEffect::kScheduleWithStages:
      return type == kStages;
    case NoEffect::kScheduleWithoutStages:
      return type != kStages;
    case NoEffect::kScheduleWithoutStep:
      return type != kStep;
    case NoEffect::kScheduleWithoutGamma:
      return !IsOneOf(type, {kStep, kMultistep});
    case NoEffect::kScheduleWithoutPower:
      return type != kPoly;
    case NoEffect::kScheduleWithoutFinalRate:
      return !IsOneOf(type, {kPoly, kCosine});
    case NoEffect::kScheduleWithoutMilestones:
      return !with_stages && !IsOneOf(type, {kMultistep, kStages});
    default:
      return false;
  }
}

std::string WhyOfSchedule(NoEffect condition, std::string_view section, const Experiment& e) {
  const bool of_blocks = section.starts_with("block");
  const ScheduleType type = of_blocks ? e.block_schedule.type : e.schedule.type;
  const bool with_stages = !of_blocks && !e.schedule.time_constants.empty();
  if (!Holds(condition, type, with_stages)) return "";
  return (of_blocks ? "block_schedule.type = " : "schedule.type = ") + WriteValue(type);
}

}  // namespace

std::string WhyNoEffect(NoEffect condition, std::string_view section, const Experiment& e) {
  const auto when = [](bool holds, const std::string& why) { return holds ? why : ""; };
  const ReaderTraits reads = TraitsOf(e.data.reader);
  const std::string reader = "data.reader = " + WriteValue(e.data.reader);
  const std::string mode = "sync.mode = " + WriteValue(e.sync.mode);
  const CodecTraits& push = CodecOf(e.sync.push_codec).traits();
  const std::string push_codec = "sync.push_codec = " + WriteValue(e.sync.push_codec);
  const BlockRuleTraits rule = TraitsOf(e.block);
  const std::string by_rule = "block.rule = " + WriteValue(e.block.rule);
  const OptimiserTraits& steps = TraitsOf(e.optimiser.type);
  const std::string optimiser = "optimiser.type = " + WriteValue(e.optimiser.type);
  const std::string program = "worker.command is set: its program decides that";
  const std::string one_evaluation = "evaluation.every_epochs = 0 evaluates the last epoch only";
  switch (condition) {
    case NoEffect::kProgramDecides:
      return when(e.worker.OwnsModel(), program);
    case NoEffect::kProgramSteps:
      return when(e.worker.OwnsModel() && !e.sync.ServersStep(), program);
    case NoEffect::kProgramForgets:
      return when(e.worker.OwnsModel() && !e.sync.ServersStep() && !PartitionsCarryState(e),
                  program);

    case NoEffect::kWithoutPatience:
      return when(e.job.patience == 0, "job.patience = 0: the job does not stop early");
    case NoEffect::kPatienceWithoutEvaluations:
      return when(e.job.patience > 0 && e.evaluation.every_epochs == 0, one_evaluation);
    case NoEffect::kBestWithoutEvaluations:
      return when(!e.checkpoint.best.empty() && e.evaluation.every_epochs == 0, one_evaluation);
    case NoEffect::kNeverResumes:
      return when(e.checkpoint.resume.never(), "checkpoint.resume = never");

    case NoEffect::kWithText:
      return when(reads.one_text, reader);
    case NoEffect::kWithoutText:
      return when(!reads.one_text, reader);
    case NoEffect::kLabelsWithSamples:
      return when(!reads.label_files && !reads.one_text,
                  reader + " finds the labels with the samples");
    case NoEffect::kWithoutLabelFiles:
      return when(e.data.SplitsTrainingFiles(), "data.validation_images is empty");
    case NoEffect::kWithValidationFiles:
      return when(!reads.one_text && !e.data.SplitsTrainingFiles(),
                  "data.validation_images is set");
    case NoEffect::kImagesKeepSize:
      return when(!TakesImageSize(e), reader);
    case NoEffect::kWithoutImageSize:
      return when(e.data.image_size.empty(), "data.image_size is empty");
    case NoEffect::kWithoutImageFiles:
      return when(!reads.image_files, reader);
    case NoEffect::kWithImagesOnDemand:
      return when(reads.on_demand, reader + " decodes images at each read");
    case NoEffect::kWithoutObjects:
      return when(!reads.objects, reader);
    case NoEffect::kWithoutClassList:
      return when(!reads.class_list, reader);
    case NoEffect::kWithoutColumns:
      return when(!reads.columns, reader);
    case NoEffect::kWithoutStreams:
      return when(!reads.named_streams, reader);
    case NoEffect::kWithNumbers:
      return when(reads.samples == SampleKind::kNumbers, reader + " does not scale its numbers");
    case NoEffect::kWithoutCropArea:
      return when(e.data.crop_area.empty(), "data.crop_area is empty");
    case NoEffect::kWithoutCropPad:
      return when(e.data.crop_pad == 0, "data.crop_pad = 0");

    case NoEffect::kOutsideBlocks:
      return when(e.sync.mode != SyncMode::kBlock, mode);
    case NoEffect::kOutsideAsync:
      return when(e.sync.mode != SyncMode::kAsync, "sync.mode is not async");
    case NoEffect::kInAsync:
      return when(e.sync.mode == SyncMode::kAsync, "sync.mode = async takes sync.staleness");
    case NoEffect::kNothingIsLate:
      return when(e.sync.staleness == 0, "sync.staleness = 0: no gradient is late");
    case NoEffect::kPushLosesNothing:
      return when(CodecOf(e.sync.push_codec).lossless(), push_codec + " is lossless");
    case NoEffect::kPushWithoutThreshold:
      return when(!push.has_threshold, push_codec + " has no threshold");
    case NoEffect::kPushKeepsResidual:
      return when(!push.decays_residual, push_codec + " keeps the whole residual");
    case NoEffect::kNothingSelected:
      return when(!SelectsValues(e), "neither sync.push_codec nor sync.pull_codec is " +
                                         CodecsWith(&CodecTraits::selects));
    case NoEffect::kMayNotRelay:
      return when(!MayRelay(e),
                  "contributions are relayed in block mode with a sparse sync.push_codec (" +
                      CodecsWith(&CodecTraits::sparse) +
                      ") and block.rule = " + RulesWith(&BlockRuleTraits::averages) +
                      ", without evaluation.average_samples, if all partitions' are fewer bytes "
                      "than the weights in sync.pull_codec");
    case NoEffect::kRelays:
      return when(e.RelaysContributions(),
                  "pulls relay the contributions, which are fewer bytes (sync.relay)");

    case NoEffect::kRuleWithoutConvention:
      return when(!rule.takes_convention, by_rule);
    case NoEffect::kRuleWithoutMomentum:
      return when(!rule.takes_momentum, by_rule);
    case NoEffect::kRuleWithoutMoments:
      return when(!rule.takes_moments, by_rule);
    case NoEffect::kRuleWithoutRate:
      return when(!rule.takes_rate, by_rule);
    case NoEffect::kMomentumByTimeConstant:
      return when(rule.takes_convention && e.block.convention == BlockConvention::kCntk,
                  "block.convention = cntk takes block.time_constant");
    case NoEffect::kMomentumByShare:
      return when(e.block.convention == BlockConvention::kPaper,
                  "block.convention = paper takes block.momentum");

    case NoEffect::kWithoutMomentum:
      return when(!steps.has_momentum, optimiser);
    case NoEffect::kWithTimeConstants:
      return when(!e.schedule.time_constants.empty(), "schedule.time_constants is set");
    case NoEffect::kWithoutMatrices:
      return when(!steps.steps_matrices, optimiser);
    case NoEffect::kWithoutBiasCorrection:
      return when(!steps.corrects_bias, optimiser);

    case NoEffect::kScheduleWithStages:
    case NoEffect::kScheduleWithoutStages:
    case NoEffect::kScheduleWithoutStep:
    case NoEffect::kScheduleWithoutGamma:
    case NoEffect::kScheduleWithoutPower:
    case NoEffect::kScheduleWithoutFinalRate:
    case NoEffect::kScheduleWithoutMilestones:
      return WhyOfSchedule(condition, section, e);
  }
  return "";
}

}  // namespace kumo
