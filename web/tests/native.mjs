// SPDX-License-Identifier: MIT
// The native tool `tg` for tests: TENSORGRAD_TG, or the one of build/release if there is one.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const built = fileURLToPath(new URL('../../build/release/tg', import.meta.url));

/** Path of the tool. */
export const tool = process.env.TENSORGRAD_TG ?? built;

/** Option of tests that need the tool: why they are skipped. Never if TENSORGRAD_TG is set. */
export const skip = process.env.TENSORGRAD_TG || existsSync(built)
  ? false : 'build/release/tg is not built, and TENSORGRAD_TG is not set';

/**
 * Runs the tool on one thread of the CPU and returns what it prints. `target` limits the instruction
 * set. A run that --stop-after stops exits with 130.
 */
export function tg(folder, args, target = '') {
  const { status, stdout, stderr, error } = spawnSync(tool, [...args, '--device', 'cpu', '--threads', '1'], {
    cwd: folder, encoding: 'utf8', env: { ...process.env, TENSORGRAD_CPU_TARGET: target } });
  if (error) throw error;
  if (status !== 0 && status !== 130) throw new Error(`tg ${args.join(' ')}: ${status}\n${stdout}${stderr}`);
  return stdout;
}

/** Whether the CPU has an instruction set that computes as WebAssembly does, without fused products. */
export const target = process.arch === 'x64' ? 'SSE4' : '';

/** Reads a safetensors file: tensors by name, and the metadata. */
export function readTensors(bytes) {
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
  const { __metadata__: metadata = {}, ...entries } =
    JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
  const types = { F32: Float32Array, I32: Int32Array, U32: Uint32Array };
  const tensors = Object.fromEntries(Object.entries(entries).map(
    ([name, { dtype, shape, data_offsets: [begin, end] }]) => {
      const { buffer } = bytes.slice(8 + length + begin, 8 + length + end);
      return [name, { dtype, shape, data: new types[dtype](buffer) }];
    }));
  return { tensors, metadata };
}

/** Returns the bytes of a safetensors file. */
export function writeTensors(tensors) {
  const entries = Object.entries(tensors);
  let at = 0;
  const header = Object.fromEntries(entries.map(([name, { dtype, shape, data }]) => {
    const begin = at;
    at += data.byteLength;
    return [name, { dtype, shape, data_offsets: [begin, at] }];
  }));
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([length, text, ...entries.map(([, { data }]) =>
    Buffer.from(data.buffer, data.byteOffset, data.byteLength))]);
}
