#include "server/coordinator/manifests.h"

#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/continuation.h"
#include "common/checkpoint/origin.h"
#include "common/checkpoint/tensor_list.h"

namespace kumo {

void Manifests::OnSpec(const ShardMap& map, const JobSpec& spec) {
  spec_ = spec;
  map_ = map;
  holders_.clear();
  for (int s = 0; s < map.servers(); ++s) {
    if (map.FirstChunk(s) < map.FirstChunk(s + 1)) holders_.insert(s);
  }
}

checkpoint::File Manifests::FileOf(int server, uint32_t generation,
                                   const wire::SavedFile& saved) const {
  checkpoint::File file;
  file.set_name(ShardFileName(static_cast<uint32_t>(server),
                              static_cast<uint32_t>(identity_.servers), generation));
  file.set_bytes(saved.bytes());
  file.set_crc32c(saved.crc32c());
  if (!private_disks_) return file;
  const Range range = map_.ServerRange(server);
  file.set_begin(range.begin);
  file.set_end(range.end);
  return file;
}

void Manifests::StartFrom(const std::optional<checkpoint::Manifest>& restored) {
  origin_.reset();
  if (restored && restored->has_origin()) origin_ = restored->origin();
}

void Manifests::TakeOver(const wire::CoordinatorState& state) {
  if (state.has_origin()) origin_ = state.origin();
}

void Manifests::OnOrigin(const checkpoint::Origin& origin, StepContext* context) {
  if (origin_) return;
  origin_ = Excerpt(origin);
  context->Do(StartedFromAction{*origin_});
}

void Manifests::Complete(uint32_t generation, const std::optional<checkpoint::Manifest>& restored,
                         const JobPlan& plan, checkpoint::Manifest* manifest) const {
  manifest->set_job_name(identity_.job_name);
  manifest->set_experiment_hash(identity_.experiment_hash);
  manifest->set_experiment_text(identity_.experiment_text);
  manifest->set_fingerprint(spec_.layout.fingerprint());
  manifest->set_generation(generation);
  manifest->set_train_samples(spec_.train_samples);
  manifest->set_validation_samples(spec_.validation_samples);
  manifest->set_train_hash(spec_.train.hash);
  manifest->set_validation_hash(spec_.validation.hash);
  manifest->set_network(spec_.network);
  for (const std::string& name : spec_.class_names) manifest->add_class_names(name);
  manifest->mutable_mean_image()->Add(spec_.mean_image.begin(), spec_.mean_image.end());
  SetTensors(spec_.layout, manifest);
  WriteMetrics(spec_.metrics, manifest->mutable_metrics());
  if (restored) {
    *manifest->mutable_continuations() = restored->continuations();
    NoteChangesOfNetworkAndData(*restored, spec_, plan, manifest);
  }
  if (origin_) *manifest->mutable_origin() = *origin_;
  const int epoch = plan.EvaluatedEpoch(manifest->version());
  if (epoch >= 0 && spec_.validation_samples > 0) {
    manifest->mutable_evaluation()->set_epoch(epoch + 1);
  }
}

}  // namespace kumo
