// SPDX-License-Identifier: MIT
import '@tensorflow/tfjs-backend-webgpu';
import { prepareOn } from './tfjs.mjs';

export const name = 'TensorFlow.js';
export const prepare = (shape) => prepareOn('webgpu', shape);
