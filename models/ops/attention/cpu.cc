// Attention over a sequence. The heads of all samples are independent of each other. One unit of
// work is 16 pairs of a head and a sample, which may belong to several heads. Operands are copied
// to rows of these 16 first, and results from such rows.
//
// Positions are processed in blocks. If the op is causal, a block of queries looks at the positions
// up to the block's own end, and positions behind a query within the block have weight 0; so no
// block reads weights that were not computed.
//
// The weights after dropout are kept beside those of the softmax: gradients need both.
//
// In the activations the channels of a position lie a multiple of 4 KiB apart if positions and
// samples are powers of two, and a cache keeps few of such numbers. So the rows here have another
// length.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>

#include "models/backend/cpu/ops.h"
#include "models/ops/attention/cpu_kernel.h"
#include "models/ops/dropout/stream.h"

namespace kumo::cpu {
namespace {

constexpr int64_t kBlock = 8;   // positions
constexpr int64_t kPacked = 3;  // arrays of a unit

class Attention final : public FloatOp {
 public:
  Attention(CpuEngine& engine, const AttentionSpec& spec, int max_batch)
      : engine_(engine),
        kernels_(KUMO_AT_ISA(engine.isa, kAttention)),
        spec_(spec),
        scale_(1.0f / std::sqrt(static_cast<float>(spec.per_head()))),
        weights_(engine.memory, Units(max_batch) * spec.positions * Row(), kWorkspace) {
    if (spec.dropout > 0) {
      dropped_ = {engine.memory, Units(max_batch) * spec.positions * Row(), kWorkspace};
    }
    engine.ReserveScratch(engine.threads() * ScratchFloats());
  }

  bool reads_input() const override { return true; }
  int64_t bytes() const override { return weights_.bytes() + dropped_.bytes(); }

  void ForwardFloats(const Pass& pass, const float* input, float* output) override {
    if (engine_.Scratch() == nullptr) return;
    const int64_t third = spec_.channels * Channel(pass);
    const bool drops = pass.training && spec_.dropout > 0;
    ForEachUnit(pass, [&](const Unit& unit) {
      float* const queries = unit.packed[0];  // and, a block after the other, the results
      float* const keys = unit.packed[1];
      float* const values = unit.packed[2];
      Pack(unit, input, queries);
      Pack(unit, input + third, keys);
      Pack(unit, input + 2 * third, values);
      ForEachBlock([&](int64_t first, int64_t count) {
        const int64_t seen = Seen(first, count);
        float* const weights = unit.weights + first * Row();
        kernels_.product(Weigh(first, count, queries, keys, scale_, weights));
        for (int64_t t = first; t < first + count; ++t) {
          float* const row = unit.weights + t * Row();
          const int64_t own = spec_.causal ? t + 1 : seen;
          kernels_.softmax(own, row);
          std::fill(row + own * kSampleLanes, row + seen * kSampleLanes, 0.0f);
          if (drops) Drop(unit, t, own);
        }
        kernels_.product(Mean(first, count, drops ? unit.dropped : unit.weights, values, queries));
      });
      Unpack(unit, queries, output);
    });
  }

  void BackwardFloats(const Pass& pass, const float* input, const float*, const float* grad_output,
                      float* grad_input) override {
    if (grad_input == nullptr || engine_.Scratch() == nullptr) return;
    const int64_t third = spec_.channels * Channel(pass);
    ForEachUnit(pass, [&](const Unit& unit) {
      const float* const used = spec_.dropout > 0 ? unit.dropped : unit.weights;
      float* const grad = unit.packed[0];  // and the queries' gradients in the same way
      float* const grad_values = unit.packed[1];
      Pack(unit, grad_output, grad);
      ForEachBlock([&](int64_t first, int64_t count) {
        kernels_.product(MeanOverQueries(first, count, used, grad, grad_values));
      });
      Unpack(unit, grad_values, grad_input + 2 * third);

      float* const keys = unit.packed[1];
      float* const values = unit.packed[2];
      Pack(unit, input + third, keys);
      Pack(unit, input + 2 * third, values);
      ForEachBlock([&](int64_t first, int64_t count) {
        kernels_.product(Weigh(first, count, grad, values, 1, unit.grad_weights));
        if (spec_.dropout > 0) DropGradients(unit, first, count);
        // The weights become the gradients of what they are the softmax of.
        for (int64_t t = first; t < first + count; ++t) {
          float* const row = unit.weights + t * Row();
          kernels_.softmax_backward(Seen(first, count), row,
                                    unit.grad_weights + (t - first) * Row(), scale_, row);
        }
        kernels_.product(Mean(first, count, unit.weights, keys, grad));
      });
      Unpack(unit, grad, grad_input);

      float* const queries = unit.packed[1];
      float* const grad_keys = unit.packed[2];
      Pack(unit, input, queries);
      ForEachBlock([&](int64_t first, int64_t count) {
        kernels_.product(MeanOverQueries(first, count, unit.weights, queries, grad_keys));
      });
      Unpack(unit, grad_keys, grad_input + third);
    });
  }

