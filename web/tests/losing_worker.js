// SPDX-License-Identifier: MIT
import './losing.js';
import '/npm/dist/worker.js';
