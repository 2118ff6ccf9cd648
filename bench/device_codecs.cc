// Throughput of a device's codecs relative to its memory, as a trainer calls them: through
// GradientCodec::Encode and GradientCodec::Decode, on arrays in device memory.
//
//   device_codecs [--device cpu|cuda] [--numbers N] [--repetitions R] [--queued K]
//
// The yardstick is Backend::Copy of the float32 numbers (8 bytes per number: read and written).
// Each row runs once per repetition, right after a copy; a run queues K calls and waits once, so
// that starting and waiting do not count. "GB/s" counts float32 numbers, 4 bytes each. The bytes of
// a row are its minimum traffic in device memory: numbers and residual read, residual and code
// written (decoding: code read, numbers written).
//
// On a GPU a call is more than its kernel: Encode also sends the code to pinned host memory, and
// Decode first copies it from host memory through pinned memory. So two more times are measured in
// the same repetition: the transfer of the code's bytes alone ("bus ms": Read into pinned memory,
// Write), and the kernel alone with all data in device memory ("kernel ms"). "share" is the rate at
// which the kernel moves the row's bytes relative to the copy's rate; on the CPU, which has no
// separate kernel, that of the whole call.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "bench/codec_kernels.h"
#include "bench/report.h"
#include "common/base/rng.h"
#include "common/base/version.h"
#include "common/codec/codec.h"
#include "models/devices/devices.h"

namespace kumo {
namespace {

struct Options {
  std::string device = "cpu";
  int64_t numbers = int64_t{64} << 20;
  int repetitions = 11;
  int queued = 10;
};

// Ends the process: a benchmark has no caller to report errors to.
void Take(const Status& status) {
  if (status.ok()) return;
  std::cerr << "device_codecs: " << status.message() << '\n';
  std::exit(1);
}

// A timed operation. All times are per call, in seconds.
struct Row {
  std::string name;
  double bytes = 0;  // minimum traffic in device memory
  bool encodes = false;
  std::function<void()> call;    // queues one call
  std::function<void()> bus;     // its bus transfer alone; null: none
  std::function<void()> kernel;  // queues its kernel alone; null: none
  std::vector<double> seconds;   // by repetition, like the vectors below
  std::vector<double> bus_seconds;
  std::vector<double> kernel_seconds;  // the call, where there is no kernel
  std::vector<double> copy_seconds;    // of the copy right before it
};

class Bench {
 public:
  Bench(const Options& options, std::unique_ptr<Backend> backend)
      : options_(options),
        backend_(std::move(backend)),
        x_(*backend_, options.numbers, "numbers"),
        residual_(*backend_, options.numbers, "residual"),
        to_(*backend_, options.numbers, "decoded numbers"),
        most_(static_cast<size_t>(options.numbers) * sizeof(float)),
        code_(backend_->MakeCode(most_)) {
    Take(backend_->Wait());
    // Normal numbers are drawn once and repeated: drawing all would take longer than the benchmark.
    Rng rng(1, RngPurpose::kTest);
    std::vector<float> numbers(static_cast<size_t>(options.numbers));
    for (size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = i < (1 << 16) ? rng.NextNormal() : numbers[i - (1 << 16)];
    }
    backend_->Write(numbers.data(), most_, x_.data());
    if (options.device != "cpu") {
      Result<std::unique_ptr<CodecKernels>> kernels = MakeCodecKernels(numbers);
      Take(kernels.status());
      kernels_ = std::move(kernels).value();
    }
    for (const Codec* codec : AllCodecs()) AddRows(codec);
  }

  const std::vector<Row>& rows() const { return rows_; }
  const Backend& backend() const { return *backend_; }
  double copied_bytes() const { return 2.0 * static_cast<double>(most_); }

