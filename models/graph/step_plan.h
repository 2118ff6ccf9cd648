// Plan of one training step: instructions over arrays, and the places of these arrays in memory.
//
// Arrays are activations of the largest minibatch and their gradients. An array is alive from the
// instruction that writes it to the last instruction that reads it. Arrays that are never alive at
// the same time share memory. An op that can work in place gets its input's array as its output if
// nobody reads the input afterwards; so does its gradient, backward.
//
// Gradients. Backward instructions are the forward instructions in opposite order. A node that
// leads to no loss with a weight has no gradient; nor has a node that is not trained and has no
// trained node before it, so the way back ends at the first trained nodes. A value that several
// nodes or losses read gets a gradient from each reader: from the second gradient on they are added
// (kSum) to the first, so that the bits depend on the graph alone. If an op passes its output's
// gradient on unchanged (a sum to its inputs), nothing is copied: the inputs share the array until
// one of them is written, which then gets its own array.
//
// Pure functions of their arguments; thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "models/graph/graph.h"

namespace kumo {

// Properties of a node's op; see Op.
struct OpTraits {
  bool can_run_in_place = false;
  bool reads_input = false;
  bool reads_output = false;
  bool passes_gradient = false;
};

struct Instruction {
  enum class Kind {
    kForward,   // inputs -> outputs
    kLoss,      // inputs -> grad_inputs, kNone without a weight
    kBackward,  // grad_outputs, and the inputs and outputs that the op reads -> grad_inputs
    kSum,       // inputs[0] + inputs[1] -> outputs[0]
  };
  static constexpr int kNone = -1;  // in grad_inputs: nobody needs it

  Kind kind = Kind::kForward;
  int node = 0;  // of kForward and kBackward; the loss of kLoss
  Shape shape;   // of kSum
  // Arrays.
  std::vector<int> inputs;
  std::vector<int> outputs;
  std::vector<int> grad_outputs;
  std::vector<int> grad_inputs;
};

struct StepPlan {
  std::vector<Instruction> forward;
  std::vector<Instruction> backward;  // the losses first
  // Offset of each array in one piece of memory. The first arrays are inputs, which belong to the
  // caller: their offsets are unused.
  std::vector<int64_t> offsets;
  int64_t bytes = 0;          // of that piece
  std::vector<int> array_of;  // by value
};

// traits: of each node's op. bytes_of: the length of an array.
StepPlan MakeStepPlan(const Graph& graph, std::span<const OpTraits> traits,
                      const std::function<int64_t(const Shape&)>& bytes_of);

// An array that is alive from instruction `first` to `last`.
struct Lifetime {
  int64_t bytes = 0;
  int first = 0;
  int last = 0;
};

// An offset for each, so that no two overlap that are alive at the same time: the largest first,
// each as low as it fits (Pisarchyk and Lee 2020, Efficient Memory Management for Deep Neural Net
// Inference, greedy by size). Offsets are multiples of 256. *total becomes the length of it all.
std::vector<int64_t> PlaceArrays(std::span<const Lifetime> arrays, int64_t* total);

}  // namespace kumo
