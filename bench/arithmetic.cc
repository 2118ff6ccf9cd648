// Throughput of codecs, aggregation and update rules relative to the memory limit, on one core.
//
//   arithmetic [--instruction-set LEVEL] [--only TEXT] [--numbers N] [--repetitions R] [--json
//   FILE]
//
// LEVEL is a word of network.instruction_set: x86-64-v3 measures the kernels of a machine without
// AVX-512 on one that has it. With --only, rows whose names lack TEXT are left out.
//
// Two yardsticks run interleaved with everything else, once per repetition: `a += b` over float32
// arrays (12 bytes per number) and memcpy of a float32 array (8 bytes per number). The bytes of a
// row are the minimum traffic: each input read once, each output written once, each state array
// read and written once; cache lines that a plain store fetches first are not counted on either
// side. Time is the thread's processor time. For additions and updates the table shows the rate
// relative to a += b (1 is the memory limit); for codecs the rate relative to memcpy, and the time
// relative to a memcpy of the float32 numbers. Closing a chunk of 1, 2 and 4 float32 contributions
// with block momentum is compared with a single pass over the same arrays, written by hand. Ratios
// are taken within a repetition; the table shows median and quartiles.
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "bench/report.h"
#include "bench/take.h"
#include "bench/yardstick_kernel.h"
#include "common/base/buffer.h"
#include "common/base/instruction_set.h"
#include "common/base/rng.h"
#include "common/base/version.h"
#include "common/codec/codec.h"
#include "server/rules/aggregate.h"
#include "server/rules/difference.h"

namespace kumo {
namespace {

constexpr size_t kChunk = 256 * 1024;  // numbers: 1 MiB of float32
constexpr size_t kMostPartitions = 4;

constexpr const char* kAdd = "a += b";
constexpr const char* kCopy = "memcpy";

struct Row {
  std::string name;
  double bytes = 0;       // minimum traffic of one run
  std::string yardstick;  // the row that it is compared with
  std::function<void()> run;
  std::vector<double> seconds;
};

struct Quartiles {
  double low, median, high;
};

Quartiles QuartilesOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return {values[n / 4], values[n / 2], values[n - 1 - n / 4]};
}

// Processor time of this thread, so that other users of the machine do not count.
double ThreadSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double SecondsOf(const std::function<void()>& run) {
  const double begin = ThreadSeconds();
  run();
  return ThreadSeconds() - begin;
}

void FillNormal(std::span<float> numbers) {
  // Normal numbers are drawn once and repeated: drawing 16 million takes longer than the benchmark.
  Rng rng(1, RngPurpose::kTest);
  const size_t drawn = std::min<size_t>(numbers.size(), 1 << 16);
  for (size_t i = 0; i < drawn; ++i) numbers[i] = rng.NextNormal();
  for (size_t i = drawn; i < numbers.size(); ++i) numbers[i] = numbers[i - drawn];
}

// All arrays of the benchmark; rows borrow them.
class Arena {
 public:
  explicit Arena(size_t numbers) : n_(numbers) {
    for (auto& array : floats_) {
      array = Buffer<float>(n_);
      FillNormal(array.span());
    }
    for (float& x : floats_[5].span()) x *= x;  // Adam's mean square
    for (auto& bytes : encoded_) bytes = Buffer<std::byte>(n_ * 4);
  }

  size_t n() const { return n_; }
  std::span<float> floats(int i) { return floats_[i].span(); }
  std::span<std::byte> encoded(size_t i) { return encoded_[i].span(); }

