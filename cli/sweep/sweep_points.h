// Sweep points: the settings of each run of a sweep, from the lists and ranges on the command line
// of `kumo sweep`.
//
//   schedule.learning_rate=.01,.03,.1        a list
//   schedule.milestones=5,10;8,16            a list of a setting that is a list itself
//   schedule.learning_rate=1e-4..1e-1:log    a range (uniform, or with :log uniform in the
//   logarithm)
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status.h"

namespace kumo {

// The values that a setting takes in a sweep.
struct SweepAxis {
  std::string key;
  std::vector<std::string> values;  // empty: a range
  double low = 0;
  double high = 0;
  bool logarithmic = false;
  bool whole = false;  // integers

  bool IsRange() const { return values.empty(); }
};

// InvalidArgument names the fault: an unknown setting, a value that it does not take, a range of a
// setting that is no number.
Result<SweepAxis> ParseAxis(std::string_view text);

struct SweepPoint {
  std::vector<std::pair<std::string, std::string>> settings;  // key and value
  // "learning_rate=0.01,minibatch=32", for a folder: the settings in which points differ.
  std::string name;

  std::vector<std::string> Sets() const;  // "schedule.learning_rate=0.01"
};

inline constexpr int64_t kMostPoints = 10'000;

// All combinations, the last axis varying fastest. InvalidArgument for a range, for a key twice,
// and for more than kMostPoints.
Result<std::vector<SweepPoint>> GridOf(std::span<const SweepAxis> axes);
// `count` points of random values; the same seed draws the same points, and more points go on from
// fewer. A point that was drawn before is left out. InvalidArgument for a key twice.
Result<std::vector<SweepPoint>> RandomPoints(std::span<const SweepAxis> axes, int count,
                                             uint64_t seed);
// The points of a text: a line for each, of "key=value" separated by blanks; '#' begins a comment.
// InvalidArgument names the line.
Result<std::vector<SweepPoint>> ListedPoints(std::string_view text);

}  // namespace kumo