 private:
  // Neighbouring samples of a head.
  struct Run {
    int64_t head;
    int64_t sample;  // the first one,
    int64_t at;      // place of its numbers in the activations,
    int64_t lane;    // and in the unit
    int64_t count;
    int64_t padding;  // lanes behind them in the activations, which no sample has
  };
  // 16 times a head of a sample, or what is left of these.
  struct Unit {
    std::array<Run, kSampleLanes> runs;
    int64_t run_count;
    int64_t used;     // lanes
    int64_t lanes;    // floats between positions of the activations
    int64_t channel;  // and between channels
    float* weights;   // [query][key][16]
    float* dropped;   // weights after dropout, in the same order
    // In the scratch:
    std::array<float*, kPacked> packed;  // [channel of the head][position][16]
    float* grad_weights;                 // [query of a block][key][16]
  };

  int64_t Channel(const Pass& pass) const { return spec_.positions * engine_.Lanes(pass.batch); }
  int64_t Units(int64_t batch) const {
    return (spec_.heads * batch + kSampleLanes - 1) / kSampleLanes;
  }
  // Floats between the rows of weights or of packed channels.
  int64_t Row() const { return (spec_.positions | 1) * kSampleLanes; }
  int64_t PackedFloats() const { return spec_.per_head() * Row(); }
  // Scratch of a thread, which has one unit at a time.
  int64_t ScratchFloats() const { return kPacked * PackedFloats() + kBlock * Row(); }

  template <typename Body>
  void ForEachUnit(const Pass& pass, const Body& body) {
    const int64_t units = Units(pass.batch);
    const int64_t pieces = std::min<int64_t>(engine_.threads(), units);
    engine_.Parallel(pieces, [&](int64_t piece) {
      float* const scratch = engine_.Scratch() + piece * ScratchFloats();
      for (int64_t i = units * piece / pieces; i < units * (piece + 1) / pieces; ++i) {
        body(UnitAt(pass, i, scratch));
      }
    });
  }
  Unit UnitAt(const Pass& pass, int64_t index, float* scratch) {
    const int64_t lanes = engine_.Lanes(pass.batch);
    Unit unit{};
    unit.lanes = lanes;
    unit.channel = Channel(pass);
    unit.weights = weights_.data() + index * spec_.positions * Row();
    if (spec_.dropout > 0) unit.dropped = dropped_.data() + index * spec_.positions * Row();
    for (float*& packed : unit.packed) {
      packed = scratch;
      scratch += PackedFloats();
    }
    unit.grad_weights = scratch;
    const int64_t end = std::min<int64_t>((index + 1) * kSampleLanes, spec_.heads * pass.batch);
    for (int64_t i = index * kSampleLanes; i < end;) {
      const int64_t head = i / pass.batch, sample = i % pass.batch;
      const int64_t count = std::min(pass.batch - sample, end - i);
      unit.runs[unit.run_count++] = {
          head,      sample, head * spec_.per_head() * unit.channel + sample,
          unit.used, count,  sample + count == pass.batch ? lanes - pass.batch : 0};
      unit.used += count;
      i += count;
    }
    return unit;
  }

  // From the queries, the keys, the values or the output. Lanes that nothing is in are zeros.
  void Pack(const Unit& unit, const float* from, float* to) const {
    ForEachRow(unit, [&](const Run& run, int64_t activation, int64_t packed) {
      CopySamples(from + activation, run.count, to + packed);
    });
    if (unit.used == kSampleLanes) return;
    for (int64_t d = 0; d < spec_.per_head(); ++d) {
      for (int64_t t = 0; t < spec_.positions; ++t) {
        float* const row = to + d * Row() + t * kSampleLanes;
        std::fill(row + unit.used, row + kSampleLanes, 0.0f);
      }
    }
  }
  void Unpack(const Unit& unit, const float* from, float* to) const {
    ForEachRow(unit, [&](const Run& run, int64_t activation, int64_t packed) {
      CopySamples(from + packed, run.count, to + activation);
      std::fill_n(to + activation + run.count, run.padding, 0.0f);
    });
  }
  // body(run, place of its numbers in the activations, place among the packed numbers)
  template <typename Body>
  void ForEachRow(const Unit& unit, const Body& body) const {
    for (int64_t r = 0; r < unit.run_count; ++r) {
      const Run& run = unit.runs[r];
      for (int64_t d = 0; d < spec_.per_head(); ++d) {
        for (int64_t t = 0; t < spec_.positions; ++t) {
          body(run, run.at + d * unit.channel + t * unit.lanes,
               d * Row() + t * kSampleLanes + run.lane);
        }
      }
    }
  }

