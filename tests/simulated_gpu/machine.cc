#include "tests/simulated_gpu/machine.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include <glog/logging.h>

namespace kumo::simulated_gpu {
namespace {

constexpr int kRubbish = 0xFF;
constexpr size_t kAlignment = 256;
// Blocks of this size and more are mapped piece by piece. The address sanitizer watches blocks of
// the heap.
#ifdef KUMO_SANITIZED
constexpr size_t kPiece = std::numeric_limits<size_t>::max();
#else
constexpr size_t kPiece = size_t{2} << 20;
#endif

Settings FromEnvironment() {
  Settings settings;
  const char* const value = std::getenv("KUMO_SIMULATED_GPU");
  std::string_view rest = value == nullptr ? "" : value;
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    const size_t equals = item.find('=');
    const std::string_view key = item.substr(0, equals);
    int64_t number = -1;
    if (equals != item.npos) {
      std::from_chars(item.data() + equals + 1, item.data() + item.size(), number);
    }
    CHECK_GE(number, 0) << "KUMO_SIMULATED_GPU: '" << item << "' is not NAME=NUMBER";
    if (key == "memory_mb") {
      settings.memory_bytes = static_cast<size_t>(number) << 20;
    } else if (key == "fault_at") {
      settings.fault_at = number;
    } else if (key == "devices") {
      settings.devices = static_cast<int>(number);
    } else if (key == "compute_capability") {
      settings.compute_capability = static_cast<int>(number);
    } else {
      LOG(FATAL) << "KUMO_SIMULATED_GPU has no setting '" << key << "'";
    }
  }
  return settings;
}

// A file of kRubbish, as long as a piece.
int RubbishFile() {
  static const int file = [] {
    const int made = memfd_create("rubbish", MFD_CLOEXEC);
    const std::string content(kPiece, static_cast<char>(kRubbish));
    PCHECK(made >= 0 && write(made, content.data(), content.size()) == std::ssize(content));
    return made;
  }();
  return file;
}

size_t Mapped(size_t bytes) { return (bytes + kPiece - 1) / kPiece * kPiece; }

// Workspaces are large and mostly untouched: each of their pieces is a private mapping of the same
// file, so that a page costs nothing until it is written.
void* Rubbish(size_t bytes) {
  void* memory = nullptr;
  if (bytes < kPiece) {
    CHECK_EQ(posix_memalign(&memory, kAlignment, bytes), 0) << "the host has no memory left";
    std::memset(memory, kRubbish, bytes);
    return memory;
  }
  memory = mmap(nullptr, Mapped(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  PCHECK(memory != MAP_FAILED);
  for (size_t at = 0; at < bytes; at += kPiece) {
    PCHECK(mmap(static_cast<std::byte*>(memory) + at, kPiece, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_FIXED, RubbishFile(), 0) != MAP_FAILED);
  }
  return memory;
}

void Release(void* memory, size_t bytes) {
  if (bytes < kPiece) {
    std::free(memory);
  } else {
    PCHECK(munmap(memory, Mapped(bytes)) == 0);
  }
}

uintptr_t AddressOf(const void* memory) { return reinterpret_cast<uintptr_t>(memory); }

// The allocation that `address` lies in; end() when there is none.
template <typename Map>
typename Map::const_iterator Around(const Map& map, uintptr_t address, auto bytes_of) {
  auto after = map.upper_bound(address);
  if (after == map.begin()) return map.end();
  const auto found = std::prev(after);
  return address < found->first + bytes_of(found->second) ? found : map.end();
}

}  // namespace

int& CurrentDevice() {
  thread_local int device = 0;
  return device;
}

Machine& Machine::Get() {
  static Machine& machine = *new Machine();
  return machine;
}

Machine::Machine() { Reset(FromEnvironment()); }

void Machine::Reset(const Settings& settings) {
  CHECK(streams_.empty()) << streams_.size() << " streams were not destroyed";
  settings_ = settings;
  fault_ = cudaSuccess;
  works_before_fault_ = settings.fault_at;
  failures_.clear();
  legacy_.clear();
  for (const auto& [address, allocation] : device_memory_) {
    Release(reinterpret_cast<void*>(address), allocation.bytes);
  }
  device_memory_.clear();
}

std::optional<int> Machine::OrderedFailure(Api api) {
  const auto found = failures_.find(api);
  if (found == failures_.end() || --found->second.nth > 0) return std::nullopt;
  const int code = found->second.code;
  failures_.erase(found);
  return code;
}

size_t Machine::bytes_in_use(std::optional<int> device) const {
  size_t bytes = 0;
  for (const auto& [address, allocation] : device_memory_) {
    if (!device || allocation.device == *device) bytes += allocation.bytes;
  }
  return bytes;
}

bool Machine::idle() const {
  return std::ranges::all_of(streams_, [](auto* stream) { return stream->queue->works.empty(); });
}

cudaError_t Machine::Allocate(int device, size_t bytes, void** memory) {
  if (CaptureForbids(false)) return cudaErrorStreamCaptureUnsupported;
  *memory = nullptr;
  if (bytes == 0) return cudaSuccess;
  if (bytes > settings_.memory_bytes - bytes_in_use(device)) return cudaErrorMemoryAllocation;
  *memory = Rubbish(bytes);
  device_memory_[AddressOf(*memory)] = {bytes, device};
  return cudaSuccess;
}

cudaError_t Machine::Free(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  if (CaptureForbids(true)) return cudaErrorStreamCaptureUnsupported;
  SynchroniseAll();
  const auto found = device_memory_.find(AddressOf(memory));
  if (found == device_memory_.end()) return cudaErrorInvalidValue;
  Release(memory, found->second.bytes);
  device_memory_.erase(found);
  return fault_;
}

cudaError_t Machine::Pin(size_t bytes, void** memory) {
  if (CaptureForbids(false)) return cudaErrorStreamCaptureUnsupported;
  *memory = nullptr;
  if (bytes == 0) return cudaSuccess;
  *memory = Rubbish(bytes);
  pinned_[AddressOf(*memory)] = bytes;
  return cudaSuccess;
}

cudaError_t Machine::Unpin(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  if (CaptureForbids(true)) return cudaErrorStreamCaptureUnsupported;
  const auto found = pinned_.find(AddressOf(memory));
  if (found == pinned_.end()) return cudaErrorInvalidValue;
  Release(memory, found->second);
  pinned_.erase(found);
  return cudaSuccess;
}

Machine::Place Machine::PlaceOf(const void* memory, size_t bytes) const {
  const uintptr_t begin = AddressOf(memory);
  const auto on_device =
      Around(device_memory_, begin, [](const Allocation& allocation) { return allocation.bytes; });
  if (on_device != device_memory_.end()) {
    return begin + bytes <= on_device->first + on_device->second.bytes ? Place::kDevice
                                                                       : Place::kOutside;
  }
  const auto pinned = Around(pinned_, begin, [](size_t of_block) { return of_block; });
  if (pinned == pinned_.end()) return Place::kPageable;
  return begin + bytes <= pinned->first + pinned->second ? Place::kPinned : Place::kOutside;
}

cudaStream_t Machine::MakeStream(int device, bool blocking) {
  auto* const stream = new CUstream_st{std::make_shared<Queue>(), blocking, std::nullopt};
  stream->queue->device = device;
  streams_.insert(stream);
  return stream;
}

// What is queued on it runs to its end.
void Machine::DestroyStream(cudaStream_t stream) {
  Run(*stream->queue, stream->queue->end());
  streams_.erase(stream);
  delete stream;
}

CUstream_st* Machine::Legacy(int device) {
  std::unique_ptr<CUstream_st>& stream = legacy_[device];
  if (stream == nullptr) {
    stream = std::make_unique<CUstream_st>();
    stream->queue = std::make_shared<Queue>();
    stream->queue->device = device;
  }
  return stream.get();
}

CUstream_st* Machine::Find(cudaStream_t stream, int device) {
  if (stream == nullptr || stream == cudaStreamLegacy) return Legacy(device);
  return streams_.contains(stream) ? stream : nullptr;
}

cudaError_t Machine::Submit(CUstream_st* stream, Work work) {
  if (stream->capture) {
    if (!stream->capture->valid) return cudaErrorStreamCaptureInvalidated;
    stream->capture->nodes.push_back({std::move(work)});
    return cudaSuccess;
  }
  Queue& queue = *stream->queue;
  const auto wait_for = [&](const std::shared_ptr<Queue>& other) {
    queue.works.push_back([this, other, end = other->end()] { Run(*other, end); });
  };
  CUstream_st* const legacy = Legacy(queue.device);
  if (stream == legacy) {
    for (CUstream_st* other : streams_) {
      if (!other->blocking || other->queue->device != queue.device) continue;
      if (other->capture) {
        other->capture->valid = false;
        return cudaErrorStreamCaptureImplicit;
      }
      wait_for(other->queue);
    }
  } else if (stream->blocking) {
    wait_for(legacy->queue);
  }
  queue.works.push_back([this, begun = std::move(work)] { Begin(begun); });
  return cudaSuccess;
}

void Machine::Begin(const Work& work) {
  if (works_before_fault_ > 0 && --works_before_fault_ == 0) fault_ = cudaErrorIllegalAddress;
  if (fault_ == cudaSuccess) work();
}

void Machine::Run(Queue& queue, uint64_t end) {
  while (queue.begun < end) {
    const Work work = std::move(queue.works.front());
    queue.works.pop_front();
    ++queue.begun;
    work();
  }
}

cudaError_t Machine::Synchronise(CUstream_st* stream) {
  if (stream->capture) {
    stream->capture->valid = false;
    return cudaErrorStreamCaptureUnsupported;
  }
  Run(*stream->queue, stream->queue->end());
  return fault_;
}

void Machine::SynchroniseAll() {
  for (CUstream_st* stream : streams_) Run(*stream->queue, stream->queue->end());
  for (const auto& [device, stream] : legacy_) Run(*stream->queue, stream->queue->end());
}

bool Machine::CaptureForbids(bool waits) {
  bool forbidden = false;
  for (CUstream_st* stream : streams_) {
    if (!stream->capture) continue;
    const Capture& capture = *stream->capture;
    const bool guards = capture.mode == cudaStreamCaptureModeGlobal ||
                        (capture.mode == cudaStreamCaptureModeThreadLocal &&
                         capture.thread == std::this_thread::get_id());
    if (!guards && !waits) continue;
    stream->capture->valid = false;
    forbidden = true;
  }
  return forbidden;
}

void Reset(const Settings& settings) {
  const std::lock_guard lock(Machine::Get().mutex());
  Machine::Get().Reset(settings);
}

void FailCall(Api api, int64_t nth, int code) {
  const std::lock_guard lock(Machine::Get().mutex());
  Machine::Get().OrderFailure(api, nth, code);
}

void FaultAtWork(int64_t nth) {
  const std::lock_guard lock(Machine::Get().mutex());
  Machine::Get().OrderFault(nth);
}

bool IsIdle() {
  const std::lock_guard lock(Machine::Get().mutex());
  return Machine::Get().idle();
}

size_t BytesInUse() {
  const std::lock_guard lock(Machine::Get().mutex());
  return Machine::Get().bytes_in_use(std::nullopt);
}

}  // namespace kumo::simulated_gpu
