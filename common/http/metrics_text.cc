#include "common/http/metrics_text.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include "common/base/text.h"
#include "common/job/phase.h"
#include "common/telemetry/figures.h"

namespace kumo {

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

// The families, in the order of their first use.
class Families {
 public:
  // An unknown value is left out.
  template <typename T>
  void Gauge(const char* name, const char* help, const std::optional<T>& value,
             Labels labels = {}) {
    if (!value) return;
    ClientMetric metric = With(std::move(labels));
    metric.gauge.value = static_cast<double>(*value);
    Add(name, help, MetricType::Gauge, std::move(metric));
  }
  template <typename T>
  void Counter(const char* name, const char* help, const std::optional<T>& value,
               Labels labels = {}) {
    if (!value) return;
    ClientMetric metric = With(std::move(labels));
    metric.counter.value = static_cast<double>(*value);
    Add(name, help, MetricType::Counter, std::move(metric));
  }
  void Histogram(const char* name, const char* help, const DurationCounts& durations) {
    ClientMetric metric;
    uint64_t seen = 0;
    for (size_t i = 0; i < durations.counts.size(); ++i) {
      const std::vector<double>& limits = DurationCounts::Limits();
      seen += durations.counts[i];
      const double limit = i < limits.size() ? limits[i] : std::numeric_limits<double>::infinity();
      metric.histogram.bucket.push_back({seen, limit});
    }
    metric.histogram.sample_count = seen;
    metric.histogram.sample_sum = durations.sum_s;
    Add(name, help, MetricType::Histogram, std::move(metric));
  }

  std::string Text() const {
    std::ostringstream text;
    prometheus::TextSerializer().Serialize(text, families_);
    return text.str();
  }

 private:
  static ClientMetric With(Labels labels) {
    ClientMetric metric;
    metric.label = std::move(labels);
    return metric;
  }
  void Add(const char* name, const char* help, MetricType type, ClientMetric metric) {
    auto family = std::find_if(families_.begin(), families_.end(),
                               [&](const MetricFamily& one) { return one.name == name; });
    if (family == families_.end()) {
      families_.push_back({name, help, type, {}});
      family = families_.end() - 1;
    }
    family->metric.push_back(std::move(metric));
  }

