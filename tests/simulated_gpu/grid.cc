#include "tests/simulated_gpu/grid.h"

#include <bit>
#include <cstddef>
#include <deque>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <glog/logging.h>
#include <boost/context/detail/fcontext.hpp>

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

namespace boost_context = boost::context::detail;

// A stack that a device's thread runs on; the scheduler's is the host thread's own.
struct Fiber {
  boost_context::fcontext_t context = nullptr;  // while another runs
  std::unique_ptr<std::byte[]> memory;
  const void* bottom = nullptr;
  size_t bytes = 0;
};

// The fiber that goes on notes where the one that ran before stopped. The address sanitizer has to
// be told when the stack changes.
void Arrive(boost_context::transfer_t from, [[maybe_unused]] void* fake_stack) {
  auto* const stopped = static_cast<Fiber*>(from.data);
  stopped->context = from.fctx;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack, &stopped->bottom, &stopped->bytes);
#endif
}

void Switch(Fiber* from, Fiber* to) {
  void* fake_stack = nullptr;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&fake_stack, to->bottom, to->bytes);
#endif
  Arrive(boost_context::jump_fcontext(to->context, from), fake_stack);
}

class Block;
thread_local Block* running = nullptr;

class Block {
 public:
  Block(const Kernel& kernel, dim3 shape)
      : kernel_(kernel),
        shape_(shape),
        threads_(shape.x * shape.y * shape.z),
        warps_((threads_.size() + kWarp - 1) / kWarp) {}

  // Runs the block `blockIdx`; one after the other.
  void Run();

  void Barrier(const Place& where);
  uint64_t Exchange(uint32_t mask, uint64_t value, int source, bool ballot, const Place& where);
  int lane() const { return static_cast<int>(current_ % kWarp); }

 private:
  enum class State { kRuns, kAtBarrier, kAtExchange, kEnded };
  struct Thread {
    State state = State::kRuns;
    uint3 index{};
    Fiber* fiber = nullptr;  // while it has begun and not ended
    Place where;
    // Of the exchange that it waits in.
    uint32_t mask = 0;
    int source = 0;
    bool ballot = false;
    uint64_t value = 0;
    uint64_t received = 0;
  };
  // A bit for each lane.
  struct Warp {
    uint32_t at_exchange = 0;
    uint32_t ended = 0;  // or never was
  };

  static void Main(boost_context::transfer_t from);  // of a fiber
  void RunNewThreads();
  void End(size_t thread);
  Fiber* Next();  // to run, with its thread as the current one; none: null
  void Wait();    // until another thread has woken the one that runs
  void Wake(size_t thread);
  void Finish(size_t warp, uint32_t mask);
  void Receive(size_t first, uint32_t present, size_t thread);
  void SetCurrent(size_t thread);
  Fiber* IdleFiber();
  std::string Describe(size_t thread) const;
  [[noreturn]] void FailStuck() const;

  const Kernel& kernel_;
  const dim3 shape_;
  std::vector<Thread> threads_;  // only those that have begun mean anything
  std::vector<Warp> warps_;
  std::deque<size_t> ready_;  // that have waited and may go on
  uint3 next_index_{};        // of the thread that begins next
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
  begun_ = 0;
  ended_ = 0;
  next_index_ = {};
  const size_t of_last = threads_.size() - (warps_.size() - 1) * kWarp;
  warps_.assign(warps_.size(), {});
  if (of_last < kWarp) warps_.back().ended = ~uint32_t{0} << of_last;
  while ((fiber_ = Next()) != nullptr) Switch(&FibersOfThread().scheduler, fiber_);
  running = nullptr;
  if (ended_ != threads_.size()) FailStuck();
}

void Block::Main(boost_context::transfer_t from) {
  Arrive(from, nullptr);
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
    Thread& begins = threads_[thread];
    begins.state = State::kRuns;
    begins.index = next_index_;
    begins.fiber = fiber_;
    begins.where = {};
    if (++next_index_.x == shape_.x) {
      next_index_.x = 0;
      if (++next_index_.y == shape_.y) {
        next_index_.y = 0;
        ++next_index_.z;
      }
    }
    SetCurrent(thread);
    kernel_.thread();
    // Others may have run since.
    End(thread);
  }
}

