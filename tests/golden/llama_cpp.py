# SPDX-License-Identifier: MIT
"""Logits and token ids of llama.cpp, through the C API that the PyPI package xllamacpp exports (see
tools/gguf-requirements.txt). The variable LLAMA_CPP_LIBRARIES names a folder of other shared
libraries of llama.cpp, such as those with Vulkan of the npm package @node-llama-cpp/linux-x64-vulkan."""

import ctypes
import importlib.util
import os
import pathlib

import numpy

TYPE_F32 = 0  # enum ggml_type


class ContextParams(ctypes.Structure):
    """struct llama_context_params of llama.h up to type_v; what follows keeps its defaults."""
    _fields_ = ([(name, ctypes.c_uint32) for name in
                 ("n_ctx", "n_batch", "n_ubatch", "n_seq_max", "n_rs_seq", "n_outputs_max", "n_outputs_max_per_seq")] +
                [(name, ctypes.c_int32) for name in
                 ("n_threads", "n_threads_batch", "ctx_type", "rope_scaling_type", "pooling_type", "attention_type",
                  "flash_attn_type")] +
                [(name, ctypes.c_float) for name in
                 ("rope_freq_base", "rope_freq_scale", "yarn_ext_factor", "yarn_attn_factor", "yarn_beta_fast",
                  "yarn_beta_slow")] +
                [("yarn_orig_ctx", ctypes.c_uint32), ("defrag_thold", ctypes.c_float), ("cb_eval", ctypes.c_void_p),
                 ("cb_eval_user_data", ctypes.c_void_p), ("type_k", ctypes.c_int32), ("type_v", ctypes.c_int32),
                 ("rest", ctypes.c_uint8 * 512)])


class ModelParams(ctypes.Structure):
    _fields_ = [("rest", ctypes.c_uint8 * 1024)]


class Batch(ctypes.Structure):
    _fields_ = [("n_tokens", ctypes.c_int32), ("token", ctypes.POINTER(ctypes.c_int32)), ("embd", ctypes.c_void_p),
                ("pos", ctypes.POINTER(ctypes.c_int32)), ("n_seq_id", ctypes.POINTER(ctypes.c_int32)),
                ("seq_id", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))), ("logits", ctypes.POINTER(ctypes.c_int8))]


def load_library():
    if folder := os.environ.get("LLAMA_CPP_LIBRARIES"):
        folder = pathlib.Path(folder).resolve()
        for pattern in ("libggml-base.so", "libggml.*so", "libllama.*so"):
            library = ctypes.CDLL(str(next(folder.glob(pattern))), ctypes.RTLD_GLOBAL)
        library.ggml_backend_load_all_from_path.argtypes = [ctypes.c_char_p]
        library.ggml_backend_load_all_from_path(str(folder).encode())
        library.ggml_backend_dev_by_type.restype = ctypes.c_void_p
        if not library.ggml_backend_dev_by_type(1):  # GGML_BACKEND_DEVICE_TYPE_GPU
            raise SystemExit(f"llama.cpp in {folder} finds no GPU")
    else:
        folder = pathlib.Path(importlib.util.find_spec("xllamacpp").origin).parent
        library = ctypes.CDLL(str(next(folder.glob("xllamacpp*.so"))))
    for name, result, arguments in (
            ("llama_model_default_params", ModelParams, []),
            ("llama_context_default_params", ContextParams, []),
            ("llama_model_load_from_file", ctypes.c_void_p, [ctypes.c_char_p, ModelParams]),
            ("llama_model_free", None, [ctypes.c_void_p]),
            ("llama_model_get_vocab", ctypes.c_void_p, [ctypes.c_void_p]),
            ("llama_vocab_n_tokens", ctypes.c_int32, [ctypes.c_void_p]),
            ("llama_vocab_eos", ctypes.c_int32, [ctypes.c_void_p]),
            ("llama_init_from_model", ctypes.c_void_p, [ctypes.c_void_p, ContextParams]),
            ("llama_free", None, [ctypes.c_void_p]),
            ("llama_batch_init", Batch, [ctypes.c_int32] * 3),
            ("llama_batch_free", None, [Batch]),
            ("llama_decode", ctypes.c_int32, [ctypes.c_void_p, Batch]),
            ("llama_get_logits", ctypes.POINTER(ctypes.c_float), [ctypes.c_void_p]),
            ("llama_tokenize", ctypes.c_int32, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32,
                                                ctypes.POINTER(ctypes.c_int32), ctypes.c_int32, ctypes.c_bool,
                                                ctypes.c_bool]),
            ("llama_log_set", None, [ctypes.c_void_p, ctypes.c_void_p]),
            ("llama_backend_init", None, [])):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    library.llama_backend_init()
    return library


LIBRARY = load_library()
LOG = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(
    lambda level, text, _: print(text.decode(errors="replace"), end="") if level == 4 else None)  # errors
LIBRARY.llama_log_set(ctypes.cast(LOG, ctypes.c_void_p), None)


class Model:
    """A GGUF file. Caches of attention are in f32."""

    def __init__(self, path):
        self.model = LIBRARY.llama_model_load_from_file(str(path).encode(), LIBRARY.llama_model_default_params())
        if not self.model:
            raise SystemExit(f"llama.cpp cannot read {path}")
        self.vocab = LIBRARY.llama_model_get_vocab(self.model)
        self.vocab_size = LIBRARY.llama_vocab_n_tokens(self.vocab)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        LIBRARY.llama_model_free(self.model)

    def logits(self, tokens):
        """[L] -> [L, vocab_size]."""
        params = LIBRARY.llama_context_default_params()
        assert params.flash_attn_type == -1 and params.type_k == params.type_v == 1, "llama.h has changed"
        params.n_ctx, params.n_batch, params.n_ubatch = 64, 64, 64
        params.n_threads = params.n_threads_batch = 1
        params.flash_attn_type = 0
        params.type_k = params.type_v = TYPE_F32
        context = LIBRARY.llama_init_from_model(self.model, params)
        batch = LIBRARY.llama_batch_init(len(tokens), 0, 1)
        batch.n_tokens = len(tokens)
        for i, token in enumerate(tokens):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = int(token), i, 1, 1
            batch.seq_id[i][0] = 0
        if LIBRARY.llama_decode(context, batch) != 0:
            raise SystemExit("llama_decode failed")
        out = numpy.ctypeslib.as_array(LIBRARY.llama_get_logits(context), (len(tokens), self.vocab_size)).copy()
        LIBRARY.llama_batch_free(batch)
        LIBRARY.llama_free(context)
        return out

    def encode(self, text, add_special=True):
        data = text.encode()
        ids = (ctypes.c_int32 * (len(data) + 8))()
        count = LIBRARY.llama_tokenize(self.vocab, data, len(data), ids, len(ids), add_special, True)
        return list(ids[:count])
