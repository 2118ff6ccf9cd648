#include "models/backend/cuda/coder.h"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>

#include <glog/logging.h>

#include "common/codec/tensor_codec.h"

namespace kumo::cuda {
namespace {

constexpr unsigned long long kNone = std::numeric_limits<unsigned long long>::max();

size_t Aligned(size_t place) {
  constexpr size_t kAlign = 64;
  return (place + kAlign - 1) / kAlign * kAlign;
}

}  // namespace

Coder::~Coder() {
  if (stream_) (void)cudaStreamSynchronize(stream_.get());
}

std::shared_ptr<std::byte> Coder::MakeCode(size_t bytes) {
  if (!engine_.Ready()) return nullptr;
  std::shared_ptr<std::byte> code = pool_.Take(bytes);
  if (!code) {
    engine_.Remember(ResourceExhausted("no host memory could be pinned for contributions"));
  }
  return code;
}

void Coder::Encode(std::span<GradientCodec::Encoding> encodings) {
  if (encodings.empty()) return;
  Part part;
  part.encodings = encodings;
  if (!Prepare(&in_order_, &part)) return;
  Queue(part, engine_.stream());
  queued_.push_back(std::move(part));
}

void Coder::EncodeAt(int mark, std::span<GradientCodec::Encoding> encodings,
                     std::function<void()> done) {
  Memory& memory = at_mark_[mark];
  if (!stream_) {
    KUMO_CUDA(engine_, cudaStreamCreateWithFlags(stream_.receive(), cudaStreamNonBlocking));
  }
  if (!memory.coded) {
    KUMO_CUDA(engine_, cudaEventCreateWithFlags(memory.coded.receive(), cudaEventDisableTiming));
  }
  Part part;
  part.encodings = encodings;
  part.done = std::move(done);
  if (!Prepare(&memory, &part)) return;
  waiting_.push_back(std::move(part));
}

// A recording holds it as a node of its own, so that others can wait for that place in each launch.
void Coder::Mark(int mark) {
  Memory& memory = at_mark_[mark];
  if (!memory.marked) {
    KUMO_CUDA(engine_, cudaEventCreateWithFlags(memory.marked.receive(), cudaEventDisableTiming));
  }
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  KUMO_CUDA(engine_, cudaStreamIsCapturing(engine_.stream(), &capture));
  const unsigned flags =
      capture == cudaStreamCaptureStatusNone ? cudaEventRecordDefault : cudaEventRecordExternal;
  KUMO_CUDA(engine_, cudaEventRecordWithFlags(memory.marked.get(), engine_.stream(), flags));
}

void Coder::Start() {
  if (!engine_.ok()) waiting_.clear();
  for (Part& part : waiting_) {
    CHECK(part.memory->marked) << "the step has no such mark";
    KUMO_CUDA(engine_, cudaStreamWaitEvent(stream_.get(), part.memory->marked.get(), 0));
    Queue(part, stream_.get());
    KUMO_CUDA(engine_, cudaEventRecord(part.memory->coded.get(), stream_.get()));
    // Work after the step is in order with it again.
    KUMO_CUDA(engine_, cudaStreamWaitEvent(engine_.stream(), part.memory->coded.get(), 0));
    marked_.push_back(std::move(part));
  }
  waiting_.clear();
}

void Coder::WaitForMarked() {
  for (const Part& part : marked_) {
    KUMO_CUDA(engine_, cudaEventSynchronize(part.memory->coded.get()));
    Deliver(part);
  }
  marked_.clear();
}

Status Coder::Wait() {
  WaitForMarked();
  const Status status = engine_.Wait();
  for (const Part& part : queued_) Deliver(part);
  queued_.clear();
  return status;
}

// Wait returns a failure.
void Coder::Deliver(const Part& part) {
  if (!engine_.ok()) return;
  for (size_t i = 0; i < part.encodings.size(); ++i) {
    const unsigned long long found = part.found()[i];
    part.encodings[i].first_bad = found == kNone ? -1 : static_cast<int64_t>(found);
  }
  if (part.done) part.done();
}

// The place of each code in the device's memory, and the end of the last code.
std::vector<size_t> Coder::Part::LayOut() {
  std::vector<size_t> places;
  size_t end = found_bytes();
  for (const GradientCodec::Encoding& encoding : encodings) {
    const std::span<std::byte> code = encoding.code;
    if (runs.empty() || code.data() != runs.back().to + runs.back().bytes || end % 8 != 0) {
      end = Aligned(end);
      runs.push_back({code.data(), end, 0});
    }
    places.push_back(end);
    runs.back().bytes += code.size();
    end += code.size();
  }
  places.push_back(end);
  return places;
}

// Jobs grouped by codec; all codecs of tensors are one group.
std::vector<EncodeJob> Coder::Part::MakeJobs(const std::vector<size_t>& places) {
  std::byte* const packed = memory->packed.data();
  auto* const first_bad = reinterpret_cast<unsigned long long*>(packed);
  std::map<const Codec*, std::vector<size_t>> of_codec;
  for (size_t i = 0; i < encodings.size(); ++i) {
    const Codec* const codec = encodings[i].codec;
    of_codec[codec->of_tensors() == nullptr ? codec : nullptr].push_back(i);
  }
  std::vector<EncodeJob> jobs;
  for (const auto& [key, members] : of_codec) {
    const Codec* const codec = encodings[members.front()].codec;
    Group& group = groups.emplace_back();
    group = {codec, static_cast<int>(jobs.size()), static_cast<int>(members.size()), 0, {}};
    for (const size_t i : members) {
      const GradientCodec::Encoding& e = encodings[i];
      jobs.push_back({e.x, e.minus, e.residual, e.n, packed + places[i], first_bad + i,
                      group.of_codec, e.context, codec->settings()});
      const auto length = static_cast<int64_t>(codec->group());
      group.of_codec += (e.n + length - 1) / length;
    }
  }
  return jobs;
}

// Tensors of the group that has some, in order.
std::vector<EncodedTensor> Coder::Part::Tensors() const {
  std::vector<EncodedTensor> tensors;
  int64_t first = 0;  // place of the chunk's first number
  int last = -1;      // the tensor before
  for (const GradientCodec::Encoding& encoding : encodings) {
    const TensorCodec* const codec = encoding.codec->of_tensors();
    if (codec == nullptr) continue;
    const std::span<const TensorPiece> pieces = codec->pieces();
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (pieces[i].tensor != last) {
        tensors.push_back({first + static_cast<int64_t>(pieces[i].begin), 0});
      }
      last = pieces[i].tensor;
      const int64_t end =
          i + 1 < pieces.size() ? static_cast<int64_t>(pieces[i + 1].begin) : encoding.n;
      tensors.back().end = first + end;
    }
    const auto length = static_cast<int64_t>(codec->group());
    first += (encoding.n + length - 1) / length * length;
  }
  return tensors;
}