  std::vector<MetricFamily> families_;
};

template <typename T>
std::optional<T> Known(bool known, T value) {
  return known ? std::optional<T>(value) : std::nullopt;
}

template <typename T>
std::optional<T> Always(T value) {
  return value;
}

void AddProcess(const OwnProcess& process, Families* to) {
  to->Counter("process_cpu_seconds_total", "CPU time of all threads, user and system.",
              process.cpu_s);
  to->Gauge("process_resident_memory_bytes", "Resident memory.", process.resident_bytes);
  to->Gauge("process_virtual_memory_bytes", "Virtual memory.", process.virtual_bytes);
  to->Gauge("process_open_fds", "Open file descriptors.", process.open_fds);
  to->Gauge("process_max_fds", "Limit of open file descriptors.", process.max_fds);
  to->Gauge("process_start_time_seconds", "Start time, seconds since 1970.", process.started_s);
}

// "push" for the type PUSH.
std::string TypeName(int type) { return LowerCase(wire::Type_Name(static_cast<wire::Type>(type))); }

void AddTraffic(const ProcessSnapshot& snapshot, Families* to) {
  const TransportCounters& traffic = snapshot.traffic;
  for (int type = 0; type < wire::Type_ARRAYSIZE; ++type) {
    const uint64_t sent = traffic.bytes_sent_by_type[type];
    const uint64_t received = traffic.bytes_received_by_type[type];
    to->Counter("kumo_sent_bytes_total", "Bytes of messages to other processes, by type.",
                Known(sent > 0, sent), {{"type", TypeName(type)}});
    to->Counter("kumo_received_bytes_total",
                "Bytes of messages from other processes that counted, by type.",
                Known(received > 0, received), {{"type", TypeName(type)}});
  }
  to->Counter("kumo_refused_messages_total",
              "Messages dropped on arrival: damaged, too long, or from a stranger.",
              Always(traffic.messages_refused));
  to->Counter("kumo_refused_connections_total", "Connections closed without an answer, with keys.",
              Always(traffic.connections_refused));
  to->Counter("kumo_refused_peers_total", "Refusals sent to processes that may not take part.",
              Always(snapshot.refused_peers));
  to->Counter("kumo_unsent_messages_total",
              "Messages whose receiver was absent or accepted nothing; most are sent again.",
              Always(traffic.sends_unavailable));
  to->Gauge("kumo_send_queue_bytes", "Bytes that wait to be sent.", Always(snapshot.queue_bytes));
}

void AddParts(const char* name, const char* help, const wire::WorkerReport& report,
              const std::string& worker, Families* to) {
  const auto add = [&](const char* part, bool known, double ms) {
    to->Gauge(name, help, Known(known, ms / 1000), {{"worker", worker}, {"part", part}});
  };
  add("compute", report.has_compute_ms(), report.compute_ms());
  add("wait", report.has_wait_ms(), report.wait_ms());
  add("network", report.has_network_ms(), report.network_ms());
}

void AddWorker(const wire::JobStatus::Worker& worker, Families* to) {
  const wire::WorkerReport& report = worker.report();
  const Labels label = {{"worker", worker.name()}};
  AddParts("kumo_worker_round_seconds", "The worker's last round, by part: compute, wait, network.",
           report, worker.name(), to);
  to->Counter("kumo_worker_samples_total", "Samples that the worker has trained since it started.",
              Always(report.samples()), label);
  to->Gauge("kumo_worker_samples_per_second", "The worker's throughput, waits included.",
            Known(worker.has_samples_per_second(), worker.samples_per_second()), label);
  to->Gauge("kumo_worker_leases", "Partitions leased to the worker.",
            Always(report.partitions_size()), label);
  to->Gauge("kumo_worker_silent_seconds", "Silence of a worker whose heartbeats are missing.",
            Known(worker.has_silent_seconds(), worker.silent_seconds()), label);
}

void AddShard(const wire::JobStatus::Server& server, Families* to) {
  const Labels label = {{"shard", std::to_string(server.index())}};
  const wire::ServerReport& report = server.report();
  to->Gauge("kumo_shard_ready", "1 if the server has its part of the weights.",
            Always(report.ready() ? 1 : 0), label);
  to->Gauge("kumo_shard_bytes",
            "Bytes of the weights that the server holds, without the optimiser's state.",
            Always(report.shard_bytes()), label);
  to->Gauge("kumo_shard_version", "The shard's oldest open round.", Always(report.version()),
            label);
}

// Loss and accuracy also have names of their own.
void AddMetrics(const wire::JobStatus& job, Families* to) {
  const std::vector<MetricFigure> training = FiguresOf(job);
  const std::vector<MetricFigure> validation = ValidationFiguresOf(job);
  for (const MetricFigure& figure : training) {
    to->Gauge("kumo_metric", "Each metric of the network, over the last round's samples.",
              Always(figure.value), {{"metric", figure.name}});
  }
  for (const MetricFigure& figure : validation) {
    to->Gauge("kumo_validation_metric",
              "Each metric of the network, over the validation set after the last epoch.",
              Always(figure.value), {{"metric", figure.name}});
  }
  to->Gauge("kumo_loss", "Mean loss of the last round's samples.", FindFigure(training, "loss"));
  to->Gauge("kumo_accuracy_ratio", "Accuracy of the last round's samples.",
            FindFigure(training, "accuracy"));
  to->Gauge("kumo_validation_loss", "Mean loss of the validation set after the last epoch.",
            FindFigure(validation, "loss"));
  to->Gauge("kumo_validation_accuracy_ratio",
            "Accuracy of the validation set after the last epoch.",
            FindFigure(validation, "accuracy"));
}

void AddFigures(const wire::JobStatus& job, Families* to) {
  to->Gauge("kumo_round", "Rounds of the job that are closed.", Always(job.round()));
  to->Gauge("kumo_job_rounds", "Rounds of the whole job.", Known(job.has_rounds(), job.rounds()));
  to->Gauge("kumo_epoch", "Current epoch, counted from 1.", Known(job.has_epoch(), job.epoch()));
  to->Gauge("kumo_job_epochs", "Epochs of the whole job.", Always(job.epochs()));
  to->Gauge("kumo_job_samples", "Samples of the whole job, all epochs together.",
            Known(job.has_total_samples(), job.total_samples()));
  AddMetrics(job, to);
  to->Gauge("kumo_learning_rate", "Learning rate of the current round.",
            Known(job.has_learning_rate(), job.learning_rate()));
  to->Gauge("kumo_samples_per_second", "Throughput of all workers together, waits included.",
            Known(job.has_samples_per_second(), job.samples_per_second()));
  to->Gauge("kumo_elapsed_seconds", "Elapsed time of the job, earlier runs included.",
            Always(job.elapsed_seconds()));
  to->Gauge("kumo_remaining_seconds",
            "Estimated time to the job's end, at the rate of the last minute.",
            Known(job.has_eta_seconds(), job.eta_seconds()));
}

void AddJob(const wire::JobStatus& job, const JobCounts& counts, Families* to) {
  to->Gauge("kumo_job_info", "1; labels have the job's name.", Always(1),
            {{"name", job.job_name()}});
  for (const Choice<JobPhase>& phase : kPhases) {
    to->Gauge("kumo_job_phase", "1 for the job's phase.", Always(job.phase() == phase.word ? 1 : 0),
              {{"phase", std::string(phase.word)}});
  }
  AddFigures(job, to);
  to->Counter("kumo_rounds_total", "Rounds closed since server 0 started.", Always(counts.rounds));
  to->Counter("kumo_samples_total", "Samples of rounds closed since server 0 started.",
              Always(counts.samples));
  to->Histogram("kumo_round_seconds", "Time between the ends of two rounds.", counts.round_seconds);
  int leases = 0, silent = 0;
  std::set<std::string_view> named;
  for (const auto& worker : job.workers()) {
    leases += worker.report().partitions_size();
    silent += worker.has_silent_seconds() ? 1 : 0;
    // Prometheus refuses a whole text with two series of one name.
    if (named.insert(worker.name()).second) AddWorker(worker, to);
  }
  to->Gauge("kumo_workers", "Member workers.", Always(job.workers_size() + job.workers_left_out()));
  to->Gauge("kumo_silent_workers", "Member workers whose heartbeats are missing.", Always(silent));
  to->Gauge("kumo_leases", "Partitions that are leased.", Always(leases));
  for (const auto& server : job.servers()) AddShard(server, to);
  to->Gauge("kumo_generation", "Generation: rises when the job is resumed or goes back.",
            Always(job.generation()));
  to->Counter("kumo_lost_workers_total",
              "Workers lost: silent, without a connection, started again, or gone with partitions.",
              Always(counts.lost_workers));
  to->Counter("kumo_rollbacks_total", "Returns of the job to a checkpoint.",
              Always(counts.went_back));
  to->Counter("kumo_takeovers_total",
              "1 if this process replaced a dead server 0 without losing a round.",
              Always(counts.took_over));
  to->Counter("kumo_checkpoints_total", "Whole checkpoints since server 0 started.",
              Always(counts.checkpoints));
  to->Gauge("kumo_checkpoint_round", "Round of the newest checkpoint.",
            Known(job.last_checkpoint() >= 0, job.last_checkpoint()));
}

void AddFiles(const FileCounts& files, Families* to) {
  to->Histogram("kumo_checkpoint_file_seconds",
                "Time from the order to write this server's checkpoint file until it is durable.",
                files.seconds);
  to->Counter("kumo_checkpoint_file_bytes_total", "Bytes of this server's files of checkpoints.",
              Always(files.bytes));
  to->Counter("kumo_checkpoint_failures_total", "Checkpoint files that could not be written.",
              Always(files.failures));
}

}  // namespace

