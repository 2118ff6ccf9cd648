#include "worker/session/job_shape.h"

namespace kumo {

Result<JobShape> JobShape::Make(const Experiment& experiment, const JobSpec& spec, int servers) {
  JobShape shape;
  KUMO_ASSIGN_OR_RETURN(shape.plan, PlanFor(experiment, spec));
  shape.map = ShardMap(spec.layout, servers, experiment.cluster.chunk_kib * 1024);
  shape.push_codecs = PushCodecs(experiment.sync);
  shape.carried_arrays = CarriedArrays(experiment, spec);
  shape.apart_in_gradient_mode = experiment.EvaluatesApart(SyncMode::kGradient);
  shape.apart_in_block_mode = experiment.EvaluatesApart(SyncMode::kBlock);
  shape.pulls_differences = experiment.PullsDifferences();
  return shape;
}

bool JobShape::EvaluatesApart(int64_t version) const {
  if (plan.EvaluatedEpoch(version) < 0) return false;
  return plan.Round(version - 1).mode == SyncMode::kBlock ? apart_in_block_mode
                                                          : apart_in_gradient_mode;
}

}  // namespace kumo
