// What a worker has opened of a job, before it knows any server: the network on its device, the
// data, and the formulas of local steps.
//
// Made by OpenJob, owned by the Trainer.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/job/fields.h"
#include "common/job/job_identity.h"
#include "common/optimiser/optimiser.h"
#include "common/optimiser/schedule.h"
#include "common/settings/experiment.h"
#include "data/dataset.h"
#include "models/backend/backend.h"
#include "models/backend/devices.h"
#include "models/net.h"
#include "worker/training/job_memory.h"

namespace kumo {

// The device that an experiment's settings mean.
DeviceOptions DeviceOf(const Experiment::Network& network);

struct OpenedJob {
  std::unique_ptr<Backend> backend;  // outlives what follows
  std::unique_ptr<Net> net;
  Datasets datasets;
  MinibatchRooms rooms;
  JobSpec spec;
  std::unique_ptr<Optimiser> optimiser;  // block mode's local one
  std::optional<Schedule> schedule;
};

// Opens the data and connects them to the network, which messages call experiment.network.file. The
// errors of Net::Make, OpenDatasets and ContentHash; FailedPrecondition where network and data do
// not fit each other; InvalidArgument where checkpoint.best is no metric of the network.
Result<OpenedJob> OpenJob(const Experiment& experiment, const model::Network& network);
// The same of the network in that file. The errors of LoadNetwork, too.
Result<OpenedJob> OpenJob(const Experiment& experiment);

// A network is told what its samples look like.
// Net::Connect; where image files have another size than the network takes, the word about it names
// the setting that makes them fit.
Status BindInputs(const std::string& reader, const Fields& fields, const PixelFormula& pixels,
                  Net* net);


}  // namespace kumo
