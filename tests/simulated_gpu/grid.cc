#include "tests/simulated_gpu/grid.h"

#include <ucontext.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <glog/logging.h>

#include "tests/simulated_gpu/device_language.h"
#include "tests/simulated_gpu/runtime.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

constinit thread_local uint3 threadIdx{};
constinit thread_local uint3 blockIdx{};
constinit thread_local dim3 blockDim{};
constinit thread_local dim3 gridDim{};

namespace kumo::simulated_gpu {
namespace {

constexpr size_t kStackBytes = size_t{256} << 10;
constexpr unsigned kMostThreads = 1024;

// A stack that a device's thread runs on; the scheduler's is the host thread's own.
struct Fiber {
  ucontext_t context{};
  std::unique_ptr<std::byte[]> memory;
  const void* bottom = nullptr;
  size_t bytes = 0;
};

// The address sanitizer has to be told when the stack changes.
void Switch(Fiber* from, Fiber* to) {
#if defined(__SANITIZE_ADDRESS__)
  void* saved = nullptr;
  __sanitizer_start_switch_fiber(&saved, to->bottom, to->bytes);
  CHECK_EQ(swapcontext(&from->context, &to->context), 0);
  __sanitizer_finish_switch_fiber(saved, nullptr, nullptr);
#else
  CHECK_EQ(swapcontext(&from->context, &to->context), 0);
#endif
}

class Block;
thread_local Block* running = nullptr;

class Block {
 public:
  Block(const Kernel& kernel, dim3 shape)
      : kernel_(kernel), shape_(shape), threads_(shape.x * shape.y * shape.z) {}

  void Run();

  void Barrier(const std::source_location& where);
  uint64_t Exchange(uint32_t mask, uint64_t value, int source, bool ballot,
                    const std::source_location& where);
  int lane() const { return static_cast<int>(current_ % kWarp); }

 private:
  enum class State { kNew, kRuns, kAtBarrier, kAtExchange, kEnded };
  struct Thread {
    State state = State::kNew;
    Fiber* fiber = nullptr;  // while it has begun and not ended
    std::source_location where;
    // Of the exchange that it waits in.
    uint32_t mask = 0;
    int source = 0;
    bool ballot = false;
    uint64_t value = 0;
    uint64_t received = 0;
  };

  static void Main();  // of a fiber
  void RunNewThreads();
  void Wait();  // until another thread has woken the one that runs
  void Wake(size_t thread);
  void Finish(size_t warp, uint32_t mask);
  void Receive(size_t first, uint32_t present, size_t thread);
  void SetCurrent(size_t thread);
  Fiber* IdleFiber();
  std::string Describe(size_t thread) const;
  [[noreturn]] void FailStuck() const;

