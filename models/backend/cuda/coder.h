// Coder of contributions: from the device's arrays into packed bytes in the host's memory, by one
// kernel for each codec and few copies. The coder works in order with everything else, or beside a
// step from a mark in the step on.
//
// Codes lie in the device's memory as in the host's memory, so neighbouring codes cross the bus
// together. In front of the codes lies the position of each chunk's first number that is not
// finite.
//
// One thread.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "common/base/status.h"
#include "models/backend/cuda/cuda_engine.h"
#include "models/backend/cuda/kernels.h"
#include "models/backend/cuda/pinned_pool.h"
#include "models/backend/cuda/pinned_staging.h"
#include "models/backend/gradient_codec.h"

namespace kumo::cuda {

class Coder {
 public:
  Coder(CudaEngine& engine, PinnedPool& pool, PinnedStaging& staging)
      : engine_(engine), pool_(pool), staging_(staging) {}
  ~Coder();

  // GradientCodec's functions of the same names.
  std::shared_ptr<std::byte> MakeCode(size_t bytes);
  void Encode(std::span<GradientCodec::Encoding> encodings);
  void EncodeAt(int mark, std::span<GradientCodec::Encoding> encodings, std::function<void()> done);
  void Mark(int mark);
  // The step is queued, or its recording launched: the encodings of EncodeAt may follow its marks.
  void Start();
  // Waits for the codes that a step made at its marks, one part after the other; the rest of the
  // step may go on.
  void WaitForMarked();
  // Waits for all codes, and for everything that was queued.
  Status Wait();

 private:
  // Memory of chunks on their way; the next chunks of the same kind take it again.
  struct Memory {
    DeviceArray<std::byte> packed;
    DeviceArray<EncodeJob> jobs;
    // For chunks whose codec is of tensors.
    DeviceArray<EncodedTensor> tensors;
    DeviceArray<TensorLevels> levels;
    DeviceArray<uint16_t> positions;
    DeviceArray<float> values;
    Event marked;  // null: for what is coded in order
    Event coded;
  };
  struct Run {  // codes that are neighbours in the host's memory
    std::byte* to;
    size_t place;  // in packed
    size_t bytes;
  };
  struct Group {  // chunks of one codec, or of codecs of tensors: a kernel's work
    const Codec* codec = nullptr;
    int first_job = 0;
    int jobs = 0;
    int64_t of_codec = 0;  // groups of the codec, of all its jobs
    TensorTable tensors;   // in the device's memory
  };
  struct Part {
    std::span<GradientCodec::Encoding> encodings;
    std::function<void()> done;
    Memory* memory = nullptr;
    std::shared_ptr<std::byte> found_memory;  // pinned: the first bad position of each
    std::vector<Run> runs;
    std::vector<Group> groups;

    std::vector<size_t> LayOut();
    std::vector<EncodeJob> MakeJobs(const std::vector<size_t>& places);
    std::vector<EncodedTensor> Tensors() const;
    size_t found_bytes() const { return encodings.size() * sizeof(unsigned long long); }
    unsigned long long* found() const {
      return reinterpret_cast<unsigned long long*>(found_memory.get());
    }
  };

  // Lays a part out and tells the device of it, in order with everything else. Whether nothing has
  // failed.
  bool Prepare(Memory* memory, Part* part);
  void PrepareTensors(Part* part);
  void Queue(const Part& part, cudaStream_t stream);
  void Deliver(const Part& part);

  CudaEngine& engine_;
  PinnedPool& pool_;
  PinnedStaging& staging_;
  Stream stream_;  // of what is coded beside a step
  Memory in_order_;
  std::map<int, Memory> at_mark_;
  std::vector<Part> waiting_;  // for their marks
  std::vector<Part> marked_;   // queued, each behind its mark
  std::vector<Part> queued_;   // in order
};

}  // namespace kumo::cuda