  float keep() const { return 1.0f / (1.0f - spec_.dropout); }
  // Dropout of query t, which looks at `own` positions.
  void Drop(const Unit& unit, int64_t t, int64_t own) const {
    const float* const from = unit.weights + t * Row();
    float* const to = unit.dropped + t * Row();
    std::fill_n(to, Row(), 0.0f);
    Rng stream = DropoutStream(engine_.step.streams, spec_.layer);
    for (int64_t r = 0; r < unit.run_count; ++r) {
      const Run& run = unit.runs[r];
      for (int64_t i = 0; i < run.count; ++i) {
        const int64_t row = ((run.sample + i) * spec_.heads + run.head) * spec_.positions + t;
        stream.MoveTo(static_cast<uint64_t>(row * spec_.positions));
        for (int64_t at = run.lane + i; at < own * kSampleLanes; at += kSampleLanes) {
          if (stream.NextUniform() >= spec_.dropout) to[at] = from[at] * keep();
        }
      }
    }
  }
  // Gradients of a block of queries through dropout. A weight of 0 is treated as dropped; it has no
  // gradient either.
  void DropGradients(const Unit& unit, int64_t first, int64_t count) const {
    const float* const dropped = unit.dropped + first * Row();
    for (int64_t i = 0; i < count * Row(); ++i) {
      unit.grad_weights[i] = dropped[i] == 0.0f ? 0.0f : unit.grad_weights[i] * keep();
    }
  }

  // Positions that a block of queries looks at.
  int64_t Seen(int64_t first, int64_t count) const {
    return spec_.causal ? first + count : spec_.positions;
  }
  template <typename Body>
  void ForEachBlock(const Body& body) const {
    for (int64_t first = 0; first < spec_.positions; first += kBlock) {
      body(first, std::min(kBlock, spec_.positions - first));
    }
  }

  // to[t][s] = scale sum_d from[d][t] by[d][s] for a block of t.
  LaneProduct Weigh(int64_t first, int64_t count, const float* from, const float* by, float scale,
                    float* to) const {
    return {count,
            Seen(first, count),
            spec_.per_head(),
            from + first * kSampleLanes,
            kSampleLanes,
            Row(),
            by,
            kSampleLanes,
            Row(),
            to,
            Row(),
            kSampleLanes,
            scale};
  }
  // to[d][t] = sum_s weights[t][s] of[d][s] for a block of t.
  LaneProduct Mean(int64_t first, int64_t count, const float* weights, const float* of,
                   float* to) const {
    return {count,
            spec_.per_head(),
            Seen(first, count),
            weights + first * Row(),
            Row(),
            kSampleLanes,
            of,
            Row(),
            kSampleLanes,
            to + first * kSampleLanes,
            kSampleLanes,
            Row(),
            1.0f};
  }
  // to[d][s] = sum_t weights[t][s] of[d][t] for a block of s.
  LaneProduct MeanOverQueries(int64_t first, int64_t count, const float* weights, const float* of,
                              float* to) const {
    const int64_t begin = spec_.causal ? first : 0;
    return {count,
            spec_.per_head(),
            spec_.positions - begin,
            weights + begin * Row() + first * kSampleLanes,
            kSampleLanes,
            Row(),
            of + begin * kSampleLanes,
            Row(),
            kSampleLanes,
            to + first * kSampleLanes,
            kSampleLanes,
            Row(),
            1.0f};
  }

  CpuEngine& engine_;
  const AttentionKernels& kernels_;
  AttentionSpec spec_;
  float scale_;
  DeviceArray<float> weights_;  // of the last Forward, by unit
  DeviceArray<float> dropped_;  // likewise; of training with dropout
};

}  // namespace

// Any lanes: the samples are copied to rows of 16.
Padding PaddingOf(const AttentionSpec&) { return Padding::kNone; }

Result<std::unique_ptr<Op>> MakeOp(CpuEngine& engine, const AttentionSpec& spec, int max_batch) {
  return NewOp<Attention>(engine, spec, max_batch);
}

}  // namespace kumo::cpu