// Those of its warp that wait for it need not any more.
void Block::End(size_t thread) {
  threads_[thread].state = State::kEnded;
  ++ended_;
  const size_t first = thread / kWarp * kWarp;
  Warp& warp = warps_[thread / kWarp];
  warp.ended |= 1u << thread % kWarp;
  for (uint32_t waiting = warp.at_exchange; waiting != 0; waiting &= waiting - 1) {
    const Thread& waits = threads_[first + static_cast<size_t>(std::countr_zero(waiting))];
    if (waits.state == State::kAtExchange) Finish(first / kWarp, waits.mask);
  }
}

void Block::SetCurrent(size_t thread) {
  current_ = thread;
  threadIdx = threads_[thread].index;
}

Fiber* Block::Next() {
  if (!ready_.empty()) {
    SetCurrent(ready_.front());
    ready_.pop_front();
    return threads_[current_].fiber;
  }
  return begun_ < threads_.size() ? IdleFiber() : nullptr;
}

Fiber* Block::IdleFiber() {
  Fibers& fibers = FibersOfThread();
  if (fibers.idle.empty()) {
    auto fiber = std::make_unique<Fiber>();
    fiber->memory = std::make_unique_for_overwrite<std::byte[]>(kStackBytes);
    fiber->bottom = fiber->memory.get();
    fiber->bytes = kStackBytes;
    fiber->context =
        boost_context::make_fcontext(fiber->memory.get() + kStackBytes, kStackBytes, &Block::Main);
    fibers.idle.push_back(fiber.get());
    fibers.all.push_back(std::move(fiber));
  }
  Fiber* const fiber = fibers.idle.back();
  fibers.idle.pop_back();
  return fiber;
}

void Block::Wait() {
  Fiber* const waits = fiber_;
  fiber_ = Next();
  Switch(waits, fiber_ != nullptr ? fiber_ : &FibersOfThread().scheduler);
}

void Block::Wake(size_t thread) {
  threads_[thread].state = State::kRuns;
  if (thread != current_) ready_.push_back(thread);
}

void Block::Barrier(const Place& where) {
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
                         const Place& where) {
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
  warps_[self / kWarp].at_exchange |= 1u << self % kWarp;
  Finish(self / kWarp, mask);
  if (thread.state == State::kAtExchange) Wait();
  return thread.received;
}

// Ends the exchange of `mask` in a warp, if all have come.
void Block::Finish(size_t warp, uint32_t mask) {
  const uint32_t present = mask & ~warps_[warp].ended;
  if ((present & ~warps_[warp].at_exchange) != 0) return;
  const size_t first = warp * kWarp;
  const auto for_each = [&](auto call) {
    for (uint32_t left = present; left != 0; left &= left - 1) {
      call(first + static_cast<size_t>(std::countr_zero(left)));
    }
  };
  bool same = true;
  for_each([&](size_t thread) { same = same && threads_[thread].mask == mask; });
  if (!same) return;
  warps_[warp].at_exchange &= ~present;
  for_each([&](size_t thread) { Receive(first, present, thread); });
  for_each([&](size_t thread) { Wake(thread); });
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
  const uint3 index = threads_[thread].index;
  std::ostringstream out;
  out << "kernel of (" << kernel_.name << "), block (" << blockIdx.x << ", " << blockIdx.y << ", "
      << blockIdx.z << "), thread (" << index.x << ", " << index.y << ", " << index.z << ")";
  const Thread& of = threads_[thread];
  if (of.where.line != 0) {
    out << " in " << of.where.function << " (" << of.where.file << ":" << of.where.line << ")";
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
  Block run(kernel, block);
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) {
        blockIdx = {x, y, z};
        run.Run();
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

void Barrier(const Place& where) { running->Barrier(where); }

uint64_t Exchange(uint32_t mask, uint64_t value, int source, const Place& where) {
  return running->Exchange(mask, value, source, /*ballot=*/false, where);
}

uint32_t Ballot(uint32_t mask, bool predicate, const Place& where) {
  return static_cast<uint32_t>(
      running->Exchange(mask, predicate ? 1 : 0, 0, /*ballot=*/true, where));
}

int Lane() { return running->lane(); }

}  // namespace kumo::simulated_gpu
