#include "bench/layer_times.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "bench/take.h"
#include "bench/yardstick_kernel.h"
#include "common/base/instruction_set.h"
#include "models/network.h"

namespace kumo {
namespace {

struct Times {
  double forward = 0;
  double backward = 0;
};

// Maximum products per second of one thread, best of several tries.
double MostProducts(Isa isa, bool cpu_time) {
  const YardstickKernels& yardstick = KUMO_AT_ISA(isa, kYardstick);
  constexpr int64_t kRounds = 1 << 21;
  double most = 0;
  for (int i = 0; i < 5; ++i) {
    const double start = Now(cpu_time);
    volatile const float kept = yardstick.multiply_add(kRounds, 1e-3f);
    static_cast<void>(kept);
    const double products = static_cast<double>(kRounds) * yardstick.floats_per_round;
    most = std::max(most, products / (Now(cpu_time) - start));
  }
  return most;
}

}  // namespace

void PrintLayerTimes(const Work& work, double seconds, bool cpu_time) {
  Trainer trainer(work, Device());
  trainer.Measure(std::min(0.3, seconds), cpu_time);
  std::map<std::string, Times> times;
  double* running = nullptr;  // the counter that is charged since `since`
  double since = 0;
  const auto turn_to = [&](double* next) {
    const double now = Now(cpu_time);
    if (running != nullptr) *running += now - since;
    running = next;
    since = now;
  };
  trainer.net().Watch([&](const std::string& layer, bool backward) {
    turn_to(backward ? &times[layer].backward : &times[layer].forward);
  });
  const double most = MostProducts(Take(LevelFor(work.instruction_set)), cpu_time);
  const double start = Now(cpu_time);
  int steps = 0;
  while (steps < 3 || Now(cpu_time) - start < seconds) {
    trainer.Step();
    turn_to(nullptr);
    ++steps;
  }
  const double whole = Now(cpu_time) - start;
  trainer.net().Watch(nullptr);

  const Graph graph = Take(PlanNetwork(work.network));
  std::printf("%s, minibatches of %d: %.2f ms a step by %s; %.1f GFLOP/s at most\n", work.name,
              work.batch, 1e3 * whole / steps, cpu_time ? "CPU time" : "wall time", 2e-9 * most);
  std::printf("%-16s %-22s %12s %13s %6s %15s\n", "layer", "kind", "forward (ms)", "backward (ms)",
              "time", "of all products");
  const auto row = [&](const std::string& name, const char* kind, double products) {
    const Times& of = times[name];
    std::printf("%-16s %-22s %12.3f %13.3f %6.2f", name.c_str(), kind, 1e3 * of.forward / steps,
                1e3 * of.backward / steps, (of.forward + of.backward) / whole);
    const auto share = [&](double factor, double time) {
      if (products > 0 && time > 0) {
        std::printf(" %7.2f", factor * products * work.batch * steps / time / most);
      }
    };
    share(1, of.forward);
    share(name == graph.nodes[0].name ? 1 : 2,
          of.backward);  // the input's gradient is not computed
    std::printf("\n");
  };
  for (const Node& node : graph.nodes) {
    row(node.name, node.kind, static_cast<double>(ProductsOf(node.spec)));
  }
  for (const LossNode& loss : graph.losses) row(loss.name, loss.kind, 0);
}

}  // namespace kumo
