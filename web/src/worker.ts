// SPDX-License-Identifier: MIT
// The worker that runs programs. It runs none of the user's code.
import { serve } from './index.js';

serve();