  const Kernel& kernel_;
  const dim3 shape_;
  std::vector<Thread> threads_;
  std::deque<size_t> ready_;  // that have waited and may go on
  size_t begun_ = 0;
  size_t ended_ = 0;
  size_t at_barrier_ = 0;
  size_t current_ = 0;
  Fiber* fiber_ = nullptr;  // that runs
};

// Stacks are kept from block to block.
struct Fibers {
  Fiber scheduler;
  std::vector<std::unique_ptr<Fiber>> all;
  std::vector<Fiber*> idle;
};
Fibers& FibersOfThread() {
  thread_local Fibers fibers;
  return fibers;
}

void Block::Run() {
  running = this;
  while (!ready_.empty() || begun_ < threads_.size()) {
    if (ready_.empty()) {
      fiber_ = IdleFiber();
    } else {
      SetCurrent(ready_.front());
      ready_.pop_front();
      fiber_ = threads_[current_].fiber;
    }
    Switch(&FibersOfThread().scheduler, fiber_);
  }
  running = nullptr;
  if (ended_ != threads_.size()) FailStuck();
}

void Block::Main() {
#if defined(__SANITIZE_ADDRESS__)
  Fiber& scheduler = FibersOfThread().scheduler;
  __sanitizer_finish_switch_fiber(nullptr, &scheduler.bottom, &scheduler.bytes);
#endif
  // A fiber is used again by other blocks, and never leaves this loop.
  for (;;) {
    running->RunNewThreads();
    FibersOfThread().idle.push_back(running->fiber_);
    running->Wait();
  }
}

void Block::RunNewThreads() {
  while (begun_ < threads_.size()) {
    const size_t thread = begun_++;
    SetCurrent(thread);
    threads_[thread].state = State::kRuns;
    threads_[thread].fiber = fiber_;
    kernel_.thread();
    // Others may have run since.
    threads_[thread].state = State::kEnded;
    ++ended_;
    const size_t first = thread / kWarp * kWarp;
    for (size_t t = first; t < threads_.size() && t < first + kWarp; ++t) {
      if (threads_[t].state == State::kAtExchange) Finish(first, threads_[t].mask);
    }
  }
}

void Block::SetCurrent(size_t thread) {
  current_ = thread;
  const auto t = static_cast<unsigned>(thread);
  threadIdx = {t % shape_.x, t / shape_.x % shape_.y, t / (shape_.x * shape_.y)};
}

Fiber* Block::IdleFiber() {
  Fibers& fibers = FibersOfThread();
  if (fibers.idle.empty()) {
    auto fiber = std::make_unique<Fiber>();
    fiber->memory = std::make_unique_for_overwrite<std::byte[]>(kStackBytes);
    fiber->bottom = fiber->memory.get();
    fiber->bytes = kStackBytes;
    CHECK_EQ(getcontext(&fiber->context), 0);
    fiber->context.uc_stack.ss_sp = fiber->memory.get();
    fiber->context.uc_stack.ss_size = kStackBytes;
    makecontext(&fiber->context, &Block::Main, 0);
    // Only makecontext needs them; the address sanitizer would clear the whole stack's shadow at
    // each switch.
    fiber->context.uc_stack.ss_size = 0;
    fibers.idle.push_back(fiber.get());
    fibers.all.push_back(std::move(fiber));
  }
  Fiber* const fiber = fibers.idle.back();
  fibers.idle.pop_back();
  return fiber;
}

void Block::Wait() { Switch(fiber_, &FibersOfThread().scheduler); }

void Block::Wake(size_t thread) {
  threads_[thread].state = State::kRuns;
  if (thread != current_) ready_.push_back(thread);
}

void Block::Barrier(const std::source_location& where) {
  threads_[current_].state = State::kAtBarrier;
  threads_[current_].where = where;
  if (++at_barrier_ == threads_.size()) {
    at_barrier_ = 0;
    for (size_t t = 0; t < threads_.size(); ++t) Wake(t);
  } else {
    Wait();
  }
}

uint64_t Block::Exchange(uint32_t mask, uint64_t value, int source, bool ballot,
                         const std::source_location& where) {
  const size_t self = current_;
  Thread& thread = threads_[self];
  thread.where = where;
  CHECK((mask >> lane() & 1u) != 0)
      << "simulated GPU: " << Describe(self) << " is not in its own mask " << std::hex << mask;
  thread.state = State::kAtExchange;
  thread.mask = mask;
  thread.value = value;
  thread.source = source;
  thread.ballot = ballot;
  Finish(self / kWarp * kWarp, mask);
  if (thread.state == State::kAtExchange) Wait();
  return thread.received;
}

// Ends the exchange of `mask` in the warp that begins at thread `first`, if all have come.
void Block::Finish(size_t first, uint32_t mask) {
  uint32_t present = 0;
  for (int l = 0; l < kWarp; ++l) {
    const size_t t = first + static_cast<size_t>(l);
    if ((mask >> l & 1u) == 0 || t >= threads_.size()) continue;
    const Thread& thread = threads_[t];
    if (thread.state == State::kEnded) continue;
    if (thread.state != State::kAtExchange || thread.mask != mask) return;
    present |= 1u << l;
  }
  for (int l = 0; l < kWarp; ++l) {
    if ((present >> l & 1u) != 0) Receive(first, present, first + static_cast<size_t>(l));
  }
  for (int l = 0; l < kWarp; ++l) {
    if ((present >> l & 1u) != 0) Wake(first + static_cast<size_t>(l));
  }
}

void Block::Receive(size_t first, uint32_t present, size_t receiver) {
  Thread& thread = threads_[receiver];
  if (!thread.ballot) {
    CHECK((present >> thread.source & 1u) != 0)
        << "simulated GPU: " << Describe(receiver) << " reads from lane " << thread.source
        << ", which takes no part";
    thread.received = threads_[first + static_cast<size_t>(thread.source)].value;
    return;
  }
  thread.received = 0;
  for (int l = 0; l < kWarp; ++l) {
    if ((present >> l & 1u) == 0) continue;
    thread.received |= threads_[first + static_cast<size_t>(l)].value << l;
  }
}

std::string Block::Describe(size_t thread) const {
  const auto t = static_cast<unsigned>(thread);
  std::ostringstream out;
  out << "kernel of (" << kernel_.name << "), block (" << blockIdx.x << ", " << blockIdx.y << ", "
      << blockIdx.z << "), thread (" << t % shape_.x << ", " << t / shape_.x % shape_.y << ", "
      << t / (shape_.x * shape_.y) << ")";
  const Thread& of = threads_[thread];
  if (of.where.line() != 0) {
    out << " in " << of.where.function_name() << " (" << of.where.file_name() << ":"
        << of.where.line() << ")";
  }
  return out.str();
}

void Block::FailStuck() const {
  for (size_t t = 0; t < threads_.size(); ++t) {
    if (threads_[t].state == State::kAtBarrier) {
      LOG(FATAL) << "simulated GPU: " << Describe(t) << " waits at a barrier that only "
                 << at_barrier_ << " of " << threads_.size() << " threads reach";
    }
    if (threads_[t].state == State::kAtExchange) {
      LOG(FATAL) << "simulated GPU: " << Describe(t) << " waits for the lanes of mask " << std::hex
                 << threads_[t].mask << ", which do not all come";
    }
  }
  LOG(FATAL) << "simulated GPU: a block does not end";
}

}  // namespace

void RunGrid(const Kernel& kernel, dim3 grid, dim3 block) {
  gridDim = grid;
  blockDim = block;
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) {
        blockIdx = {x, y, z};
        Block(kernel, block).Run();
      }
    }
  }
}

