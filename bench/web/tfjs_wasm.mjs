// SPDX-License-Identifier: MIT
import { setWasmPaths } from '@tensorflow/tfjs-backend-wasm';
import { prepareOn } from './tfjs.mjs';

setWasmPaths('/tfjs/');

export const name = 'TensorFlow.js';
export const prepare = (shape) => prepareOn('wasm', shape);