 private:
  size_t n_;
  Buffer<float> floats_[6];
  Buffer<std::byte> encoded_[kMostPartitions];
};

// Calls use(first number, count, start of the chunk's encoding) for each chunk.
template <typename Use>
void ForEachChunk(const Codec& codec, size_t n, Use use) {
  size_t at = 0;
  for (size_t first = 0; first < n; first += kChunk) {
    const size_t count = std::min(kChunk, n - first);
    use(first, count, at);
    at += codec.EncodedBytes(count);
  }
}

void EncodeAll(const Codec& codec, Arena& arena, bool feedback, size_t to) {
  ForEachChunk(codec, arena.n(), [&](size_t first, size_t count, size_t at) {
    const auto residual = feedback ? arena.floats(1).subspan(first, count) : std::span<float>();
    const auto out = arena.encoded(to).subspan(at, codec.EncodedBytes(count));
    CHECK_EQ(codec.Encode(arena.floats(0).subspan(first, count), residual, out), -1);
  });
}

void AddCodecRows(const Codec& codec, Arena& arena, std::vector<Row>* rows) {
  const double n = static_cast<double>(arena.n());
  const double coded = static_cast<double>(codec.EncodedBytes(arena.n()));
  const std::string name(codec.name());
  if (!codec.lossless()) {
    rows->push_back({name + " encode + feedback",
                     n * 12 + coded,
                     kCopy,
                     [&codec, &arena] { EncodeAll(codec, arena, true, 0); },
                     {}});
  }
  rows->push_back({name + " encode",
                   n * 4 + coded,
                   kCopy,
                   [&codec, &arena] { EncodeAll(codec, arena, false, 0); },
                   {}});
  rows->push_back({name + " decode",
                   n * 4 + coded,
                   kCopy,
                   [&codec, &arena] {
                     ForEachChunk(codec, arena.n(), [&](size_t first, size_t count, size_t at) {
                       codec.Decode(arena.encoded(0).subspan(at, codec.EncodedBytes(count)), count,
                                    0, arena.floats(2).subspan(first, count));
                     });
                   },
                   {}});
  rows->push_back({name + " decode-add",
                   n * 8 + coded,
                   kAdd,
                   [&codec, &arena] {
                     ForEachChunk(codec, arena.n(), [&](size_t first, size_t count, size_t at) {
                       codec.DecodeAdd(arena.encoded(0).subspan(at, codec.EncodedBytes(count)),
                                       count, 0, 0.5f, arena.floats(2).subspan(first, count));
                     });
                   },
                   {}});
  rows->push_back({name + " check",
                   coded,
                   kCopy,
                   [&codec, &arena] {
                     ForEachChunk(codec, arena.n(), [&](size_t, size_t count, size_t at) {
                       const auto bytes = arena.encoded(0).subspan(at, codec.EncodedBytes(count));
                       CHECK(codec.Check(bytes, count).ok());
                     });
                   },
                   {}});
}

// One round of a shard: contributions added and applied chunk by chunk.
void AggregateAll(const Codec& codec, const Rule& rule, size_t partitions, Arena& arena) {
  const RoundInfo info = {.learning_rate = 1e-6f,
                          .block_rate = 1e-6f,
                          .samples = static_cast<int64_t>(3200 * partitions),
                          .partitions = static_cast<int>(partitions)};
  ForEachChunk(codec, arena.n(), [&](size_t first, size_t count, size_t at) {
    CodedContribution contributions[kMostPartitions];
    for (size_t i = 0; i < partitions; ++i) {
      contributions[i] = {3200, &codec, arena.encoded(i).subspan(at, codec.EncodedBytes(count))};
    }
    const bool apart = rule.keeps_weights_apart();
    AggregateAndApply(rule, info, nullptr, std::span(contributions).first(partitions),
                      {.n = count,
                       .start = arena.floats(0).data() + first,
                       .next_start = arena.floats(1).data() + first,
                       .weights = apart ? arena.floats(3).data() + first : nullptr,
                       .next_weights = apart ? arena.floats(4).data() + first : nullptr,
                       .slots = {arena.floats(2).data() + first, arena.floats(5).data() + first},
                       .stream = true});
  });
}

// Numbers 0 to number 1, whose copy goes to number 2.
void EncodeDifferences(const Codec& codec, Arena& arena) {
  ForEachChunk(codec, arena.n(), [&](size_t first, size_t count, size_t at) {
    const auto bytes = arena.encoded(0).subspan(at, codec.EncodedBytes(count));
    CHECK_EQ(EncodeDifference(codec, {}, arena.floats(0).subspan(first, count),
                              arena.floats(1).subspan(first, count),
                              arena.floats(2).subspan(first, count), bytes, true),
             -1);
  });
}

// Bytes per number of a rule's state and weights: start or weights read, the next arrays written,
// each slot both. With Nesterov's separate weights the old start is not read.
double RuleBytes(const Rule& rule) {
  return 4.0 + 4.0 + (rule.keeps_weights_apart() ? 4.0 : 0.0) + 8.0 * rule.slots();
}

void AddAggregationRow(const std::string& name, const std::string& yardstick, const Codec& codec,
                       const Rule& rule, size_t partitions, Arena& arena, std::vector<Row>* rows) {
  const double coded =
      static_cast<double>(partitions) * static_cast<double>(codec.EncodedBytes(arena.n()));
  rows->push_back(
      {name,
       static_cast<double>(arena.n()) * RuleBytes(rule) + coded,
       yardstick,
       [&codec, &rule, partitions, &arena] { AggregateAll(codec, rule, partitions, arena); },
       {}});
}

// Chunk by chunk, so that a row and its yardstick go through the arrays in the same order.
void CloseAllByHand(Isa isa, int partitions, Arena& arena) {
  for (size_t first = 0; first < arena.n(); first += kChunk) {
    ClosingPass pass = {.contributions = {},
                        .count = partitions,
                        .weight = 3200.0f,
                        .eta = 0.9f,
                        .gain = 1e-10f,
                        .start = arena.floats(0).data() + first,
                        .velocity = arena.floats(2).data() + first,
                        .next = arena.floats(1).data() + first,
                        .n = std::min(kChunk, arena.n() - first) / 16 * 16};
    for (int i = 0; i < partitions; ++i) {
      pass.contributions[i] =
          reinterpret_cast<const float*>(arena.encoded(static_cast<size_t>(i)).data()) + first;
    }
    KUMO_AT_ISA(isa, kYardstick).close_chunk(pass);
  }
}

void AddClosingRows(Isa isa, const Codec& codec, const Rule& rule, Arena& arena,
                    std::vector<Row>* rows) {
  for (const int partitions : {1, 2, 4}) {
    const std::string contributions = std::to_string(partitions) + " x fp32";
    const std::string by_hand = contributions + " by hand";
    rows->push_back({by_hand,
                     static_cast<double>(arena.n()) * (RuleBytes(rule) + 4.0 * partitions),
                     kAdd,
                     [isa, partitions, &arena] { CloseAllByHand(isa, partitions, arena); },
                     {}});
    AddAggregationRow(contributions + ", block momentum", by_hand, codec, rule,
                      static_cast<size_t>(partitions), arena, rows);
  }
}

struct Options {
  Isa isa = DetectIsa();
  std::string only;
  size_t numbers = size_t{16} << 20;
  int repetitions = 11;
  std::string json;
};

std::string MachineWith(Isa isa) { return Machine() + ", kernels for " + std::string(NameOf(isa)); }

class Report {
 public:
  Report(const Options& options, std::vector<Row>* rows) : options_(options), rows_(*rows) {}