cudaError_t Launch(const cudaLaunchConfig_t& config, Kernel kernel) {
  return Runtime([&](Machine& machine) {
    const dim3 grid = config.gridDim;
    const dim3 block = config.blockDim;
    const uint64_t threads = uint64_t{block.x} * block.y * block.z;
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7fffffffu || grid.y > 0xffffu ||
        grid.z > 0xffffu || threads == 0 || threads > kMostThreads) {
      return cudaErrorInvalidConfiguration;
    }
    CHECK_EQ(config.dynamicSmemBytes, 0u) << "dynamic shared memory is not simulated";
    CUstream_st* const stream = machine.Find(config.stream, CurrentDevice());
    // A stream of another device than the thread's is no place for a kernel.
    if (stream == nullptr || stream->queue->device != CurrentDevice()) {
      return cudaErrorInvalidResourceHandle;
    }
    return machine.Submit(
        stream, [kernel = std::move(kernel), grid, block] { RunGrid(kernel, grid, block); });
  });
}

void Barrier(const std::source_location& where) { running->Barrier(where); }

uint64_t Exchange(uint32_t mask, uint64_t value, int source, const std::source_location& where) {
  return running->Exchange(mask, value, source, /*ballot=*/false, where);
}

uint32_t Ballot(uint32_t mask, bool predicate, const std::source_location& where) {
  return static_cast<uint32_t>(
      running->Exchange(mask, predicate ? 1 : 0, 0, /*ballot=*/true, where));
}

int Lane() { return running->lane(); }

}  // namespace kumo::simulated_gpu
