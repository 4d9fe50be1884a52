// SPDX-License-Identifier: MIT
// Loads a test program and calls its main(), in a page or in a worker.

/** Returns the exit status. */
export async function run(url, options, log) {
  const {default: create} = await import(url);
  const program = await create({print: log, printErr: log});
  return program.callMain(options);
}

if (typeof WorkerGlobalScope !== 'undefined' && globalThis instanceof WorkerGlobalScope) {
  onmessage = async ({data: {url, options}}) => {
    try {
      postMessage({status: await run(url, options, (line) => postMessage({line}))});
    } catch (error) {
      postMessage({error: String(error.stack ?? error)});
    }
  };
}
