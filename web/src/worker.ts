// SPDX-License-Identifier: MIT
// The worker that runs programs. It runs no user code.
import { serve } from './index.js';

serve();
