// SPDX-License-Identifier: MIT
// Encoding of values passed to WebAssembly and to a worker. web/bindings/value.h describes the
// format.
import { arrayType, isArrayBuffer } from './realm.js';
import { Tensor, type DType } from './tensor.js';

/** Objects with this method are encoded as its result. */
export const wire: unique symbol = Symbol('wire');

const dtypes: DType[] = ['f32', 'i32', 'u32', 'bool', 'f16'];
const BYTES = 16;
const arrays: { readonly [type: string]: number } =
  { Float32Array: 0, Int32Array: 1, Uint32Array: 2, Uint8Array: BYTES };
const enum Tag { Nothing, Number, Bool, String, List, Object, Tensor, Array }

const utf8 = new TextEncoder();
const text = new TextDecoder();

/** Encodes one value. Functions are encoded as the number that `number` returns. */
export function encode(value: unknown, number?: (f: Function) => number): Uint8Array {
  let bytes = new Uint8Array(512);
  let view = new DataView(bytes.buffer);
  let at = 0;
  const reserve = (size: number) => {
    if (at + size <= bytes.length) return;
    const grown = new Uint8Array(Math.max(2 * bytes.length, at + size));
    grown.set(bytes);
    bytes = grown;
    view = new DataView(bytes.buffer);
  };
  const words = (a: number, b: number) => {
    reserve(8);
    view.setUint32(at, a, true);
    view.setUint32(at + 4, b, true);
    at += 8;
  };
  const raw = (data: Uint8Array) => {
    const padded = (data.length + 7) & ~7;
    reserve(padded);
    bytes.set(data, at);
    bytes.fill(0, at + data.length, at + padded);
    at += padded;
  };
  const string = (value: string) => {
    const data = utf8.encode(value);
    words(Tag.String, data.length);
    raw(data);
  };
  const array = (dtype: number, count: number, data: ArrayBufferView) => {
    words(Tag.Array, count);
    words(dtype, data.byteLength);
    raw(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  };
  const put = (value: any): void => {
    if (value === undefined || value === null) return words(Tag.Nothing, 0);
    switch (typeof value) {
      case 'number':
        words(Tag.Number, 0);
        reserve(8);
        view.setFloat64(at, value, true);
        at += 8;
        return;
      case 'boolean': return words(Tag.Bool, value ? 1 : 0);
      case 'string': return string(value);
      case 'function':
        if (number) return put(number(value));
    }
    if (value instanceof Tensor) return words(Tag.Tensor, value.id);
    if (typeof value === 'object' && wire in value) return put(value[wire]());
    if (Array.isArray(value)) {
      words(Tag.List, value.length);
      for (const each of value) put(each);
    } else if (isArrayBuffer(value)) {
      array(BYTES, value.byteLength, new Uint8Array(value));
    } else if (arrayType(value)) {
      const dtype = arrays[arrayType(value)];
      if (dtype === undefined) put(Array.from(value));
      else array(dtype, value.length, value);
    } else if (typeof value === 'object') {
      const pairs = Object.entries(value).filter(([, each]) => each !== undefined);
      words(Tag.Object, pairs.length);
      for (const [key, each] of pairs) {
        string(key);
        put(each);
      }
    } else {
      throw new TypeError(`expected a value, got a ${typeof value}`);
    }
  };
  put(value);
  return bytes.subarray(0, at);
}

/** Decodes one value. Arrays are copies. */
export function decode(bytes: Uint8Array): any {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  const word = () => view.getUint32((at += 4) - 4, true);
  const double = () => view.getFloat64((at += 8) - 8, true);
  const raw = (size: number) => {
    const data = bytes.subarray(at, at + size);
    at += (size + 7) & ~7;
    return data;
  };
  const value = (): any => {
    const tag = word(), count = word();
    switch (tag) {
      case Tag.Nothing: return undefined;
      case Tag.Number: return double();
      case Tag.Bool: return count !== 0;
      case Tag.String: return text.decode(raw(count));
      case Tag.List: return Array.from({ length: count }, value);
      case Tag.Object:  // an assignment to the key `__proto__` would not add it
        return Object.fromEntries(Array.from({ length: count }, () => [value(), value()]));
      case Tag.Tensor: {
        const dtype = word(), rank = word();
        return new Tensor(count, Array.from({ length: rank }, double), dtypes[dtype]!);
      }
      case Tag.Array: {
        const dtype = word();
        const data = raw(word()).slice().buffer;
        return dtype === 0 ? new Float32Array(data) : dtype === 1 ? new Int32Array(data)
          : dtype === BYTES ? new Uint8Array(data) : new Uint32Array(data);
      }
    }
    throw new Error(`tensorgrad: a value has the unknown tag ${tag}`);
  };
  return value();
}
