// See push_pull.h. Prints a table, and one line of JSON on request.
//
//   push_pull [--runs=N] [--megabytes=N] [--only=TEXT] [--json=FILE] [--untuned]
//
// --only leaves out contenders whose names lack TEXT, except raw TCP and bare ZeroMQ.
//
// All servers are started first; then each run measures every contender once, in turn, so that
// other load on the machine affects all of them alike. Reported are medians and quartiles, the
// medians of the ratios within a run, and the processor time of both ends, which other load hardly
// changes.
#include "bench/push_pull.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <vector>

#include <glog/logging.h>

#include "bench/report.h"
#include "common/base/buffer.h"
#include "common/base/process/process_start.h"
#include "common/base/version.h"

namespace kumo::bench {

void AddChunk(std::span<const std::byte> x, std::span<float> sum) {
  // Loads of any alignment: the compiler turns these copies into unaligned vector loads.
  const std::byte* from = x.data();
  float* to = sum.data();
  for (size_t i = 0; i < sum.size(); ++i) {
    float value;
    std::memcpy(&value, from + i * sizeof value, sizeof value);
    to[i] += value;
  }
}

void Report(int fd, const std::string& line) {
  const std::string text = line + "\n";
  CHECK_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

namespace {

struct Settings {
  int runs = 21;
  int megabytes = 100;  // 10^6 bytes
  std::string only;
  std::string json;
  bool tuned = true;
};

struct Server {
  pid_t pid = 0;
  clockid_t clock = 0;  // its processor time
  std::string address;
};

double Milliseconds(clockid_t clock) {
  timespec now = {};
  PCHECK(clock_gettime(clock, &now) == 0);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

Server StartServer(const Contender& contender, const Model& model) {
  int ends[2];
  PCHECK(pipe(ends) == 0);
  Server server;
  server.pid = fork();
  PCHECK(server.pid >= 0);
  if (server.pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(ends[0]);
    contender.serve(model, ends[1]);
    _exit(1);
  }
  close(ends[1]);
  for (char c = 0; read(ends[0], &c, 1) == 1 && c != '\n';) server.address += c;
  close(ends[0]);
  CHECK(!server.address.empty()) << contender.name << ": the server did not start";
  CHECK_EQ(clock_getcpuclockid(server.pid, &server.clock), 0);
  return server;
}

// Milliseconds of one contender, or ratios between two.
struct Sample {
  std::vector<double> values;

  double Quantile(double q) const {
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    return sorted[static_cast<size_t>(q * static_cast<double>(sorted.size() - 1) + 0.5)];
  }
  double Median() const { return Quantile(0.5); }
};

Sample Ratio(const Sample& of, const Sample& to) {
  Sample ratio;
  for (size_t i = 0; i < of.values.size(); ++i) {
    ratio.values.push_back(of.values[i] / to.values[i]);
  }
  return ratio;
}

std::string MachineWithTcp() {
  std::string algorithm;
  std::ifstream("/proc/sys/net/ipv4/tcp_congestion_control") >> algorithm;
  return Machine() + ", TCP " + algorithm;
}

struct Times {
  Sample wall;
  Sample processor;  // of both ends
};

std::vector<Times> Measure(const std::vector<Contender>& contenders, const Model& model, int runs) {
  std::vector<Server> servers;
  for (const Contender& contender : contenders) servers.push_back(StartServer(contender, model));
  std::vector<Times> times(contenders.size());
  {
    std::vector<std::unique_ptr<PushPullWorker>> workers;
    for (size_t c = 0; c < contenders.size(); ++c) {
      workers.push_back(contenders[c].connect(model, servers[c].address));
    }
    Buffer<float> update(model.floats);
    Buffer<float> weights(model.floats);
    for (size_t i = 0; i < model.floats; ++i) update[i] = static_cast<float>(i % 7);
    constexpr int kWarmUp = 3;
    for (int run = -kWarmUp; run < runs; ++run) {
      for (size_t c = 0; c < contenders.size(); ++c) {
        const auto both = [&] {
          return Milliseconds(CLOCK_PROCESS_CPUTIME_ID) + Milliseconds(servers[c].clock);
        };
        const double wall = Milliseconds(CLOCK_MONOTONIC);
        const double processor = both();
        workers[c]->PushPull(update.span(), weights.span());
        if (run >= 0) {
          times[c].wall.values.push_back(Milliseconds(CLOCK_MONOTONIC) - wall);
          times[c].processor.values.push_back(both() - processor);
        }
        const auto pushes = static_cast<float>(contenders[c].direction * (run + kWarmUp + 1));
        for (size_t i = 0; i < model.floats; ++i) {
          CHECK_EQ(weights[i], pushes * update[i]) << contenders[c].name << ", number " << i;
        }
      }
    }
  }
  for (const Server& server : servers) {
    kill(server.pid, SIGKILL);
    waitpid(server.pid, nullptr, 0);
  }
  return times;
}

void Print(const Settings& settings, const std::vector<Contender>& contenders,
           const std::vector<Times>& times, const Sample& raw, const Sample& bare) {
  std::cout << "push + pull of " << settings.megabytes << " MB of float32 in 1 MiB chunks, "
            << settings.runs << " interleaved runs" << (settings.tuned ? "" : ", malloc untuned")
            << "\n"
            << MachineWithTcp() << "\n"
            << std::fixed
            << "                        ms  (quartiles)        GB/s   of raw TCP  of bare ZeroMQ"
               "  processor ms\n";
  for (size_t c = 0; c < contenders.size(); ++c) {
    const Sample& sample = times[c].wall;
    std::cout << std::left << std::setw(22) << contenders[c].name << std::right
              << std::setprecision(1) << std::setw(6) << sample.Median() << "  (" << std::setw(5)
              << sample.Quantile(.25) << " - " << std::setw(5) << sample.Quantile(.75) << ")"
              << std::setprecision(2) << std::setw(9) << 2.0 * settings.megabytes / sample.Median()
              << std::setw(12) << Ratio(raw, sample).Median() << std::setw(12)
              << Ratio(bare, sample).Median() << std::setprecision(1) << std::setw(16)
              << times[c].processor.Median() << "\n";
  }
}

void WriteJson(const Settings& settings, const std::vector<Contender>& contenders,
               const std::vector<Times>& times, const Sample& raw, const Sample& bare) {
  std::ostringstream json;
  json << "{\"benchmark\": \"push_pull\", \"machine\": \"" << MachineWithTcp()
       << "\", \"commit\": \"" << kCommit << "\", \"megabytes\": " << settings.megabytes
       << ", \"runs\": " << settings.runs << ", \"results\": [";
  for (size_t c = 0; c < contenders.size(); ++c) {
    json << (c > 0 ? ", " : "") << "{\"name\": \"" << contenders[c].name
         << "\", \"median_ms\": " << times[c].wall.Median()
         << ", \"lower_quartile_ms\": " << times[c].wall.Quantile(.25)
         << ", \"upper_quartile_ms\": " << times[c].wall.Quantile(.75)
         << ", \"of_raw_tcp\": " << Ratio(raw, times[c].wall).Median()
         << ", \"of_bare_zeromq\": " << Ratio(bare, times[c].wall).Median()
         << ", \"processor_ms\": " << times[c].processor.Median() << "}";
  }
  json << "]}\n";
  if (settings.json == "-") {
    std::cout << json.str();
  } else {
    std::ofstream(settings.json) << json.str();
  }
}

bool ParseSettings(int argc, char** argv, Settings* settings) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    const std::string value = equals == std::string::npos ? "" : argument.substr(equals + 1);
    if (argument.starts_with("--runs=")) {
      settings->runs = std::atoi(value.c_str());
    } else if (argument.starts_with("--megabytes=")) {
      settings->megabytes = std::atoi(value.c_str());
    } else if (argument.starts_with("--only=")) {
      settings->only = value;
    } else if (argument.starts_with("--json=")) {
      settings->json = value;
    } else if (argument == "--untuned") {
      settings->tuned = false;
    } else {
      return false;
    }
  }
  return settings->runs > 0 && settings->megabytes > 0;
}

int Main(int argc, char** argv) {
  Settings settings;
  if (!ParseSettings(argc, argv, &settings)) {
    std::cerr << "usage: push_pull [--runs=N] [--megabytes=N] [--only=TEXT] [--json=FILE or -]"
                 " [--untuned]\n";
    return 64;
  }
  if (settings.tuned) TuneMallocForLargeMessages();
  const Model model{static_cast<size_t>(settings.megabytes) * 250'000};
  std::vector<Contender> contenders = {RawTcpContender(), BareZmqContender()};
  for (const Contender& contender :
       {RawTcpStagedContender(), KumoContender(), KumoKeysContender(), KumoIpcContender(),
        KumoChecksumContender(), KumoShardContender()}) {
    if (contender.name.find(settings.only) != std::string::npos) contenders.push_back(contender);
  }
  const std::vector<Times> times = Measure(contenders, model, settings.runs);
  const Sample& raw = times[0].wall;
  const Sample& bare = times[1].wall;
  Print(settings, contenders, times, raw, bare);
  if (!settings.json.empty()) WriteJson(settings, contenders, times, raw, bare);
  return 0;
}

}  // namespace
}  // namespace kumo::bench

int main(int argc, char** argv) { return kumo::bench::Main(argc, argv); }
