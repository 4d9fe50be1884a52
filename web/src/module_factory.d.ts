// SPDX-License-Identifier: MIT
// What emscripten makes of web/bindings: the bundle has that of the core module under this name.
declare module '#module' {
  const makeModule: (options: object) => Promise<any>;
  export default makeModule;
}
