// SPDX-License-Identifier: MIT
// Runs one C++ sample: puts its data into the memory file system, calls main(), and returns the
// pictures that it has written.

export interface Job {
  name: string;
  options: string[];
  files: { path: string; url: string }[];  // data of the sample, and where it expects it
}
export type Result = { line: string } | { error: string }
  | { status: number; pictures: { name: string; bytes: Uint8Array<ArrayBuffer> }[] };

const out = '/out';
const post = (result: Result) => postMessage(result);

async function run({ name, options, files }: Job): Promise<void> {
  const { default: create } = await import(new URL(`samples/${name}.js`, location.href).href);
  const print = (line: string) => post({ line });
  const { FS, callMain } = await create({ print, printErr: print });
  for (const { path, url } of files) {
    print(`loading ${path}`);
    const response = await fetch(url);
    if (!response.ok) throw new Error(`${url}: ${response.status} ${response.statusText}`);
    FS.mkdirTree(path.slice(0, path.lastIndexOf('/')));
    FS.writeFile(path, new Uint8Array(await response.arrayBuffer()));
  }
  const status: number = await callMain([...options, '--out', out]);
  const names: string[] = FS.readdir(out).filter((each: string) => /\.(svg|png)$/.test(each));
  post({ status, pictures: names.map((each) => ({ name: each, bytes: FS.readFile(`${out}/${each}`) })) });
}

onmessage = ({ data }: MessageEvent<Job>) => {
  run(data).catch((error) => post({ error: `${error.message ?? error}` }));
};
