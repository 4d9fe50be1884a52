// SPDX-License-Identifier: MIT
// The package `tensorgrad`: trains neural networks in a page or in node.
export * from './callbacks.js';
export { close, serve, type EngineKind } from './engine.js';
export {
  AbortedError, DeviceError, DeviceLostError, DtypeError, InternalError, IoError, ShapeError,
  TensorgradError, UserError,
} from './errors.js';
export {
  CompiledFunction, compileFunction, devices, type FunctionSpec, type HostTensor, type Outputs,
  type ProfileResult, type TensorData, type Traced,
} from './function.js';
export * from './generated/layers.js';
export * from './generated/ops.js';
export type * from './generated/types.js';
export * as init from './generated/init.js';
export * as optim from './generated/optim.js';
export * as schedule from './generated/schedule.js';
export { assets } from './instance.js';
export { Init, Optimizer, Schedule, adjustable, type Adjustable } from './make.js';
export { Buffer, Layer, LayerParameter, Module, Parameter, Sequential } from './module.js';
export type {
  Elements, Feed, InputDeclaration, InputDeclarations, InputSpec, ParamFilter, TracedBatches,
  TracedInputs,
} from './options.js';
export type { WhenHidden } from './hidden.js';
export { singleFlight, type Flight } from './single_flight.js';
export { Tensor, type Operand, type TensorLike, type TensorSource } from './tensor.js';
export {
  Generator, TextScorer, Tokenizer, saveLanguageModel, type GeneratedText, type Score,
} from './text.js';
export { compile, Trainer, type StepOptions, type StepOutcome, type StepResult,
  type TrainingSpec } from './trainer.js';
