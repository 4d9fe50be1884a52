// SPDX-License-Identifier: MIT
// Collects the C++ samples that are built for the web, with their data, for the page samples.html.
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
const programs = join(root, 'build/web/examples');
const fetched = join(root, 'build/_deps/sample-data');

/** Returns the paths of the programs. */
export const builtSamples = () => (existsSync(programs) ? readdirSync(programs) : [])
  .filter((each) => each.endsWith('.js')).map((each) => join(programs, each));

/** Returns the comment at the top of a source, as one line. */
const about = (source) => /^\/\/ SPDX.*\n((?:\/\/.*\n)+)/.exec(source)[1].replace(/^\/\/ ?/gm, '').trim().replaceAll('\n', ' ');

/** Returns the files in a folder and in its subfolders. */
const filesIn = (folder) => readdirSync(folder, { recursive: true })
  .filter((each) => statSync(join(folder, each)).isFile());

/**
 * Copies the programs and their data into OUT/samples, with a list, samples.json. Leaves out samples
 * whose data is not on this machine.
 */
export function collectSamples(out) {
  const to = join(out, 'samples');
  rmSync(to, { recursive: true, force: true });
  mkdirSync(to, { recursive: true });
  const samples = [];
  for (const program of builtSamples()) {
    const name = program.slice(programs.length + 1, -'.js'.length);
    const source = readFileSync(join(root, 'examples', `${name}.cpp`), 'utf8');
    // Paths in the program's file system: those of cmake/examples.cmake.
    const data = /data_folder\(options, "([^"]+)"\)/.exec(source)?.[1];
    const from = data && (data.startsWith('/') ? data : join(fetched, data));
    if (data && !existsSync(from)) {
      console.error(`samples: ${name} is left out, because ${from} is missing`);
      continue;
    }
    const inProgram = data?.startsWith('/') ? data : `/data/${data}`;
    const files = data ? filesIn(from).map((file) => ({ path: `${inProgram}/${file}`, url: `samples${inProgram}/${file}` })) : [];
    if (data) cpSync(from, join(to, inProgram), { recursive: true, dereference: true });
    for (const file of [program, program.replace(/js$/, 'wasm')]) cpSync(file, join(to, file.slice(programs.length + 1)));
    samples.push({ name, about: about(source), files });
  }
  writeFileSync(join(to, 'samples.json'), JSON.stringify(samples));
}
