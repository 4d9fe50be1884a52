// SPDX-License-Identifier: MIT
// What the tests in Chromium share.
import { fileURLToPath } from 'node:url';

export { launch, serve } from '../../tests/web/browser.mjs';

/** Folder of the built package. */
export const built = process.env.TENSORGRAD_NPM
  ? fileURLToPath(process.env.TENSORGRAD_NPM)
  : fileURLToPath(new URL('../../build/npm/', import.meta.url));
