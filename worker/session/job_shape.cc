#include "worker/session/job_shape.h"

namespace kumo {

Result<JobShape> JobShape::Make(const Experiment& experiment, const JobSpec& spec, int servers) {
  JobShape shape;
  KUMO_ASSIGN_OR_RETURN(shape.plan, PlanFor(experiment, spec));
  shape.map = ShardMapFor(experiment, spec.layout, servers);
  shape.policy = RoundPolicy(experiment, spec.layout, shape.map);
  return shape;
}

}  // namespace kumo
