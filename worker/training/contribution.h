// Contribution of a block while it is coded: the source range of each chunk on the device, the
// destination of its code, and the chunks that were handed on before the end of the step.
//
// Made by the trainer for one block. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/base/status.h"
#include "common/job/job_plan.h"
#include "common/job/parameter_layout.h"
#include "common/job/shard_map.h"
#include "models/backend/backend.h"
#include "worker/session/actions.h"
#include "worker/session/job_shape.h"
#include "worker/session/training_engine.h"

namespace kumo {

class Contribution {
 public:
  // Vectors of the layout in device memory; they must outlive this object.
  struct Vectors {
    const float* base = nullptr;
    const float* weights = nullptr;
    const float* gradients = nullptr;
    float* residual = nullptr;  // null: no error feedback
  };
  using OnCoded = TrainingEngine::OnCoded;

  // Codes gradients in a gradient round, otherwise base - weights; statistics are averaged in both
  // modes. Chunks that take no part in the round, or for which the partition has no samples, get no
  // code. `shape` and `backend` must outlive this object.
  Contribution(const JobShape& shape, const RoundPlan& round, int partition, const Vectors& vectors,
               Backend* backend);
  // Waits for the backend if it is still coding.
  ~Contribution();
  Contribution(const Contribution&) = delete;
  Contribution& operator=(const Contribution&) = delete;

  // Leaves out all chunks that count by the weight of the contribution (RoundPolicy::MayWeigh) and
  // keeps their residuals, as without samples: servers discard a contribution of weight 0, so that
  // what earlier rounds left in it would be lost. None of these chunks may be coded yet.
  void Discard();
  // Codes chunks at a mark of the backend's next Repeat, and then hands them to on_coded unless one
  // of their elements is bad.
  void CodeAt(int mark, std::span<const int> chunks, OnCoded on_coded);
  // Codes the remaining chunks after the queued work, and waits for all. Errors: a device failure.
  Status Finish();

  // An element that is not finite, or that saturates the codec beyond what error feedback recovers
  // (Codec::MostWithoutLoss).
  struct BadNumber {
    int64_t position = 0;  // in the flat vectors
    const Codec* codec = nullptr;
  };
  // The first bad element, if any; valid after Finish.
  std::optional<BadNumber> first_bad() const;
  // The codes by chunk, empty if there is none; valid after Finish.
  std::vector<Payload> payloads() const;

 private:
  // Chunks that are coded in one call.
  struct Part {
    std::vector<int> chunks;
    std::vector<GradientCodec::Encoding> encodings;  // by position in chunks
  };

  Part& AddPart(std::span<const int> chunks);
  std::optional<BadNumber> FirstBad(const Part& part) const;
  void HandOn(const Part& part, const OnCoded& on_coded) const;

  const std::vector<Chunk>& chunks_;
  Backend* const backend_;
  std::shared_ptr<std::byte> memory_;               // holds all codes
  std::vector<GradientCodec::Encoding> encodings_;  // by chunk, as planned
  std::vector<bool> asked_;                         // by chunk
  std::vector<bool> may_weigh_;                     // by chunk: RoundPolicy::MayWeigh
  std::deque<Part> parts_;                          // a deque: the backend keeps pointers into it
  bool coding_ = false;
};

// The error of a contribution with a bad element: OutOfRange names round, partition and tensor.
Status BadNumberError(const Contribution::BadNumber& bad, int64_t round, int partition,
                      const ParameterLayout& layout);

}  // namespace kumo
