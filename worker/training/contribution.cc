#include "worker/training/contribution.h"

#include <string>
#include <utility>

#include <glog/logging.h>

namespace kumo {

Contribution::Contribution(const JobShape& shape, const RoundPlan& round, int partition,
                           const Vectors& vectors, Backend* backend)
    : chunks_(shape.map.chunks()), backend_(backend), asked_(chunks_.size()) {
  constexpr size_t kAlign = 64;
  std::vector<size_t> places;
  size_t end = 0;
  for (const Chunk& chunk : chunks_) {
    const int64_t begin = chunk.range.begin;
    GradientCodec::Encoding& encoding = encodings_.emplace_back();
    places.push_back(end);
    may_weigh_.push_back(shape.policy.MayWeigh(round, chunk.segment));
    const bool contributes =
        JobPlan::TakesPart(round, chunk) && shape.plan.SpanSamples(round, chunk, partition) > 0;
    asked_[chunk.index] = !contributes;
    if (!contributes) continue;
    encoding.codec = &shape.policy.PushCodec(round, chunk);
    encoding.n = chunk.range.size();
    if (round.local_steps || chunk.segment == Segment::kStatistics) {
      encoding.x = vectors.base + begin;
      encoding.minus = vectors.weights + begin;
    } else {
      encoding.x = vectors.gradients + begin;
    }
    if (!encoding.codec->lossless() && vectors.residual != nullptr) {
      encoding.residual = vectors.residual + begin;
    }
    encoding.context = shape.policy.PushContext(round, partition, chunk.range);
    encoding.context.most = encoding.codec->MostWithoutLoss(encoding.residual != nullptr);
    end += encoding.codec->EncodedBytes(static_cast<size_t>(encoding.n));
    end = (end + kAlign - 1) / kAlign * kAlign;
  }
  memory_ = backend_->MakeCode(end);
  for (size_t i = 0; i < encodings_.size(); ++i) {
    GradientCodec::Encoding& encoding = encodings_[i];
    if (asked_[i]) continue;
    encoding.code = {memory_.get() + places[i],
                     encoding.codec->EncodedBytes(static_cast<size_t>(encoding.n))};
  }
}

// The backend writes into the parts until Wait returns.
Contribution::~Contribution() {
  if (coding_) (void)backend_->Wait();
}

void Contribution::Discard() {
  for (const Chunk& chunk : chunks_) {
    if (!may_weigh_[chunk.index]) continue;
    CHECK(asked_[chunk.index] == encodings_[chunk.index].code.empty()) << chunk.index;
    asked_[chunk.index] = true;
    encodings_[chunk.index].code = {};
  }
}

Contribution::Part& Contribution::AddPart(std::span<const int> chunks) {
  Part& part = parts_.emplace_back();
  part.chunks.assign(chunks.begin(), chunks.end());
  for (const int chunk : chunks) {
    part.encodings.push_back(encodings_[chunk]);
    asked_[chunk] = true;
  }
  coding_ = true;
  return part;
}

void Contribution::CodeAt(int mark, std::span<const int> chunks, OnCoded on_coded) {
  Part& part = AddPart(chunks);
  backend_->EncodeAt(mark, part.encodings,
                     [this, &part, on_coded = std::move(on_coded)] { HandOn(part, on_coded); });
}

Status Contribution::Finish() {
  std::vector<int> rest;
  for (const Chunk& chunk : chunks_) {
    if (!asked_[chunk.index]) rest.push_back(chunk.index);
  }
  backend_->Encode(AddPart(rest).encodings);
  KUMO_RETURN_IF_ERROR(backend_->Wait());
  coding_ = false;
  return OkStatus();
}

void Contribution::HandOn(const Part& part, const OnCoded& on_coded) const {
  if (FirstBad(part)) return;
  std::vector<CodedChunk> coded;
  for (size_t i = 0; i < part.chunks.size(); ++i) {
    coded.push_back({part.chunks[i], {memory_, part.encodings[i].code}});
  }
  on_coded(std::move(coded));
}

std::optional<Contribution::BadNumber> Contribution::FirstBad(const Part& part) const {
  for (size_t i = 0; i < part.chunks.size(); ++i) {
    const GradientCodec::Encoding& encoding = part.encodings[i];
    if (encoding.first_bad < 0) continue;
    return BadNumber{chunks_[part.chunks[i]].range.begin + encoding.first_bad, encoding.codec};
  }
  return std::nullopt;
}

std::optional<Contribution::BadNumber> Contribution::first_bad() const {
  for (const Part& part : parts_) {
    if (const std::optional<BadNumber> found = FirstBad(part)) return found;
  }
  return std::nullopt;
}

std::vector<Payload> Contribution::payloads() const {
  std::vector<Payload> payloads;
  for (const GradientCodec::Encoding& encoding : encodings_) {
    payloads.push_back(encoding.code.empty() ? Payload() : Payload{memory_, encoding.code});
  }
  return payloads;
}

Status BadNumberError(const Contribution::BadNumber& bad, int64_t round, int partition,
                      const ParameterLayout& layout) {
  const int tensor = layout.TensorAt(bad.position);
  return OutOfRange("round " + std::to_string(round) + ", partition " + std::to_string(partition) +
                    ": tensor " + (tensor < 0 ? "?" : layout.tensors()[tensor].name) +
                    " has become " + bad.codec->DescribeMisfit() +
                    "; try a lower schedule.learning_rate");
}

}  // namespace kumo
