// SPDX-License-Identifier: MIT
// Vector programs that compute elements in the order of memory, block by block.
#pragma once

#include <algorithm>
#include <cstring>

#include "backend/cpu/block_size.h"
#include "backend/cpu/vector_program.h"

namespace tensorgrad::cpu {

// Runs `body` for blocks of the elements of a program, in parallel.
template <class Body>
void in_blocks(const RunContext& context, const VectorProgram& vector_program,
               std::int64_t elements, const Body& body) {
  const std::int64_t block = vector_program.capacity(), blocks = ceil_div(elements, block);
  const std::int64_t tasks =
      task_count(static_cast<double>(elements) * vector_program.element_cost(), blocks);
  const std::int64_t each = ceil_div(blocks, tasks);
  context.pool.parallel_for(tasks, [&](std::int64_t task, int worker) {
    Frame frame = vector_program.frame(context.scratch(worker));
    for (std::int64_t b = task * each; b < std::min(blocks, (task + 1) * each); ++b) {
      frame.first = b * block;
      frame.count = std::min(block, elements - frame.first);
      body(frame);
    }
  });
}

// An operand of a kernel written by hand, all of whose elements are computed before the kernel
// runs. They are in the launch's shared memory.
class OperandElements {
 public:
  // Adds what it needs to the memory of the runner.
  OperandElements(const Prepare& prepare, const ScalarProgram& program, std::int64_t elements,
                  LaunchRunner& runner)
      : program_(prepare, operand_spec(program, elements)),
        elements_(elements),
        at_(runner.shared_bytes) {
    program_.lay_out(block_elements(program_.element_registers()), 0);
    runner.worker_bytes = std::max(runner.worker_bytes, program_.scratch_bytes());
    runner.shared_bytes += static_cast<std::size_t>(round_up(elements, 16)) * sizeof(Word);
  }

  // Computes and returns the elements.
  Word* compute(const RunContext& context) {
    auto* words = reinterpret_cast<Word*>(context.shared + at_);
    program_.start(context.runtime_scalars);
    in_blocks(context, program_, elements_, [&](Frame& frame) {
      program_.run(program_.ops, frame);
      std::memcpy(words + frame.first, program_.result(frame),
                  static_cast<std::size_t>(frame.count) * sizeof(Word));
    });
    return words;
  }

 private:
  VectorProgram program_;
  std::int64_t elements_;
  std::size_t at_;  // offset in the shared memory
};

}  // namespace tensorgrad::cpu
