// Device pool: which devices the runs of a sweep use that run at the same time. One thread.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace kumo {

// A device that is listed twice counts as two.
class DevicePool {
 public:
  explicit DevicePool(const std::vector<std::string>& devices) {
    for (const std::string& device : devices) devices_.push_back({device, {}});
  }

  // A device for each of a run's workers: free ones first, in the order of the list, then those
  // with the fewest workers. Empty if the pool is.
  std::vector<std::string> Take(const std::string& run, int workers) {
    std::vector<std::string> taken;
    for (int i = 0; i < workers && !devices_.empty(); ++i) {
      const auto uses = [](const Shared& device) { return device.runs.size(); };
      const auto least = std::ranges::min_element(devices_, {}, uses);
      least->runs.push_back(run);
      taken.push_back(least->device);
    }
    return taken;
  }

  void GiveBack(const std::string& run) {
    for (Shared& device : devices_) std::erase(device.runs, run);
  }

 private:
  struct Shared {
    std::string device;
    std::vector<std::string> runs;  // of each worker on it
  };
  std::vector<Shared> devices_;
};

}  // namespace kumo
