// SPDX-License-Identifier: MIT
// The module factory that emscripten generates from web/bindings. The bundle has that of the core
// module under this name.
declare module '#module' {
  const makeModule: (options: object) => Promise<any>;
  export default makeModule;
}
