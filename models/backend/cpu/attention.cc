// Attention over a sequence: of each head and of 16 samples at a time, which is one unit of work.
//
// Positions are taken in blocks. Where it is causal, a block of queries looks at the positions up
// to its own end, and what lies behind a query within the block has weight 0; so no block looks at
// weights that were not made.
//
// In the activations the channels of a position lie a multiple of 4 KiB apart where positions and
// samples are powers of two, and a cache keeps few of such numbers. What is multiplied along the
// channels is copied to rows of another length before, and weights have such rows.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "models/backend/cpu/ops.h"

namespace kumo::cpu {
namespace {

constexpr int64_t kBlock = 8;  // positions

class Attention final : public FloatOp {
 public:
  Attention(Engine& engine, const AttentionSpec& spec, int max_batch)
      : engine_(engine),
        spec_(spec),
        scale_(1.0f / std::sqrt(static_cast<float>(spec.per_head()))),
        weights_(engine.memory,
                 spec.heads * spec.positions * Row() * LaneStride(max_batch) / kSampleLanes,
                 kWorkspace) {
    engine.ReserveScratch(spec.heads * LaneStride(max_batch) / kSampleLanes * PackedFloats());
  }

  bool reads_input() const override { return true; }
  int64_t bytes() const override { return weights_.bytes(); }

  void ForwardFloats(const Pass& pass, const float* input, float* output) override {
    if (engine_.Scratch() == nullptr) return;
    ForEachUnit(pass, [&](const Unit& unit) {
      const float* const queries = input + unit.at;
      const float* const values = queries + 2 * unit.third;
      Pack(unit, queries + unit.third, 0, spec_.positions, unit.packed);
      ForEachBlock([&](int64_t first, int64_t count) {
        const int64_t seen = Seen(first, count);
        engine_.attention.product(Weigh(unit, first, count, queries, unit.weights + first * Row()));
        for (int64_t t = first; t < first + count; ++t) {
          float* const row = unit.weights + t * Row();
          const int64_t own = spec_.causal ? t + 1 : seen;
          engine_.attention.softmax(own, row);
          std::fill(row + own * kSampleLanes, row + seen * kSampleLanes, 0.0f);
        }
        engine_.attention.product(Mean(unit, first, count, values, output + unit.at));
      });
    });
  }

  void BackwardFloats(const Pass& pass, const float* input, const float*, const float* grad_output,
                      float* grad_input) override {
    if (grad_input == nullptr || engine_.Scratch() == nullptr) return;
    ForEachUnit(pass, [&](const Unit& unit) {
      const float* const queries = input + unit.at;
      const float* const keys = queries + unit.third;
      float* const grad_queries = grad_input + unit.at;
      float* const grad_keys = grad_queries + unit.third;
      float* const grad_values = grad_keys + unit.third;
      const float* const grad = grad_output + unit.at;
      ForEachBlock([&](int64_t first, int64_t count) {
        engine_.attention.product(MeanOverQueries(unit, first, count, grad, grad_values));
      });
      // The weights become the gradients of what they are the softmax of.
      Pack(unit, keys + unit.third, 0, spec_.positions, unit.packed);
      std::vector<float> grad_weights(static_cast<size_t>(kBlock * Row()));
      ForEachBlock([&](int64_t first, int64_t count) {
        LaneProduct products = Weigh(unit, first, count, grad, grad_weights.data());
        products.scale = 1;
        engine_.attention.product(products);
        for (int64_t t = first; t < first + count; ++t) {
          float* const row = unit.weights + t * Row();
          engine_.attention.softmax_backward(
              Seen(first, count), row, grad_weights.data() + (t - first) * Row(), scale_, row);
        }
        engine_.attention.product(Mean(unit, first, count, keys, grad_queries));
      });
      ForEachBlock([&](int64_t first, int64_t count) {
        engine_.attention.product(MeanOverQueries(unit, first, count, queries, grad_keys));
      });
    });
  }

 private:
  // One head of 16 samples.
  struct Unit {
    int64_t at;       // where its numbers begin in the queries and in the output
    int64_t third;    // floats from queries to keys, and from keys to values
    int64_t lanes;    // floats between positions
    int64_t channel;  // and between channels
    float* weights;   // [query][key][16]
    float* packed;    // scratch: a head's channels of all positions, then those of a block
  };

