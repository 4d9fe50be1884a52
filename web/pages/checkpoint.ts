// SPDX-License-Identifier: MIT
// Checkpoints with a description of their page: a safetensors file that the library and `tg` read,
// with settings and state in its metadata.

/** What a page adds to a checkpoint. `page` is the title of the page. */
export interface Saved { page: string; settings: { [name: string]: string }; state: object }

const key = 'page', lengthBytes = 8;
const metadata = '{"__metadata__":{', checksum = '"tensorgrad.checksum":"crc32 ';

/** Returns a checkpoint with a description in the metadata. */
export function describe(checkpoint: Uint8Array, saved: Saved): Uint8Array<ArrayBuffer> {
  const size = headerSize(checkpoint);
  const header = new TextDecoder().decode(checkpoint.subarray(lengthBytes, lengthBytes + size));
  const field = `"${key}":${JSON.stringify(JSON.stringify(saved))},`;
  const text = new TextEncoder().encode(metadata + field + header.slice(metadata.length).trimEnd());
  const padded = new Uint8Array(Math.ceil(text.length / 8) * 8).fill(0x20);
  padded.set(text);
  sign(padded);
  const bytes = new Uint8Array(checkpoint.length - size + padded.length);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(padded.length), true);
  bytes.set(padded, lengthBytes);
  bytes.set(checkpoint.subarray(lengthBytes + size), lengthBytes + padded.length);
  return bytes;
}

/**
 * Returns the description in a checkpoint of a page, or nothing for one of another program. Throws
 * if the file is no checkpoint, is truncated, or is from another page.
 */
export function descriptionOf(bytes: Uint8Array, file: string, page: string): Saved | undefined {
  const size = bytes.length > lengthBytes ? headerSize(bytes) : 0;
  if (bytes[lengthBytes] !== 0x7b || size < 2 || size > 1e8)
    throw new Error(`${file} is not a checkpoint of tensorgrad.`);
  if (lengthBytes + size > bytes.length)
    throw new Error(`${file} is truncated: it ends in its header, after ${bytes.length} bytes.`);
  let header: { [name: string]: any };
  try {
    header = JSON.parse(new TextDecoder().decode(bytes.subarray(lengthBytes, lengthBytes + size)));
  } catch {
    throw new Error(`${file} is damaged: its header cannot be read.`);
  }
  const { __metadata__: fields, ...tensors } = header;
  const end = Math.max(0, ...Object.values(tensors).map((each) => Number(each?.data_offsets?.[1])));
  const whole = lengthBytes + size + end;
  if (bytes.length < whole)
    throw new Error(`${file} is truncated: it has ${bytes.length} of ${whole} bytes.`);
  if (!fields?.['tensorgrad.version'])
    throw new Error(`${file} has weights only. This page opens checkpoints of training runs.`);
  if (fields[key] === undefined) return undefined;
  const saved = JSON.parse(fields[key]) as Saved;
  if (saved.page !== page)
    throw new Error(`${file} is a checkpoint of the page ${saved.page}. Open it there.`);
  return saved;
}

function headerSize({ buffer, byteOffset }: Uint8Array): number {
  return Number(new DataView(buffer, byteOffset).getBigUint64(0, true));
}

// Updates the checksum of a header: the CRC-32 of the header with zeros for the checksum.
function sign(header: Uint8Array): void {
  const at = new TextDecoder('latin1').decode(header).indexOf(checksum) + checksum.length;
  header.fill(0x30, at, at + 8);
  let crc = ~0;
  for (const byte of header) {
    crc ^= byte;
    for (let bit = 0; bit < 8; ++bit) crc = (crc >>> 1) ^ (crc & 1 && 0xedb88320);
  }
  header.set(new TextEncoder().encode((~crc >>> 0).toString(16).padStart(8, '0')), at);
}
