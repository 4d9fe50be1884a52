// SPDX-License-Identifier: MIT
// Named values of a traced function: run-time scalars, states and captures.
#pragma once

#include <string>

#include "tensorgrad/tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Returns a run-time scalar, f32[], which starts as `initial`. Stepper::set() changes its value
/// between steps. Calls with the same name return the same scalar. Throws UserError if the name is
/// empty or begins with an underscore, or if the scalar exists with another initial value.
Tensor scalar(const std::string& name, double initial, Loc loc = Loc::current());

/// Returns a state: a tensor that keeps its value from step to step. All its elements start as
/// `initial`. If set_state() is called in the traced function, the state changes after each step.
/// Checkpoints include it. Supports all types except f16. Throws UserError if the state exists, or
/// if its name is empty or begins with an underscore or "optim.".
Tensor state(const std::string& name, const Shape& shape, double initial = 0, DType dtype = f32,
             Loc loc = Loc::current());

/// Sets the value of a state after the step. Throws ShapeError if the value has another shape or
/// type than the state, and UserError if there is no such state or if it is set twice.
void set_state(const std::string& name, Tensor value, Loc loc = Loc::current());

/// Names a tensor and returns it. Stepper::step() and CompiledFunction::run() return its value if
/// it is requested. A capture costs nothing until then: the first request compiles a version of the
/// function that returns captures. Throws UserError if the name is empty or in use.
Tensor capture(const std::string& name, Tensor x, Loc loc = Loc::current());

/// Writes the elements of a tensor to the standard error stream each time that the function runs,
/// and returns the tensor (`jax.debug.print`). For example, `print(scores, "scores")` writes
/// `scores = f32[2,2] {1, 0.5, 0, 1}`. Long tensors are shortened.
///
/// For debugging: each step waits for the device. Stepper::run() takes its steps one at a time, and
/// submit() and step_for() throw UserError. The tensor is also a capture() of this name, and
/// print() throws the errors of capture().
Tensor print(Tensor x, const std::string& name, Loc loc = Loc::current());

}  // namespace tensorgrad::inline TENSORGRAD_ABI
