#include "worker/inference/trained_as.h"

#include <algorithm>
#include <string_view>

#include "common/base/printable.h"
#include "common/job/network_changes.h"
#include "common/settings/setting_changes.h"

namespace kumo {
namespace {

// What becomes of a sample on its way into the network.
constexpr std::string_view kInputs[] = {"data.scale", "data.subtract_mean", "data.mean",
                                        "data.deviation", "data.tokens"};

bool IsSaid(const std::string& key, const std::vector<std::string>& sets) {
  return std::ranges::any_of(sets, [&](std::string set) {
    std::erase(set, ' ');  // blanks around the key say nothing
    return set.starts_with(key + "=");
  });
}

// As the command line takes it.
std::string SetOption(const std::string& key, std::string value) {
  std::erase(value, ' ');
  return "--set " + key + "=" + value;
}

}  // namespace

Status CheckSameNetwork(const checkpoint::Manifest& manifest, const std::string& network,
                        const std::vector<std::string>& sets) {
  const std::vector<SettingChange> changes =
      NetworkChanges(manifest.network(), network, NetworkUse::kUse);
  if (changes.empty() || IsSaid("network.file", sets)) return OkStatus();
  return FailedPrecondition("checkpoint " + manifest.name() +
                            " was trained with another network, of the same tensors (then -> "
                            "now): " +
                            DescribeChanges(changes) +
                            "; bring back the network file that it was trained with, or say --set "
                            "network.file=FILE to use it otherwise");
}

Status CheckSameInputs(const checkpoint::Manifest& manifest, const Experiment& experiment,
                       const std::vector<std::string>& sets) {
  std::string differences;
  std::string options;
  for (const SettingChange& change : SettingChanges(manifest.experiment_text(), experiment)) {
    if (std::ranges::count(kInputs, change.key) == 0 || IsSaid(change.key, sets)) continue;
    differences += (differences.empty() ? "" : ", ") + DescribeChange(change);
    options += " " + SetOption(change.key, change.then);
  }
  if (differences.empty()) return OkStatus();
  return FailedPrecondition("checkpoint " + manifest.name() +
                            " was trained with other settings (then -> now): " + differences +
                            "; say" + options + ", or others by --set to use it otherwise");
}

Status CheckSameClasses(const checkpoint::Manifest& manifest, std::span<const std::string> names) {
  const auto& known = manifest.class_names();
  if (known.empty() || names.empty()) return OkStatus();
  const auto [ours, theirs] = std::ranges::mismatch(known, names);
  if (ours == known.end() && theirs == names.end()) return OkStatus();
  const auto shown = [](auto at, auto end) {
    return at == end ? std::string("not there") : "'" + Printable(*at) + "'";
  };
  return FailedPrecondition(
      "checkpoint " + manifest.name() + " calls the classes otherwise: class " +
      std::to_string(ours - known.begin()) + " is " + shown(ours, known.end()) + " there, " +
      shown(theirs, names.end()) + " in the data");
}

}  // namespace kumo
