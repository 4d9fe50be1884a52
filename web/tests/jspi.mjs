// SPDX-License-Identifier: MIT
// For node without JSPI: programs that never wait run without it.
if (!('Suspending' in WebAssembly)) {
  WebAssembly.Suspending = function (f) { return f; };
  WebAssembly.promising = (f) => async (...args) => f(...args);
}