  void Measure() {
    const auto copy = [this] { backend_->Copy(x_.data(), most_, to_.data()); };
    for (int r = -1; r < options_.repetitions; ++r) {  // the first is for warming up
      for (Row& row : rows_) {
        const double copied = SecondsOf(copy);
        const double bus = row.bus ? SecondsOf(row.bus) : 0;
        if (!row.encodes) Prepare(row);
        const double seconds = SecondsOf(row.call);
        const double kernel = row.kernel ? SecondsOf(row.kernel) : 0;
        if (r < 0) continue;
        row.seconds.push_back(seconds);
        row.kernel_seconds.push_back(kernel > 0 ? kernel : seconds);
        row.bus_seconds.push_back(bus);
        row.copy_seconds.push_back(copied);
      }
    }
  }

 private:
  void Wait() {
    Take(backend_->Wait());
    if (kernels_) Take(kernels_->Wait());
  }
  double SecondsOf(const std::function<void()>& call) {
    Wait();
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < options_.queued; ++i) call();
    Wait();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    return taken.count() / options_.queued;
  }

  void Encode(const Codec* codec, bool feedback) {
    encoding_.codec = codec;
    encoding_.x = x_.data();
    encoding_.residual = feedback ? residual_.data() : nullptr;
    encoding_.n = options_.numbers;
    encoding_.code = Code(codec);
    backend_->Encode({&encoding_, 1});
  }
  std::span<std::byte> Code(const Codec* codec) {
    return {code_.get(), codec->EncodedBytes(static_cast<size_t>(options_.numbers))};
  }
  // What a row decodes is of its codec.
  void Prepare(const Row& row) {
    for (const Codec* codec : AllCodecs()) {
      if (!row.name.starts_with(std::string(codec->name()) + " ")) continue;
      Encode(codec, false);
      if (kernels_) kernels_->Encode(*codec, false);
    }
    Wait();
  }

  void AddRows(const Codec* codec) {
    const std::string name(codec->name());
    const auto n = static_cast<double>(options_.numbers);
    const auto coded = static_cast<double>(Code(codec).size());
    std::function<void()> out;
    std::function<void()> in;
    if (options_.device != "cpu") {  // `to_` stands for the packed bytes
      out = [this, codec] { Take(backend_->Read(to_.data(), Code(codec).size(), code_.get())); };
      in = [this, codec] { backend_->Write(code_.get(), Code(codec).size(), to_.data()); };
    }
    const auto add = [&](const std::string& what, double bytes, bool encodes,
                         std::function<void()> call, std::function<void()> kernel) {
      Row row;
      row.name = name + what;
      row.bytes = bytes;
      row.encodes = encodes;
      row.call = std::move(call);
      row.bus = encodes ? out : in;
      if (kernels_) row.kernel = std::move(kernel);
      rows_.push_back(std::move(row));
    };
    const auto add_encoding = [&](const std::string& what, double bytes, bool feedback) {
      add(
          what, bytes, true, [this, codec, feedback] { Encode(codec, feedback); },
          [this, codec, feedback] { kernels_->Encode(*codec, feedback); });
    };
    if (!codec->lossless()) add_encoding(" encode + feedback", 12 * n + coded, true);
    add_encoding(" encode", 4 * n + coded, false);
    add(
        " decode", 4 * n + coded, false,
        [this, codec] { backend_->Decode(*codec, Code(codec), options_.numbers, to_.data()); },
        [this, codec] { kernels_->Decode(*codec); });
  }

  const Options options_;
  std::unique_ptr<Backend> backend_;
  DeviceArray<float> x_;
  DeviceArray<float> residual_;
  DeviceArray<float> to_;
  const size_t most_;  // bytes of the numbers: no code is longer
  std::shared_ptr<std::byte> code_;
  std::unique_ptr<CodecKernels> kernels_;  // null on the CPU
  GradientCodec::Encoding encoding_;       // the last one
  std::vector<Row> rows_;
};

// The row's rate over the copy's, repetition by repetition.
Spread ShareOf(const Row& row, double copied_bytes) {
  std::vector<double> shares;
  for (size_t r = 0; r < row.seconds.size(); ++r) {
    shares.push_back(row.bytes / row.kernel_seconds[r] / (copied_bytes / row.copy_seconds[r]));
  }
  return SpreadOf(shares);
}

std::string Rates(double bytes, const std::vector<double>& seconds) {
  const Spread spread = SpreadOf(seconds);
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), "%.1f (%.1f - %.1f)", bytes / spread.median * 1e-9,
                bytes / spread.high * 1e-9, bytes / spread.low * 1e-9);
  return text.data();
}

