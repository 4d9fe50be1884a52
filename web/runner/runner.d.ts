// SPDX-License-Identifier: MIT
// Types of runner.js: a model that tensorgrad has exported for pages.

/**
 * What an error is about:
 * - `no-webgpu`: the browser has no WebGPU, or the page is not in a secure context
 * - `no-adapter`: there is no GPU that WebGPU can use
 * - `unsupported`: the GPU or the browser lacks a feature or a limit that the model needs
 * - `memory`: the GPU has no room for the model
 * - `load`: a file cannot be fetched
 * - `format`: a file is damaged or not of the format
 * - `version`: the format has another version than the runner
 * - `input`: an input has a wrong name, type, size or index
 * - `kernel`: the browser rejects a kernel or a run
 * - `device-lost`: the GPU was lost; load() the model again
 * - `destroyed`: the model was destroyed
 */
export type ErrorCode =
  | 'no-webgpu' | 'no-adapter' | 'unsupported' | 'memory' | 'load' | 'format' | 'version' | 'input'
  | 'kernel' | 'device-lost' | 'destroyed';

export class TensorgradError extends Error {
  readonly code: ErrorCode;
}

export type DType = 'f32' | 'f16' | 'i32' | 'u32' | 'bool';

/** Elements in row-major order; f16 as Float32Array, bool as Uint8Array of 0 and 1. */
export type Tensor = Float32Array | Int32Array | Uint32Array | Uint8Array;

export interface Port {
  readonly name: string;
  readonly dtype: DType;
  /** Sizes that depend on the dynamic size are null if several were exported. */
  readonly shape: readonly (number | null)[];
}

export interface LoadOptions {
  /** The page's own GPUDevice, to share it; default: a new device. */
  device?: GPUDevice;
  /** Where adapters come from; default: navigator.gpu. */
  gpu?: GPU;
  /** Seed of random ops; default: the seed of the exported function. */
  seed?: number;
}

export class Model {
  readonly name: string;
  /** WebOptions::doc, or the classes of `tg export --web`. */
  readonly doc: string;
  readonly device: GPUDevice;
  readonly inputs: readonly Port[];
  readonly outputs: readonly Port[];
  /** Sizes of the dynamic dimension that were exported; empty if there is none. */
  readonly sizes: readonly number[];

  /**
   * Runs the function and returns its outputs by name. The number of elements selects one of the
   * exported sizes. Calls run in their order, and several can be in flight. Rejects with
   * TensorgradError. The type argument names the outputs: `run<{probs: Float32Array}>({x})`.
   */
  run<Outputs = Record<string, Tensor>>(inputs?: Record<string, Tensor>): Promise<Outputs>;

  /** Sets all states to their exported values, and starts the random numbers anew. */
  reset(): void;

  /** Frees the GPU's memory, and the device if load() opened it. */
  destroy(): void;
}

/**
 * Loads a model: the folder that export_web() wrote, relative to the page, or what the page has
 * read itself. Compiles all kernels. Rejects with TensorgradError.
 */
export function load(
  source: string | URL | {manifest: object; weights: ArrayBuffer | Promise<ArrayBuffer>},
  options?: LoadOptions): Promise<Model>;
