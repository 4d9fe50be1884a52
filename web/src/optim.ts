// SPDX-License-Identifier: MIT
// Optimizers: those of C++, and custom ones.
export * from './generated/optim.js';
export { Update, custom, type CustomOptions, type ParamInfo } from './optimizer.js';
