#include "worker/job_check.h"

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include <glog/logging.h>

#include "common/base/file.h"
#include "common/base/instruction_set.h"
#include "common/base/json.h"
#include "common/base/printable.h"
#include "common/base/text.h"
#include "common/checkpoint/continuation.h"
#include "common/checkpoint/network_and_data.h"
#include "common/checkpoint/origin.h"
#include "common/checkpoint/resume_point.h"
#include "common/job/job_identity.h"
#include "common/job/shard_map.h"
#include "common/settings/experiment_text.h"
#include "common/settings/option_value.h"
#include "models/devices/devices.h"
#include "worker/session/job_shape.h"
#include "worker/training/initial_weights.h"
#include "worker/training/opened_job.h"
#include "worker/training/trainer.h"

namespace kumo {
namespace {

constexpr int kIndent = 2;  // of tables below a line that begins with its subject

// Prints the memory estimate of the job's processes, as two tables.
void PrintTables(const JobMemory& memory, int columns) {
  for (const MemoryNeed* need : {&memory.worker, &memory.server}) {
    std::printf("memory   %s\n", need->Head().c_str());
    const std::string table = need->Table(columns > 0 ? columns - kIndent : 0);
    std::fputs(Indented(table, kIndent).c_str(), stdout);
  }
}

// Prints the machine-readable result for the launcher: one line of JSON. size: further fields.
void PrintJson(const JobMemory& memory, JsonFields size) {
  const auto fields = [](const MemoryNeed& need) {
    return JsonFields().Add("bytes", need.bytes()).Add("most", need.Largest());
  };
  size.Add("worker", fields(memory.worker)).Add("server", fields(memory.server));
  std::printf("%s\n", size.object().c_str());
}

// Prints the network and the data. Returns the network's size for the launcher.
Result<JsonFields> PrintCheck(const Trainer& trainer, const Experiment& experiment, int columns) {
  const Datasets& data = trainer.datasets();
  const ParameterLayout& layout = trainer.spec().layout;
  KUMO_ASSIGN_OR_RETURN(const JobShape shape,
                        JobShape::Make(experiment, trainer.spec(), /*servers=*/1));
  int64_t parameters = 0;
  int64_t frozen = 0;
  for (const TensorSpec& tensor : layout.tensors()) {
    if (tensor.segment == Segment::kStatistics) continue;
    parameters += tensor.size();
    if (!tensor.trained()) frozen += tensor.size();
  }
  std::printf("network  %s: %" PRId64 " parameters%s in %zu chunk%s\n",
              experiment.network.file.c_str(), parameters,
              frozen > 0 ? (", " + std::to_string(frozen) + " of them frozen,").c_str() : "",
              shape.map.chunks().size(), shape.map.chunks().size() == 1 ? "" : "s");
  std::printf("data     %s: %" PRId64 " training samples, %s\n", data.train->name().c_str(),
              data.train->size(), HashOf(trainer.spec().train.hash).c_str());
  std::printf("data     %s: %" PRId64 " validation samples, %s\n", data.validation->name().c_str(),
              data.validation->size(), HashOf(trainer.spec().validation.hash).c_str());
  const RoundPlan last = shape.plan.Round(shape.plan.rounds() - 1);
  const ExchangeBytes bytes =
      shape.policy.BytesOf(last, shape.map.chunks(), experiment.sync.partitions);
  const Codec* const pull = shape.policy.PullCodec(last, Segment::kDecayed);
  std::printf(
      "traffic  %s: each partition pushes %s (%s), each worker pulls %s (%s)\n",
      last.local_steps ? "a block" : "a minibatch",
      HumanBytes(static_cast<uint64_t>(bytes.push)).c_str(),
      WriteValue(last.full_precision ? CodecId::kFp32 : experiment.sync.push_codec).c_str(),
      HumanBytes(static_cast<uint64_t>(bytes.pull)).c_str(),
      std::ranges::any_of(shape.map.chunks(),
                          [&](const Chunk& chunk) { return shape.policy.Relays(last, chunk); })
          ? "contributions, relayed"
          : WriteValue(pull == nullptr ? CodecId::kFp32 : experiment.sync.pull_codec).c_str());
  std::string devices;
  for (const std::string& device : ListDevices()) devices += (devices.empty() ? "" : ", ") + device;
  std::printf("devices  %s\n", devices.c_str());
  const Device& device = experiment.network.device;
  std::string level;
  if (const auto isa = LevelFor(experiment.network.instruction_set); device.is_cpu() && isa.ok()) {
    level = ", " + std::string(NameOf(*isa));
  }
  std::printf("device   %s%s, %d thread%s\n", device.ToString().c_str(), level.c_str(),
              experiment.network.threads, experiment.network.threads == 1 ? "" : "s");
  std::printf("%s", trainer.net().Describe(columns).c_str());
  std::printf("device   holds %s\n", trainer.DescribeMemory().c_str());
  return JsonFields().Add("parameters", parameters).Add("chunks", shape.map.chunks().size());
}

// Prints the origin of the initial weights, if one is configured.
Status CheckOrigin(const Trainer& trainer, const Experiment& experiment) {
  if (experiment.network.initial_weights.empty()) return OkStatus();
  Buffer<float> weights(trainer.spec().layout.size());
  Result<checkpoint::Origin> origin =
      TransferWeights(experiment, trainer.spec().layout, weights.span());
  if (!origin.ok()) return origin.status().WithContext("network.initial_weights");
  for (const std::string& note : origin->notes()) LOG(WARNING) << note;
  origin->clear_notes();
  for (const std::string& line : LinesOf(*origin)) std::printf("start    %s\n", line.c_str());
  return OkStatus();
}

// Prints the checkpoint that server 0 would resume from, or why it could not.
Status CheckStart(const Trainer& trainer, const Experiment& experiment) {
  PosixFileSystem files;
  KUMO_ASSIGN_OR_RETURN(const ResumePoint point, FindCheckpointToResume(files, experiment));
  for (const std::string& skipped : point.skipped) {
    std::printf("start    skips %s\n", skipped.c_str());
  }
  if (!point.manifest) {
    std::printf("start    from the initial weights\n");
    return CheckOrigin(trainer, experiment);
  }
  KUMO_RETURN_IF_ERROR(CheckSameNetworkAndData(*point.manifest, trainer.spec(), experiment));
  std::printf("start    from checkpoint %s%s\n", point.manifest->name().c_str(),
              point.finished ? ", the last one: the job is complete" : "");
  for (const SettingChange& change : ChangesOfNetworkAndData(*point.manifest, trainer.spec())) {
    std::printf("start    changed: %s\n", DescribeChange(change).c_str());
  }
  if (!point.continuation) return OkStatus();
  for (const std::string& line : LinesOf(*point.continuation)) {
    std::printf("start    changed: %s\n", line.c_str());
  }
  return OkStatus();
}

}  // namespace

void PrintMemory(const JobMemory& memory, int columns, bool json) {
  if (json) {
    PrintJson(memory, JsonFields().Add("parameters", memory.parameters));
  } else {
    PrintTables(memory, columns);
  }
}

Status CheckJob(const JobMemory& memory, const Experiment& experiment, int columns, bool json,
                const Clock* clock) {
  PrintTables(memory, columns);
  KUMO_RETURN_IF_ERROR(memory.CheckWorkerFits());
  KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer, Trainer::Make(experiment, clock));
  KUMO_ASSIGN_OR_RETURN(const JsonFields size, PrintCheck(*trainer, experiment, columns));
  KUMO_ASSIGN_OR_RETURN(const std::string shared, NoteOfSharedImages(trainer->datasets()));
  if (!shared.empty()) LOG(WARNING) << shared;
  KUMO_RETURN_IF_ERROR(CheckStart(*trainer, experiment));
  if (json) PrintJson(memory, size);
  return OkStatus();
}

}  // namespace kumo