  void PrintTable() const {
    std::printf("%s, commit %s; %zu numbers (%zu MiB of float32), %d repetitions, one thread\n\n",
                MachineWith(options_.isa).c_str(), kCommit.data(), options_.numbers,
                options_.numbers >> 18, options_.repetitions);
    std::printf("%-28s %8s %8s   %s\n", "", "GB/s", "ms", "share of the yardstick's rate");
    for (const Row& row : rows_) {
      const Quartiles share = ShareOf(row);
      const double seconds = QuartilesOf(row.seconds).median;
      std::printf("%-28s %8.1f %8.2f   %.2f of %s (%.2f .. %.2f)", row.name.c_str(),
                  row.bytes / seconds * 1e-9, seconds * 1e3, share.median, row.yardstick.c_str(),
                  share.low, share.high);
      if (row.yardstick == kCopy) std::printf(", %.2f x its time", TimeOverCopy(row).median);
      std::printf("\n");
    }
  }

  std::string Json() const {
    std::ostringstream json;
    json << "{\"benchmark\": \"arithmetic\", \"machine\": \"" << MachineWith(options_.isa)
         << "\", \"commit\": \"" << kCommit << "\", \"numbers\": " << options_.numbers
         << ", \"repetitions\": " << options_.repetitions << ", \"rows\": [";
    for (size_t i = 0; i < rows_.size(); ++i) {
      const Row& row = rows_[i];
      const Quartiles share = ShareOf(row);
      json << (i == 0 ? "" : ", ") << "{\"name\": \"" << row.name
           << "\", \"bytes\": " << static_cast<int64_t>(row.bytes)
           << ", \"seconds\": " << QuartilesOf(row.seconds).median << ", \"yardstick\": \""
           << row.yardstick << "\", \"share\": " << share.median << ", \"share_low\": " << share.low
           << ", \"share_high\": " << share.high << "}";
    }
    json << "]}\n";
    return json.str();
  }