std::string MetricsText(const ProcessTitle& title, const OwnProcess& process,
                        const ProcessSnapshot* snapshot) {
  Families families;
  families.Gauge("kumo_build_info", "1; labels have build and process.", Always(1),
                 {{"version", title.version},
                  {"commit", title.commit},
                  {"program", title.program},
                  {"process", title.name}});
  AddProcess(process, &families);
  if (snapshot != nullptr) {
    families.Gauge("kumo_ready", "1 if /readyz answers 200.", Always(snapshot->ready ? 1 : 0));
    AddTraffic(*snapshot, &families);
    if (snapshot->worker) AddWorker(*snapshot->worker, &families);
    if (snapshot->files) AddFiles(*snapshot->files, &families);
    if (snapshot->job) AddJob(*snapshot->job, snapshot->counts, &families);
  }
  return families.Text();
}

namespace {

std::string Contents(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The fields of /proc/self/stat from the third on, which is [0]; the name before them may contain
// any characters.
std::vector<std::string> StatFields() {
  const std::string text = Contents("/proc/self/stat");
  const size_t end = text.rfind(')');
  if (end == std::string::npos) return {};
  std::istringstream fields(text.substr(end + 1));
  return {std::istream_iterator<std::string>(fields), std::istream_iterator<std::string>()};
}

// The machine's boot time in seconds since 1970.
std::optional<double> BootTime() {
  std::istringstream lines(Contents("/proc/stat"));
  std::string line;
  while (std::getline(lines, line)) {
    if (line.starts_with("btime ")) return std::stod(line.substr(6));
  }
  return std::nullopt;
}

}  // namespace

OwnProcess LookAtOwnProcess() {
  OwnProcess process;
  constexpr size_t kUser = 11, kSystem = 12, kStart = 19, kVirtual = 20, kResident = 21;
  const std::vector<std::string> stat = StatFields();
  if (stat.size() > kResident) {
    const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
    process.cpu_s = (std::stod(stat[kUser]) + std::stod(stat[kSystem])) / ticks;
    process.virtual_bytes = std::stoll(stat[kVirtual]);
    process.resident_bytes = std::stoll(stat[kResident]) * sysconf(_SC_PAGESIZE);
    if (const auto boot = BootTime()) process.started_s = *boot + std::stod(stat[kStart]) / ticks;
  }
  std::error_code error;
  const std::filesystem::directory_iterator fds("/proc/self/fd", error);
  if (!error) {
    // Not counting the descriptor of this folder.
    process.open_fds = std::distance(begin(fds), end(fds)) - 1;
  }
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    process.max_fds = static_cast<int64_t>(limit.rlim_cur);
  }
  return process;
}

}  // namespace kumo