  // Floats between the rows of `positions` that are packed, or weighed.
  static int64_t PackedRow(int64_t positions) { return (positions | 1) * kSampleLanes; }
  int64_t Row() const { return PackedRow(spec_.positions); }
  int64_t PackedFloats() const { return spec_.per_head() * (Row() + PackedRow(kBlock)); }
  void Pack(const Unit& unit, const float* channels, int64_t first, int64_t count,
            float* to) const {
    const int64_t row = PackedRow(count);
    for (int64_t d = 0; d < spec_.per_head(); ++d) {
      const float* const from = channels + d * unit.channel + first * unit.lanes;
      for (int64_t t = 0; t < count; ++t) {
        std::copy_n(from + t * unit.lanes, kSampleLanes, to + d * row + t * kSampleLanes);
      }
    }
  }
  // Positions that a block of queries looks at.
  int64_t Seen(int64_t first, int64_t count) const {
    return spec_.causal ? first + count : spec_.positions;
  }

  template <typename Body>
  void ForEachUnit(const Pass& pass, const Body& body) {
    const int64_t lanes = LaneStride(pass.batch);
    const int64_t blocks = lanes / kSampleLanes;
    const int64_t channel = spec_.positions * lanes;
    engine_.Parallel(spec_.heads * blocks, [&](int64_t i) {
      const int64_t head = i / blocks;
      body(Unit{head * spec_.per_head() * channel + i % blocks * kSampleLanes,
                spec_.channels * channel, lanes, channel,
                weights_.data() + i * spec_.positions * Row(),
                engine_.Scratch() + i * PackedFloats()});
    });
  }
  template <typename Body>
  void ForEachBlock(const Body& body) {
    for (int64_t first = 0; first < spec_.positions; first += kBlock) {
      body(first, std::min(kBlock, spec_.positions - first));
    }
  }

  // to[t][s] = scale sum_d from[d][t] by[d][s] for a block of t; `by` has been packed.
  LaneProduct Weigh(const Unit& unit, int64_t first, int64_t count, const float* from,
                    float* to) const {
    float* const block = unit.packed + spec_.per_head() * Row();
    Pack(unit, from, first, count, block);
    return {count,
            Seen(first, count),
            spec_.per_head(),
            block,
            kSampleLanes,
            PackedRow(count),
            unit.packed,
            kSampleLanes,
            Row(),
            to,
            Row(),
            kSampleLanes,
            scale_};
  }
  // to[d][t] = sum_s weights[t][s] of[d][s] for a block of t.
  LaneProduct Mean(const Unit& unit, int64_t first, int64_t count, const float* of,
                   float* to) const {
    return {count,
            spec_.per_head(),
            Seen(first, count),
            unit.weights + first * Row(),
            Row(),
            kSampleLanes,
            of,
            unit.channel,
            unit.lanes,
            to + first * unit.lanes,
            unit.lanes,
            unit.channel,
            1.0f};
  }
  // to[d][s] = sum_t weights[t][s] of[d][t] for a block of s.
  LaneProduct MeanOverQueries(const Unit& unit, int64_t first, int64_t count, const float* of,
                              float* to) const {
    const int64_t begin = spec_.causal ? first : 0;
    return {count,
            spec_.per_head(),
            spec_.positions - begin,
            unit.weights + begin * Row() + first * kSampleLanes,
            kSampleLanes,
            Row(),
            of + begin * unit.lanes,
            unit.channel,
            unit.lanes,
            to + first * unit.lanes,
            unit.lanes,
            unit.channel,
            1.0f};
  }

  Engine& engine_;
  AttentionSpec spec_;
  float scale_;
  DeviceArray<float> weights_;  // of the last Forward, by unit
};

}  // namespace

std::unique_ptr<Op> MakeOp(Engine& engine, const AttentionSpec& spec, int max_batch) {
  engine.NeedWholeRows();
  return std::make_unique<Attention>(engine, spec, max_batch);
}

}  // namespace kumo::cpu