void Coder::PrepareTensors(Part* part) {
  Memory& memory = *part->memory;
  const std::vector<EncodedTensor> tensors = part->Tensors();
  for (Group& group : part->groups) {
    if (group.codec->of_tensors() == nullptr) continue;
    const auto enough = [this](auto* array, int64_t count, const char* what) {
      using Array = std::remove_pointer_t<decltype(array)>;
      if (array->size() < count) *array = Array(engine_, count, what);
      return array->data();
    };
    group.tensors.count = static_cast<int>(tensors.size());
    EncodedTensor* const table = enough(&memory.tensors, std::ssize(tensors), "tensors to code");
    group.tensors.tensors = table;
    group.tensors.levels = enough(&memory.levels, std::ssize(tensors), "levels of tensors");
    constexpr int64_t kSent = 64;
    group.tensors.positions =
        enough(&memory.positions, kSent * group.of_codec, "positions of coded numbers");
    group.tensors.values = enough(&memory.values, kSent * group.of_codec, "coded numbers");
    staging_.Write(tensors.data(), tensors.size() * sizeof(EncodedTensor), table);
  }
}

bool Coder::Prepare(Memory* memory, Part* part) {
  part->memory = memory;
  part->found_memory = MakeCode(part->found_bytes());
  if (!engine_.ok()) return false;
  std::fill_n(part->found(), part->encodings.size(), kNone);
  const std::vector<size_t> places = part->LayOut();
  // Work queued before uses these arrays, too: the replacement of an array waits for it.
  const auto bytes = static_cast<int64_t>(places.back());
  if (memory->packed.size() < bytes) {
    memory->packed = DeviceArray<std::byte>(engine_, bytes, "coded chunks");
  }
  const int64_t count = std::ssize(part->encodings);
  if (memory->jobs.size() < count) {
    memory->jobs = DeviceArray<EncodeJob>(engine_, count, "chunks to encode");
  }
  const std::vector<EncodeJob> jobs = part->MakeJobs(places);
  staging_.Write(jobs.data(), jobs.size() * sizeof(EncodeJob), memory->jobs.data());
  PrepareTensors(part);
  KUMO_CUDA(engine_,
            cudaMemsetAsync(memory->packed.data(), 0xFF, part->found_bytes(), engine_.stream()));
  return engine_.ok();
}

void Coder::Queue(const Part& part, cudaStream_t stream) {
  Launch launch = engine_.launch();
  launch.stream = stream;
  for (const Group& group : part.groups) {
    KUMO_CUDA(engine_,
              cuda::Encode(launch, *group.codec, part.memory->jobs.data() + group.first_job,
                           group.jobs, group.of_codec, group.tensors));
  }
  const std::byte* const packed = part.memory->packed.data();
  for (const Run& run : part.runs) {
    KUMO_CUDA(engine_, cudaMemcpyAsync(run.to, packed + run.place, run.bytes,
                                       cudaMemcpyDeviceToHost, stream));
  }
  KUMO_CUDA(engine_, cudaMemcpyAsync(part.found(), packed, part.found_bytes(),
                                     cudaMemcpyDeviceToHost, stream));
}

}  // namespace kumo::cuda
