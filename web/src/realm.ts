// SPDX-License-Identifier: MIT
// Types of values that may be from another realm, such as a frame, where instanceof is false.

const tagOf = (value: unknown): string => Object.prototype.toString.call(value).slice(8, -1);

/** @internal Returns the name of a typed array's type, such as 'Float32Array'; '' for others. */
export const arrayType = (value: unknown): string =>
  ArrayBuffer.isView(value) && tagOf(value) !== 'DataView' ? tagOf(value) : '';

/** @internal Returns true for an ArrayBuffer. */
export const isArrayBuffer = (value: unknown): value is ArrayBuffer => tagOf(value) === 'ArrayBuffer';

/** @internal Returns true for a Map or a Set. */
export const isMapOrSet = (value: unknown): value is Map<unknown, unknown> | Set<unknown> =>
  ['Map', 'Set'].includes(tagOf(value));

/** @internal Returns true for an Error of the language, not for a DOMException. */
export const isError = (value: unknown): value is Error => tagOf(value) === 'Error';

/** @internal Returns true for an object that is not an instance of a class. */
export function isPlainObject(value: unknown): value is { readonly [name: string]: unknown } {
  if (tagOf(value) !== 'Object') return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