 private:
  const Row& Named(const std::string& name) const {
    const auto found =
        std::ranges::find_if(rows_, [&name](const Row& row) { return row.name == name; });
    CHECK(found != rows_.end()) << "no row " << name;
    return *found;
  }
  Quartiles ShareOf(const Row& row) const {
    const Row& yardstick = Named(row.yardstick);
    std::vector<double> shares;
    for (size_t r = 0; r < row.seconds.size(); ++r) {
      shares.push_back(row.bytes / row.seconds[r] / (yardstick.bytes / yardstick.seconds[r]));
    }
    return QuartilesOf(shares);
  }
  Quartiles TimeOverCopy(const Row& row) const {
    const Row& copy = Named(kCopy);
    std::vector<double> times;
    for (size_t r = 0; r < row.seconds.size(); ++r) {
      times.push_back(row.seconds[r] / copy.seconds[r]);
    }
    return QuartilesOf(times);
  }

  const Options& options_;
  const std::vector<Row>& rows_;
};

void AddYardsticks(Isa isa, Arena& arena, std::vector<Row>* rows) {
  const double n = static_cast<double>(arena.n());
  rows->push_back({kAdd,
                   n * 12,
                   kAdd,
                   [isa, &arena] {
                     KUMO_AT_ISA(isa, kYardstick)
                         .add_into(arena.floats(3).data(), arena.floats(4).data(), arena.n());
                   },
                   {}});
  rows->push_back(
      {kCopy,
       n * 8,
       kCopy,
       [&arena] { std::memcpy(arena.floats(4).data(), arena.floats(5).data(), arena.n() * 4); },
       {}});
}

void Measure(int repetitions, std::vector<Row>* rows) {
  for (int r = -1; r < repetitions; ++r) {  // the first one is the warm-up
    for (Row& row : *rows) {
      const double seconds = SecondsOf(row.run);
      if (r >= 0) row.seconds.push_back(seconds);
    }
  }
}

int Run(const Options& options) {
  Arena arena(options.numbers);
  const Isa isa = options.isa;
  const auto cbm_rule = MakeBlockRule({}, 2, 6400, isa);
  const auto nesterov_rule = MakeBlockRule({.nesterov = true}, 2, 6400, isa);
  const auto adam_rule = MakeGradientRule({.type = OptimiserType::kAdam}, isa);
  const auto average_rule = MakeAverageRule(isa);

  std::vector<Row> rows;
  AddYardsticks(isa, arena, &rows);
  std::vector<std::pair<const Codec*, std::vector<Row>>> groups;
  for (const Codec* codec : AllCodecs(isa)) {
    std::vector<Row> group;
    // The contributions of this codec, before its rows are timed.
    group.push_back({"",
                     0,
                     kCopy,
                     [codec, &arena] {
                       for (size_t i = 0; i < kMostPartitions; ++i) {
                         EncodeAll(*codec, arena, false, i);
                       }
                     },
                     {}});
    AddCodecRows(*codec, arena, &group);
    if (!codec->lossless() && !codec->codes_weights()) {
      group.push_back({std::string(codec->name()) + " difference",
                       static_cast<double>(arena.n()) * 12.0 +
                           static_cast<double>(codec->EncodedBytes(arena.n())),
                       kAdd,
                       [codec, &arena] { EncodeDifferences(*codec, arena); },
                       {}});
    }
    const std::string two = "2 x " + std::string(codec->name()) + " + ";
    AddAggregationRow(two + "block momentum", kAdd, *codec, *cbm_rule, 2, arena, &group);
    AddAggregationRow(two + "its Nesterov", kAdd, *codec, *nesterov_rule, 2, arena, &group);
    AddAggregationRow(two + "adam", kAdd, *codec, *adam_rule, 2, arena, &group);
    AddAggregationRow(two + "average", kAdd, *codec, *average_rule, 2, arena, &group);
    if (codec->id() == CodecId::kFp32) AddClosingRows(isa, *codec, *cbm_rule, arena, &group);
    std::vector<std::string> kept;  // rows asked for, and their yardsticks
    for (const Row& row : group) {
      if (row.name.find(options.only) == std::string::npos) continue;
      kept.insert(kept.end(), {row.name, row.yardstick});
    }
    const auto is_left_out = [&kept](const Row& row) {
      return !row.name.empty() && std::ranges::find(kept, row.name) == kept.end();
    };
    std::erase_if(group, is_left_out);
    if (group.size() == 1) continue;  // only the preparation is left
    for (Row& row : group) rows.push_back(std::move(row));
  }
  Measure(options.repetitions, &rows);
  std::erase_if(rows, [](const Row& row) { return row.name.empty(); });
  const Report report(options, &rows);
  report.PrintTable();
  if (options.json.empty()) {
    std::cout << "\n" << report.Json();
  } else if (!(std::ofstream(options.json) << report.Json())) {
    std::cerr << "cannot write " << options.json << "\n";
    return 1;
  }
  return 0;
}

Result<Isa> ParseLevel(const std::string& word) {
  const std::optional<InstructionSet> level = FindChoice<InstructionSet>(word);
  if (!level) {
    return InvalidArgument("--instruction-set " + word +
                           ": no such level; there are: " + ChoiceWords<InstructionSet>());
  }
  return LevelFor(*level);
}

Result<Options> ParseOptions(std::span<char* const> arguments) {
  Options options;
  for (size_t i = 0; i < arguments.size(); i += 2) {
    const std::string key = arguments[i];
    if (i + 1 == arguments.size()) return InvalidArgument(key + ": a value is missing");
    const char* const value = arguments[i + 1];
    if (key == "--instruction-set") {
      KUMO_ASSIGN_OR_RETURN(options.isa, ParseLevel(value));
    } else if (key == "--only") {
      options.only = value;
    } else if (key == "--numbers") {
      options.numbers = std::strtoull(value, nullptr, 10);
    } else if (key == "--repetitions") {
      options.repetitions = std::atoi(value);
    } else if (key == "--json") {
      options.json = value;
    } else {
      return InvalidArgument("unknown option " + key);
    }
  }
  if (options.numbers == 0) return InvalidArgument("--numbers must be at least 1");
  if (options.repetitions < 1) return InvalidArgument("--repetitions must be at least 1");
  return options;
}

}  // namespace
}  // namespace kumo

int main(int argc, char** argv) {
  const auto options =
      kumo::ParseOptions(std::span<char* const>(argv + 1, static_cast<size_t>(argc - 1)));
  if (options.ok()) return kumo::Run(options.value());
  std::cerr << options.status().message()
            << "\nusage: arithmetic [--instruction-set LEVEL] [--only TEXT] [--numbers N]"
               " [--repetitions R] [--json FILE]\n";
  return 64;
}
