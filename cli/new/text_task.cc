#include "cli/new/task.h"
#include "common/job/fields.h"

namespace kumo {
namespace {

constexpr int64_t kMostWindows = 2400;  // of an epoch
constexpr int64_t kTextEpochs = 10;

bool FitsText(const DescribedData& data) { return data.field == kTokensField; }

int64_t EpochsOfText(int64_t /*samples*/) { return kTextEpochs; }

void SetTextData(const DescribedData& data, ExperimentLines* lines) {
  if (data.train_samples > kMostWindows) {
    lines->Set("windows", kMostWindows, "of an epoch, drawn anew in each");
  }
  lines->Set("validation_share", "0.1", "the end of the text");
}

void SetTextTraining(const DescribedData& /*data*/, int64_t /*epochs*/, ExperimentLines* lines) {
  lines->Section("sync");
  lines->Set("mode", "gradient");
  lines->Set("partitions", "1");
  lines->Set("minibatch", "12");
  lines->Section("optimiser");
  lines->Set("type", "adamw");
  lines->Set("beta2", "0.99");
  lines->Set("weight_decay", "0.1");
  lines->Set("clip_norm", "1");
  lines->Section("schedule");
  lines->Set("type", "cosine");
  lines->Set("learning_rate", "0.001");
  lines->Set("final_rate", "0.0001");
  lines->Set("warmup", "0.5", "epochs");
}

}  // namespace

// The model takes the number of tokens from the data.
const NewTask kTextTask = {.fits = FitsText,
                           .model = "char_gpt_small",
                           .element = "token",
                           .epochs = EpochsOfText,
                           .set_data = SetTextData,
                           .set_training = SetTextTraining};

}  // namespace kumo
