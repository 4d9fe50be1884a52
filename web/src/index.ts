// SPDX-License-Identifier: MIT
// The package `tensorgrad`: trains neural networks in a page or in node.
export * from './callbacks.js';
export { CustomOp, type CustomOpDefinition, type TensorType } from './custom_op.js';
export { close, serve, type EngineKind } from './engine.js';
export {
  AbortedError, DeviceError, DeviceLostError, DtypeError, InternalError, IoError, ShapeError,
  TensorgradError, UserError,
} from './errors.js';
export {
  CompiledFunction, compileFunction, devices, type FunctionSpec, type Captures, type DataOf, type HostTensor,
  type Outputs, type ProfileResult, type RunOutcome, type TensorData, type Traced,
} from './function.js';
export * from './generated/layers.js';
export * from './generated/ops.js';
export type * from './generated/types.js';
export * as init from './generated/init.js';
export * as optim from './optim.js';
export * as schedule from './generated/schedule.js';
export { assets } from './instance.js';
export type { FitEpoch, FitOptions, FitProgress, FitResult } from './fit.js';
export { DataLoader, prefetch, type Batch, type Sample } from './loader.js';
export { Init, Optimizer, Schedule, adjustable, type Adjustable } from './make.js';
export {
  Buffer, type BufferValues, type ByParameter, Layer, LayerParameter, Module, Parameter,
  type ParameterNames, Sequential,
} from './module.js';
export type {
  Elements, Feed, InputDeclaration, InputDeclarations, InputSpec, ParamFilter, TracedBatches,
  TracedInputs,
} from './options.js';
export type { WhenHidden } from './hidden.js';
export { singleFlight, type Flight } from './single_flight.js';
export { checkSupport, type Support, type SupportReason } from './support.js';
export { Tensor, type DTypeOf, type Operand, type TensorLike, type TensorSource } from './tensor.js';
export {
  Embedder, Generator, TextScorer, Tokenizer, gpt2Config, loadLanguageModel, saveLanguageModel,
  type GeneratedText, type LanguageModelSource, type SavedLanguageModel, type Score,
} from './text.js';
export { Objective, type StepOptions, type StepOutcome, type StepResult } from './objective.js';
export {
  MultiTrainer, Trainer, TrainerBase, compile, readMetadata, type MultiTrainingSpec,
  type ObjectiveSpec, type TrainingSpec,
} from './trainer.js';
