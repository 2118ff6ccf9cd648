// Job identity: settings, network and data that all processes of a job agree on, and the comparison
// that a server makes at hello.
//
// Values and pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/job_plan.h"
#include "common/job/metric_list.h"
#include "common/job/parameter_layout.h"
#include "common/job/process_identity.h"
#include "common/job/shard_map.h"
#include "common/settings/experiment.h"
#include "proto/wire.pb.h"

namespace kumo {

// The job of a process according to its experiment file and command line.
struct JobIdentity {
  std::string job_name;
  uint64_t experiment_hash = 0;
  std::string experiment_text;  // the settings behind the hash, one `key = value` a line
  int servers = 1;
  int64_t chunk_kib = 1024;

  // Header.job of this job's messages.
  uint64_t JobId() const;
};

// The identity of the job that an experiment describes; the servers are those of cluster.servers.
JobIdentity IdentityOf(const Experiment& experiment);

// Identity of a data set: the hash of its contents and, for people, its place.
struct DataIdentity {
  uint64_t hash = 0;  // docs/formats.md, "Hashes of data"; 0: not known
  std::string name;
};
// "hash 0123456789abcdef".
std::string HashOf(uint64_t hash);

// Job specification: a job as a worker's hello describes it.
struct JobSpec {
  ParameterLayout layout;
  MetricList metrics;
  int classes = 0;  // that the network tells apart; 0: not a classification
  int64_t train_samples = 0;
  int64_t validation_samples = 0;
  DataIdentity train, validation;
  int optimiser_slots = 0;  // that a partition carries from block to block; 0 if they are reset
  std::string network;      // text protobuf in one line; "" if it is too long
  // For programs that use the weights; stored in manifests, not compared.
  std::vector<std::string> class_names;  // by number; none: not known, or too long
  // Mean image of the training set, channels x height x width, if it is subtracted; empty: it is
  // not, or is too long.
  std::vector<float> mean_image;

  // Sets the three descriptions, each if it fits into a hello.
  void Describe(std::string network_text, std::vector<std::string> names,
                std::span<const float> mean);
};

// InvalidArgument for an impossible spec.
Result<JobSpec> ParseSpec(const wire::JobSpec& spec);
wire::JobSpec SpecToWire(const JobSpec& spec);

// The plan, which every process works out for itself. InvalidArgument for settings that contradict
// each other (round_problems.h), as a checkpoint's may, and for what no job may have.
Result<JobPlan> PlanFor(const Experiment& experiment, const JobSpec& spec);
// The shard map, likewise. Requires 1 <= servers <= kMaxServers.
ShardMap ShardMapFor(const Experiment& experiment, const ParameterLayout& layout, int servers);

// A hello with the job, for CheckHello, and the sender; the role sets the other fields.
wire::Hello HelloOf(const JobIdentity& identity, const ProcessIdentity& process);

// FailedPrecondition names the first difference: protocol, job, number of servers, a setting, a
// tensor, the size of the data or their contents. `established` is the job's spec, if it is known
// already.
Status CheckHello(const wire::Header& header, const JobIdentity& identity,
                  const std::optional<JobSpec>& established);

}  // namespace kumo
