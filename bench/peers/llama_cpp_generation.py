# SPDX-License-Identifier: MIT
"""llama.cpp's time of a prompt and of new tokens, with the GGUF files of `tg_bench --write-models`.

Prints a line as `tg_bench --only generation` does. Fails if the logits after the last token differ
from ours by more than rounding. llama.cpp rounds what is multiplied with 16-, 8- and 4-bit weights.
"""

import argparse
import importlib.metadata
import json
import os
import pathlib
import resource
import statistics
import sys
import time

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"))
import llama_cpp  # noqa: E402

LIBRARIES = os.environ.get("LLAMA_CPP_LIBRARIES")
WHO = "llama.cpp with Vulkan" if LIBRARIES else f"llama.cpp of xllamacpp {importlib.metadata.version('xllamacpp')}"
MOST_DIFFERENCE = {"f16": 0.02, "int8": 0.1, "int4": 0.1}  # root mean square, over that of our logits


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


class Context:
    """A context with the default caches of attention, `threads`, and `batch` texts of `tokens` tokens."""

    def __init__(self, model, threads, tokens, batch):
        self.library, self.model, self.texts = llama_cpp.LIBRARY, model, batch
        params = self.library.llama_context_default_params()
        assert params.flash_attn_type == -1 and params.type_k == params.type_v == 1, "llama.h has changed"
        params.n_ctx, params.n_batch, params.n_ubatch, params.n_seq_max = 1024 * batch, 512, 512, batch
        params.n_threads = params.n_threads_batch = threads
        self.context = self.library.llama_init_from_model(model.model, params)
        if not self.context:
            raise SystemExit("llama.cpp cannot create a context")
        self.batch = self.library.llama_batch_init(max(tokens, batch), 0, 1)
        self.library.llama_get_memory.restype = llama_cpp.ctypes.c_void_p
        self.library.llama_get_memory.argtypes = [llama_cpp.ctypes.c_void_p]
        self.library.llama_memory_clear.argtypes = [llama_cpp.ctypes.c_void_p, llama_cpp.ctypes.c_bool]

    def clear(self):
        self.library.llama_memory_clear(self.library.llama_get_memory(self.context), True)

    def decode(self, tokens):
        """Appends tokens, each of which is (text, position, token, whether its logits are computed)."""
        batch = self.batch
        batch.n_tokens = len(tokens)
        for i, (text, position, token, has_logits) in enumerate(tokens):
            batch.token[i], batch.pos[i], batch.n_seq_id[i] = token, position, 1
            batch.seq_id[i][0], batch.logits[i] = text, has_logits
        if self.library.llama_decode(self.context, batch) != 0:
            raise SystemExit("llama_decode failed")
        self.library.llama_get_logits(self.context)  # waits for the result

    def logits(self):
        """Returns those of the first text."""
        size = self.model.vocab_size
        return numpy.ctypeslib.as_array(self.library.llama_get_logits(self.context), (size,)).copy()

    def generate(self, tokens, prompt):
        """Returns the seconds of the prompts and their CPU time, those of each step, and their CPU time."""
        self.clear()
        before, start = cpu_seconds(), time.perf_counter()
        for text in range(self.texts):
            self.decode([(text, i, tokens[i], i + 1 == prompt) for i in range(prompt)])
        prompt_took, after = time.perf_counter() - start, cpu_seconds()
        took = []
        for i in range(prompt, len(tokens)):
            start = time.perf_counter()
            self.decode([(text, i, tokens[i], True) for text in range(self.texts)])
            took.append(time.perf_counter() - start)
        return prompt_took, after - before, took, (cpu_seconds() - after) / len(took)


def measure(folder, weights, threads, batch, seconds):
    expected = numpy.load(folder / f"gpt2-{weights}.npz")
    tokens, prompt = [int(token) for token in expected["tokens"]], int(expected["prompt"][0])
    with llama_cpp.Model(folder / f"gpt2-{weights}.gguf") as model:
        context = Context(model, threads, len(tokens), batch)
        context.generate(tokens, prompt)
        logits, want = context.logits(), expected["logits"]
        difference = float(numpy.sqrt(numpy.mean((logits - want)**2) / numpy.mean(want**2)))
        if not difference <= MOST_DIFFERENCE[weights]:
            raise SystemExit(f"{weights}: the logits differ by {difference:.3g} of their root mean square; expected at "
                             f"most {MOST_DIFFERENCE[weights]}")
        prompts, prompt_cpu, steps, step_cpu = [], [], [], []
        start = time.perf_counter()
        while not prompts or time.perf_counter() - start < seconds:
            took = context.generate(tokens, prompt)
            prompts.append(took[0])
            prompt_cpu.append(took[1])
            steps += took[2]
            step_cpu.append(took[3])
    times = {"prompt_us": prompts, "prompt_cpu_us": prompt_cpu, "token_us": steps, "token_cpu_us": step_cpu}
    print(json.dumps({"measure": "generation", "workload": "gpt2-124m", "who": WHO,
                      "device": "vulkan" if LIBRARIES else "cpu", "weights": weights, "batch": batch,
                      "prompt_tokens": prompt, "new_tokens": len(tokens) - prompt,
                      **{name: round(statistics.median(values) * 1e6, 1) for name, values in times.items()},
                      "difference": float(f"{difference:.3g}")}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", type=pathlib.Path, help="the folder of tg_bench --write-models")
    parser.add_argument("--weights", default="f16,int8,int4", help="formats, separated by commas")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch", type=int, default=1, help="texts that are generated together")
    parser.add_argument("--seconds", type=float, default=2)
    args = parser.parse_args()
    for weights in args.weights.split(","):
        measure(args.models, weights, args.threads, args.batch, args.seconds)


if __name__ == "__main__":
    main()