void Print(const Bench& bench, const Options& options) {
  const double floats = 4.0 * static_cast<double>(options.numbers);
  std::vector<double> copies;
  for (const Row& row : bench.rows()) {
    copies.insert(copies.end(), row.copy_seconds.begin(), row.copy_seconds.end());
  }
  std::printf("%s, %s, commit %s; %lld numbers, %d repetitions of %d calls, median (low - high)\n",
              bench.backend().name().c_str(), Machine().c_str(), kCommit.data(),
              static_cast<long long>(options.numbers), options.repetitions, options.queued);
  std::printf("%-24s %s GB/s read and written\n", "copy within the device",
              Rates(bench.copied_bytes(), copies).c_str());
  std::printf("%-24s %-26s %8s %8s %9s  %s\n", "", "GB/s of float32", "ms", "bus ms", "kernel ms",
              "share of the copy's rate");
  std::string json;
  for (const Row& row : bench.rows()) {
    const Spread share = ShareOf(row, bench.copied_bytes());
    const Spread seconds = SpreadOf(row.seconds);
    const double bus = SpreadOf(row.bus_seconds).median;
    const double kernel = SpreadOf(row.kernel_seconds).median;
    std::printf("%-24s %-26s %8.3f %8.3f %9.3f  %.2f (%.2f - %.2f)\n", row.name.c_str(),
                Rates(floats, row.seconds).c_str(), seconds.median * 1e3, bus * 1e3, kernel * 1e3,
                share.median, share.low, share.high);
    std::array<char, 256> text;
    std::snprintf(text.data(), text.size(),
                  "%s{\"name\": \"%s\", \"gb_per_s\": [%.2f, %.2f, %.2f], \"bus_ms\": %.4f, "
                  "\"kernel_gb_per_s\": %.2f, \"share\": %.4f}",
                  json.empty() ? "" : ", ", row.name.c_str(), floats / seconds.high * 1e-9,
                  floats / seconds.median * 1e-9, floats / seconds.low * 1e-9, bus * 1e3,
                  floats / kernel * 1e-9, share.median);
    json += text.data();
  }
  std::printf(
      "{\"benchmark\": \"device_codecs\", \"machine\": \"%s\", \"device\": \"%s\", "
      "\"commit\": \"%s\", \"copy_gb_per_s\": %.1f, \"rows\": [%s]}\n",
      Machine().c_str(), bench.backend().name().c_str(), kCommit.data(),
      bench.copied_bytes() / SpreadOf(copies).median * 1e-9, json.c_str());
}

Options Parse(int argc, char** argv) {
  Options options;
  bool good = argc % 2 == 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string key = argv[i];
    if (key == "--device") {
      options.device = argv[i + 1];
    } else if (key == "--numbers") {
      options.numbers = std::atoll(argv[i + 1]);
    } else if (key == "--repetitions") {
      options.repetitions = std::atoi(argv[i + 1]);
    } else if (key == "--queued") {
      options.queued = std::atoi(argv[i + 1]);
    } else {
      good = false;
    }
  }
  if (!good || options.numbers < 1 || options.repetitions < 1 || options.queued < 1) {
    std::cerr << "usage: device_codecs [--device cpu|cuda] [--numbers N] [--repetitions R] "
                 "[--queued K]\n";
    std::exit(64);
  }
  return options;
}

int Main(int argc, char** argv) {
  const Options options = Parse(argc, argv);
  const std::optional<Device> device = FindDevice(options.device);
  if (!device) {
    std::cerr << "device_codecs: --device " << options.device << " is no device\n";
    return 2;
  }
  Experiment::Network settings;
  settings.device = *device;
  Result<std::unique_ptr<Backend>> backend = MakeBackend(settings);
  Take(backend.status());
  Bench bench(options, std::move(backend).value());
  bench.Measure();
  Print(bench, options);
  return 0;
}

}  // namespace
}  // namespace kumo

int main(int argc, char** argv) { return kumo::Main(argc, argv); }
