// A block's contribution while it is coded: which numbers of the device's vectors each chunk is
// made of, where its code goes, and what was handed on before the rest was there.
//
// Made by the trainer for one block. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/job/job_plan.h"
#include "common/job/shard_map.h"
#include "models/backend/backend.h"
#include "worker/session/actions.h"
#include "worker/session/job_shape.h"

namespace kumo {

class Contribution {
 public:
  // Vectors of the layout in the device's memory, borrowed for life.
  struct Vectors {
    const float* base = nullptr;
    const float* weights = nullptr;
    const float* gradients = nullptr;
    float* residual = nullptr;  // null: no error feedback
  };
  using OnCoded = std::function<void(std::vector<CodedChunk>)>;

  // Gradients where the round is one of gradients, else base - weights; statistics are averaged in
  // either mode. `shape` and `backend` are borrowed for life.
  Contribution(const JobShape& shape, const RoundPlan& round, const Vectors& vectors,
               Backend* backend);
  // Waits for the backend where it may still be coding.
  ~Contribution();
  Contribution(const Contribution&) = delete;
  Contribution& operator=(const Contribution&) = delete;

  // Has chunks coded at a mark of the backend's next Repeat, and hands them to on_coded when they
  // are, unless there is a bad number among them.
  void CodeAt(int mark, std::span<const int> chunks, OnCoded on_coded);
  // Has the other chunks coded, as what was queued leaves them, and waits for all. The device's
  // failure.
  Status Finish();

  // A number that is not finite, or of which saturation would take a part for good
  // (Codec::MostWithoutLoss).
  struct BadNumber {
    int64_t position = 0;  // in the flat vectors
    const Codec* codec = nullptr;
  };
  // The first of them, after Finish; none where all is well.
  std::optional<BadNumber> first_bad() const;
  // The codes, after Finish, by chunk.
  std::vector<Payload> payloads() const;

 private:
  // Chunks that are coded together.
  struct Part {
    std::vector<int> chunks;
    std::vector<GradientCodec::Encoding> encodings;  // of each
  };

  Part& AddPart(std::span<const int> chunks);
  std::optional<BadNumber> FirstBad(const Part& part) const;
  void HandOn(const Part& part, const OnCoded& on_coded) const;

  const std::vector<Chunk>& chunks_;
  Backend* const backend_;
  std::shared_ptr<std::byte> memory_;               // of all codes
  std::vector<GradientCodec::Encoding> encodings_;  // by chunk, as they are to be done
  std::vector<bool> asked_;                         // by chunk
  std::deque<Part> parts_;                          // whose places do not change
  bool coding_ = false;
};

}  // namespace kumo
