// Opened job: everything of a job that a worker needs before it knows any server: the network on
// its device, the data sets, and the formulas of local steps.
//
// Made by OpenJob, owned by the Trainer.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "common/base/status.h"
#include "common/job/fields.h"
#include "common/job/job_identity.h"
#include "common/optimiser/optimiser.h"
#include "common/optimiser/schedule.h"
#include "common/settings/experiment.h"
#include "data/open_datasets.h"
#include "models/backend/backend.h"
#include "models/devices/devices.h"
#include "models/net/net.h"
#include "worker/training/job_memory.h"

namespace kumo {

struct OpenedJob {
  std::unique_ptr<Backend> backend;  // outlives what follows
  std::unique_ptr<Net> net;
  Datasets datasets;
  MinibatchRooms rooms;
  JobSpec spec;
  std::unique_ptr<Optimiser> optimiser;  // the local one of block mode
  std::optional<Schedule> schedule;
};

// Opens the data and binds them to the network; messages name the network experiment.network.file.
// The errors of Net::Make, OpenDatasets and ContentHash; FailedPrecondition if network and data do
// not fit each other; InvalidArgument if checkpoint.best is no metric of the network.
Result<OpenedJob> OpenJob(const Experiment& experiment, const model::Network& network);
// Reads the network from that file. Also the errors of LoadNetwork.
Result<OpenedJob> OpenJob(const Experiment& experiment);

// A note if images of the validation set are also in the training set; "" if none is, or if a set
// is not in memory: kumo check --data reads it. The errors of Dataset::Read.
Result<std::string> NoteOfSharedImages(const Datasets& data);

// FailedPrecondition, without the network's file, if transforms of the settings give masks among
// the fields pixels of no class (kIgnoredClass), and a loss does not ignore them.
Status CheckPaddedMasks(const Experiment::Data& data, const Fields& fields, const Graph& graph);

// Binds the fields of the samples to the network's inputs (Net::Connect). The errors of
// Net::Connect; if samples have another shape than the network's input, the message names the input
// to write into the network file, and the setting that makes samples fit if there is one.
Status BindInputs(DataReader reader, const Fields& fields, std::span<const PixelFormula> pixels,
                  Net* net);

}  // namespace kumo
