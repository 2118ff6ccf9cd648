#include "common/job/job_identity.h"

#include "common/base/fnv.h"
#include "common/base/printable.h"
#include "common/base/text.h"
#include "common/job/network_changes.h"
#include "common/job/protocol.h"
#include "common/job/tensor_factors.h"
#include "common/settings/experiment_text.h"
#include "common/settings/round_problems.h"

namespace kumo {
namespace {

constexpr int kMostClaims = 4096;  // the most that sync.partitions can be

// Refuses different contents of an equal number of samples. Samples of a program (worker.command)
// have no hash.
Status CheckContents(const char* which, const DataIdentity& ours, const DataIdentity& theirs) {
  if (ours.hash == theirs.hash || ours.hash == 0 || theirs.hash == 0) return OkStatus();
  return FailedPrecondition(std::string("other data: equal number of ") + which +
                            " samples, different contents: " + HashOf(ours.hash) + " in the job (" +
                            ours.name + "), " + HashOf(theirs.hash) + " in this process (" +
                            theirs.name + "); copy the same files to every machine");
}

// Whether the worker is a program of its own (worker.command), which has no network file and no
// hash of its samples.
bool IsProgram(const JobSpec& spec) { return spec.network.empty() && spec.train.hash == 0; }

// Refuses a model of the same tensors with other metrics: of a network, if its loss or a field of
// it differs.
Status CheckMetrics(const JobSpec& ours, const JobSpec& theirs) {
  if (ours.metrics == theirs.metrics) return OkStatus();
  const std::string names = ours.metrics.Names();
  const bool named_alike = names == theirs.metrics.Names();
  const char* const declares = IsProgram(theirs)
                                   ? "another model: the program declares the metrics "
                                   : "another network: its loss declares the metrics ";
  const char* const advice =
      IsProgram(ours) != IsProgram(theirs)
          ? "; make the program and the network file declare the same metrics"
      : IsProgram(theirs) ? "; run the same program in every worker"
                          : "; copy the same network file to every machine";
  return FailedPrecondition(declares + theirs.metrics.Names() +
                            (named_alike ? ", but with other definitions than in the job"
                                         : ", in the job they are " + names) +
                            advice);
}

Status CheckSpec(const wire::JobSpec& wire_spec, const JobSpec& established) {
  KUMO_ASSIGN_OR_RETURN(const JobSpec spec, ParseSpec(wire_spec));
  if (const std::string difference = established.layout.FirstDifference(spec.layout);
      !difference.empty()) {
    return FailedPrecondition("another network: " + difference);
  }
  KUMO_RETURN_IF_ERROR(CheckMetrics(established, spec));
  if (const auto changes = NetworkChanges(established.network, spec.network, NetworkUse::kJob);
      !changes.empty()) {
    return FailedPrecondition(
        "another network, of the same tensors, in the job -> in this process: " +
        DescribeChanges(changes) + "; copy the same network file to every machine");
  }
  const auto compare = [](const char* what, int64_t ours, int64_t theirs) {
    if (ours == theirs) return OkStatus();
    return FailedPrecondition(std::string("other data: ") + what + " are " + std::to_string(ours) +
                              " in the job, " + std::to_string(theirs) + " in this process");
  };
  KUMO_RETURN_IF_ERROR(compare("training samples", established.train_samples, spec.train_samples));
  KUMO_RETURN_IF_ERROR(
      compare("validation samples", established.validation_samples, spec.validation_samples));
  KUMO_RETURN_IF_ERROR(CheckContents("training", established.train, spec.train));
  KUMO_RETURN_IF_ERROR(CheckContents("validation", established.validation, spec.validation));
  return compare("optimiser slots", established.optimiser_slots, spec.optimiser_slots);
}

// An evaluation waits in the coordinator's state, with the sums of each partition, until all have
// come; that state goes with versions, in the headers of messages.
Status CheckSums(const Experiment& experiment, const JobSpec& spec) {
  constexpr int64_t kMost = (512 << 10) / static_cast<int64_t>(sizeof(double));
  const int64_t sums = spec.metrics.sums();
  if (sums * experiment.sync.partitions <= kMost) return OkStatus();
  return InvalidArgument("sync.partitions = " + std::to_string(experiment.sync.partitions) +
                         ": each partition reports " + std::to_string(sums) +
                         " sums of metrics, and servers keep " + std::to_string(kMost) +
                         " in all; set it to at most " + std::to_string(kMost / sums) +
                         ", or measure less (mean_iou has two sums for each class)");
}

// A longer chunk would not fit in a message.
Status CheckChunks(const Experiment& experiment, const ParameterLayout& layout) {
  const int64_t kib = experiment.cluster.chunk_kib;
  const int64_t least = layout.size() / ShardMap::kMostChunks * static_cast<int64_t>(sizeof(float));
  if (least <= kib * 1024) return OkStatus();
  return InvalidArgument("cluster.chunk_kib = " + std::to_string(kib) + ": the network has " +
                         std::to_string(layout.size()) + " numbers, in at most " +
                         std::to_string(ShardMap::kMostChunks) + " chunks; set it to at least " +
                         std::to_string(least / 1024 + 1));
}

// Refuses a number that another process sent.
Status CheckBetween(const char* field, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return OkStatus();
  return InvalidArgument(std::string(field) + " = " + std::to_string(value) + ": must be " +
                         (most == INT64_MAX
                              ? "at least " + std::to_string(least)
                              : "from " + std::to_string(least) + " to " + std::to_string(most)));
}

}  // namespace

std::string HashOf(uint64_t hash) { return "hash " + HexDigits(hash); }

uint64_t JobIdentity::JobId() const {
  Fnv1a hash;
  hash.Add(experiment_hash);
  hash.Add(job_name);
  return hash.value();
}

JobIdentity IdentityOf(const Experiment& experiment) {
  JobIdentity identity;
  identity.job_name = experiment.job.name;
  identity.experiment_hash = ExperimentHash(experiment);
  identity.experiment_text = ExperimentText(experiment);
  identity.servers = static_cast<int>(experiment.cluster.servers.size());
  identity.chunk_kib = experiment.cluster.chunk_kib;
  return identity;
}

Result<JobSpec> ParseSpec(const wire::JobSpec& wire_spec) {
  constexpr int kMaxTensors = 100'000;
  if (wire_spec.tensors_size() > kMaxTensors) {
    return InvalidArgument("the network has " + std::to_string(wire_spec.tensors_size()) +
                           " tensors; at most " + std::to_string(kMaxTensors) + " are allowed");
  }
  KUMO_RETURN_IF_ERROR(CheckBetween("train_samples", wire_spec.train_samples(), 1, INT64_MAX));
  KUMO_RETURN_IF_ERROR(
      CheckBetween("validation_samples", wire_spec.validation_samples(), 0, INT64_MAX));
  KUMO_RETURN_IF_ERROR(CheckBetween("optimiser_slots", wire_spec.optimiser_slots(), 0, 8));
  std::vector<TensorSpec> tensors;
  for (const wire::Tensor& t : wire_spec.tensors()) {
    tensors.push_back({t.name(),
                       {t.shape().begin(), t.shape().end()},
                       static_cast<Segment>(t.segment()),
                       ReadFactors(t)});
  }
  JobSpec spec;
  KUMO_ASSIGN_OR_RETURN(spec.layout, ParameterLayout::Make(std::move(tensors)));
  KUMO_ASSIGN_OR_RETURN(spec.metrics, ParseMetrics(wire_spec.metrics()));
  spec.train_samples = wire_spec.train_samples();
  spec.classes = std::max(wire_spec.classes(), 0);
  spec.validation_samples = wire_spec.validation_samples();
  spec.optimiser_slots = wire_spec.optimiser_slots();
  spec.train = {wire_spec.train_hash(), Printable(wire_spec.train_name())};
  spec.validation = {wire_spec.validation_hash(), Printable(wire_spec.validation_name())};
  spec.Describe(wire_spec.network(),
                {wire_spec.class_names().begin(), wire_spec.class_names().end()},
                {wire_spec.mean_image().data(), static_cast<size_t>(wire_spec.mean_image_size())});
  return spec;
}

void JobSpec::Describe(std::string network_text, std::vector<std::string> names,
                       std::span<const float> mean) {
  // Three eighths of a header's length, for all together.
  constexpr size_t kLongestNetwork = 192 << 10;
  constexpr size_t kLongestNames = 64 << 10;
  constexpr size_t kMostNames = 4096;
  constexpr size_t kLongestName = 255;
  constexpr size_t kLongestMean = 32 << 10;
  network = network_text.size() <= kLongestNetwork ? std::move(network_text) : "";
  size_t bytes = 0;
  bool fits = names.size() <= kMostNames;
  for (const std::string& name : names) {
    fits = fits && name.size() <= kLongestName;
    bytes += name.size();
  }
  class_names = fits && bytes <= kLongestNames ? std::move(names) : std::vector<std::string>();
  if (mean.size() > kLongestMean) mean = {};
  mean_image.assign(mean.begin(), mean.end());
}

wire::JobSpec SpecToWire(const JobSpec& spec) {
  wire::JobSpec out;
  for (const TensorSpec& t : spec.layout.tensors()) {
    wire::Tensor* tensor = out.add_tensors();
    tensor->set_name(t.name);
    tensor->mutable_shape()->Add(t.shape.begin(), t.shape.end());
    tensor->set_segment(static_cast<uint32_t>(t.segment));
    WriteFactors(t.factors, tensor);
  }
  WriteMetrics(spec.metrics, out.mutable_metrics());
  out.set_fingerprint(spec.layout.fingerprint());
  out.set_train_samples(spec.train_samples);
  out.set_classes(spec.classes);
  out.set_validation_samples(spec.validation_samples);
  out.set_optimiser_slots(spec.optimiser_slots);
  out.set_train_hash(spec.train.hash);
  out.set_train_name(spec.train.name);
  out.set_validation_hash(spec.validation.hash);
  out.set_validation_name(spec.validation.name);
  out.set_network(spec.network);
  for (const std::string& name : spec.class_names) out.add_class_names(name);
  out.mutable_mean_image()->Add(spec.mean_image.begin(), spec.mean_image.end());
  return out;
}

Result<JobPlan> PlanFor(const Experiment& experiment, const JobSpec& spec) {
  const std::vector<SettingProblem> problems = ProblemsOfRounds(experiment.sync);
  if (!problems.empty()) return InvalidArgument(problems.front().key + problems.front().what);
  KUMO_RETURN_IF_ERROR(CheckSums(experiment, spec));
  KUMO_RETURN_IF_ERROR(CheckChunks(experiment, spec.layout));
  PlanSettings plan;
  plan.mode = experiment.sync.mode;
  plan.train_samples = spec.train_samples;
  plan.partitions = experiment.sync.partitions;
  plan.minibatch = experiment.sync.minibatch;
  plan.block = experiment.sync.RoundMinibatches();
  if (experiment.sync.mode == SyncMode::kBlock) {
    plan.overlap = experiment.sync.overlap;
    plan.fragments = experiment.sync.fragments;
    plan.own_weights = experiment.sync.KeepsOwnWeights();
  }
  plan.delay = experiment.sync.Delay();
  plan.warmup_samples = experiment.sync.warmup_samples;
  plan.epochs = experiment.job.epochs;
  plan.evaluate_every_epochs = experiment.evaluation.every_epochs;
  return JobPlan::Make(plan);
}

ShardMap ShardMapFor(const Experiment& experiment, const ParameterLayout& layout, int servers) {
  return ShardMap(layout, servers, experiment.cluster.chunk_kib * 1024, experiment.sync.ChunkUnit(),
                  experiment.sync.mode == SyncMode::kBlock ? experiment.sync.fragments : 1);
}

wire::Hello HelloOf(const JobIdentity& identity, const ProcessIdentity& process) {
  wire::Hello hello;
  hello.set_job_name(identity.job_name);
  hello.set_experiment_hash(identity.experiment_hash);
  hello.set_experiment_text(identity.experiment_text);
  hello.set_servers(identity.servers);
  hello.set_chunk_kib(identity.chunk_kib);
  hello.set_host(process.host);
  hello.set_pid(process.pid);
  hello.set_incarnation(process.incarnation);
  hello.set_boot(process.boot);
  hello.set_started_ms(process.started_ms);
  return hello;
}

Status CheckHello(const wire::Header& header, const JobIdentity& identity,
                  const std::optional<JobSpec>& established) {
  const wire::Hello& hello = header.hello();
  if (header.protocol() != kProtocolVersion) {
    return FailedPrecondition("protocol version " + std::to_string(header.protocol()) +
                              "; this server speaks version " + std::to_string(kProtocolVersion) +
                              ": run the same release everywhere");
  }
  if (hello.job_name() != identity.job_name) {
    return FailedPrecondition("another job: this server runs \"" + identity.job_name +
                              "\", not \"" + Printable(hello.job_name()) + "\"");
  }
  for (const std::string* text : {&hello.name(), &hello.host(), &hello.device(), &hello.boot()}) {
    if (!IsName(*text)) return InvalidArgument("'" + Printable(*text) + "' is not a name");
  }
  if (hello.claims_size() > kMostClaims || hello.hands_over_size() > kMostClaims) {
    return InvalidArgument("the hello has more than " + std::to_string(kMostClaims) +
                           " claims, and a job has at most as many partitions");
  }
  if (hello.experiment_hash() != identity.experiment_hash) {
    return FailedPrecondition("another experiment, here the server's and there this process's: " +
                              FirstDifference(identity.experiment_text, hello.experiment_text()));
  }
  if (hello.servers() != identity.servers) {
    return FailedPrecondition("the job has " + std::to_string(identity.servers) +
                              " servers; this process was told of " +
                              std::to_string(hello.servers()));
  }
  if (hello.chunk_kib() != identity.chunk_kib) {
    return FailedPrecondition("cluster.chunk_kib is " + std::to_string(identity.chunk_kib) +
                              " on the server and " + std::to_string(hello.chunk_kib()) +
                              " in this process");
  }
  if (hello.role() == wire::Hello::SERVER) {
    if (hello.server_index() < 1 || hello.server_index() >= identity.servers) {
      return FailedPrecondition("there is no server " + std::to_string(hello.server_index()));
    }
    return OkStatus();
  }
  if (hello.role() != wire::Hello::WORKER) return InvalidArgument("a hello without a role");
  if (established) return CheckSpec(hello.spec(), *established);
  return ParseSpec(hello.spec()).status();
}

}  // namespace kumo
