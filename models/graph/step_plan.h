// What a net does in one training step: instructions over arrays, and where these arrays lie.
//
// Arrays are activations of the largest minibatch and their gradients. Each is alive from the
// instruction that writes it to the last one that reads it, and those that are never alive at the
// same time share memory. An op that can work in place gets its input's array for its output where
// nobody reads the input afterwards, and so does its gradient, backwards.
//
// Gradients. Instructions backwards are those forward in opposite order; a node that leads to no
// loss that weighs something has none. A value that several nodes or losses read gets a gradient
// from each: from the second on they are added (kSum), the one that came first being the first
// term, so that the bits are those of the graph and of nothing else. Where an op passes its
// output's gradient on as it is (a sum's inputs), nothing is copied: its inputs share the array,
// until one of them is to be written, which then gets an array of its own.
//
// Pure functions of their arguments; thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "models/graph/graph.h"

namespace kumo {

// What a plan must know of a node's op; see Op.
struct OpTraits {
  bool can_run_in_place = false;
  bool reads_input = false;
  bool reads_output = false;
  bool passes_gradient = false;
};

struct Instruction {
  enum class Kind {
    kForward,   // inputs -> outputs
    kLoss,      // inputs[0], the scores -> grad_inputs[0], kNone of what weighs nothing
    kBackward,  // grad_outputs, and what of inputs and outputs the op reads -> grad_inputs
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
  // Of each array in one piece of memory. The first arrays are the inputs', which are the caller's:
  // theirs mean nothing.
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
