// SPDX-License-Identifier: MIT
// Errors of the library, the same as in C++.

/** Base class of the library's errors. Messages name the op, what was expected, and the line. */
export class TensorgradError extends Error {
  /** File of the user's line that caused the error; empty if unknown. */
  file = '';
  /** That line, from 1; 0 if unknown. */
  line = 0;
  override get name(): string { return 'TensorgradError'; }
}
/** Error of the caller or the environment, such as a wrong argument. */
export class UserError extends TensorgradError {
  override get name(): string { return 'UserError'; }
}
/** Shapes, axes or sizes are invalid or do not match. */
export class ShapeError extends UserError {
  override get name(): string { return 'ShapeError'; }
}
/** Element types are invalid or do not match. */
export class DtypeError extends UserError {
  override get name(): string { return 'DtypeError'; }
}
/** Bytes of a file are truncated or malformed. */
export class IoError extends UserError {
  override get name(): string { return 'IoError'; }
}
/** A device fails: no adapter, out of memory, or a kernel that the driver rejects. */
export class DeviceError extends UserError {
  override get name(): string { return 'DeviceError'; }
}
/** A device is lost while it is in use. */
export class DeviceLostError extends DeviceError {
  override get name(): string { return 'DeviceLostError'; }
}
/** `abort()` stopped the call. */
export class AbortedError extends TensorgradError {
  override get name(): string { return 'AbortedError'; }
}
/** A bug in the library. */
export class InternalError extends TensorgradError {
  override get name(): string { return 'InternalError'; }
}

/** @internal The call needs the full module. */
export class NeedsFullModule extends UserError {}

const classes: Record<string, new (message: string) => TensorgradError> = {
  UserError, ShapeError, DtypeError, IoError, DeviceError, DeviceLostError, AbortedError,
  InternalError, NeedsFullModule,
};

/** @internal Returns the error that C++ describes. */
export function makeError(e: { name: string; message: string; file: string; line: number }): Error {
  const error = new (classes[e.name] ?? InternalError)(e.message);
  error.file = e.file;
  error.line = e.line;
  return error;
}
