// Conditions under which a setting has no effect. Each row of the option table names its own; a
// setting that was set in vain is noted with the condition's text.
//
// Functions without state; thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "common/settings/experiment.h"

namespace kumo {

enum class NoEffect {
  // worker.command is set, and the program decides this itself; or it also steps the weights; or it
  // also keeps nothing from block to block.
  kProgramDecides,
  kProgramSteps,
  kProgramForgets,

  kWithoutPatience,  // the job does not stop early
  kPatienceWithoutEvaluations,
  kBestWithoutEvaluations,
  kNeverResumes,

  // Data. "With": the reader, or the samples, have it.
  kWithText,
  kWithoutText,
  kLabelsWithSamples,
  kWithoutLabelFiles,  // the validation set is a part of the training files
  kWithValidationFiles,
  kImagesKeepSize,
  kWithoutImageSize,
  kWithoutImageFiles,
  kWithImagesOnDemand,
  kWithoutObjects,
  kWithoutClassList,
  kWithoutColumns,
  kWithoutStreams,
  kWithNumbers,
  kWithoutCropArea,
  kWithoutCropPad,

  // Synchronisation.
  kOutsideBlocks,
  kOutsideAsync,
  kInAsync,
  kNothingIsLate,
  kPushLosesNothing,
  kPushWithoutThreshold,
  kPushKeepsResidual,
  kNothingSelected,
  kMayNotRelay,
  kRelays,

  // The block rule.
  kRuleWithoutConvention,
  kRuleWithoutMomentum,
  kRuleWithoutMoments,
  kRuleWithoutRate,
  kMomentumByTimeConstant,
  kMomentumByShare,

  // The optimiser.
  kWithoutMomentum,
  kWithTimeConstants,
  kWithoutMatrices,
  kWithoutBiasCorrection,

  // The type of the schedule, of blocks for a section that begins with "block".
  kScheduleWithStages,
  kScheduleWithoutStages,
  kScheduleWithoutStep,
  kScheduleWithoutGamma,
  kScheduleWithoutPower,
  kScheduleWithoutFinalRate,
  kScheduleWithoutMilestones,
};

// Why a setting of `section` has no effect: what holds in this experiment, as "data.crop_pad = 0".
// "" if the condition does not hold.
std::string WhyNoEffect(NoEffect condition, std::string_view section, const Experiment& experiment);

}  // namespace kumo
