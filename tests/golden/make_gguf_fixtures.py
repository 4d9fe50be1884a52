# SPDX-License-Identifier: MIT
"""Writes small random models and tensors as the PyPI package gguf does: gguf/. Needs tools/gguf-requirements.txt; run it
in this folder.

gguf/NAME.gguf: a model; NAME.safetensors has tokens and the logits of llama.cpp. llama has a tokenizer of SentencePiece,
gpt2 one of byte-level BPE; mamba is a Falcon-Mamba. gguf/ids.json: texts and the ids that llama.cpp gives them.
gguf/types.gguf: a tensor of each type; types.safetensors has their values as the package computes them.
"""

import io
import json
import pathlib

import gguf
import numpy
import sentencepiece
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

import llama_cpp
from fixture_file import write

ROOT = pathlib.Path("gguf")
TEXT = ("It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness, "
        "it was the epoch of belief, it was the epoch of incredulity, it was the season of Light, it was the season of "
        "Darkness, it was the spring of hope, it was the winter of despair.")
TEXTS = ["", "it was the best of times", "  two  spaces, and 1234 numbers\n\n\tend ", "ça naïve Ωmega 日本語 🙂",
         "don't <s> stop</s> it's <|endoftext|>", " leading and trailing  ", "the epoch of wisdom\r\nthe age"]
LENGTH = 11
TYPES = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K")


def save(name, tensors):
    kinds = {"float32": "F32", "int32": "I32"}
    write(ROOT / f"{name}.safetensors", [(key, kinds[value.dtype.name], value.shape, value.tobytes())
                                         for key, value in tensors.items()])


def draw(random, *shape, scale=0.3, mean=0.0):
    return (random.standard_normal(shape) * scale + mean).astype(numpy.float32)


def sizes(writer, width, blocks, vocab, context, forward, heads):
    writer.add_embedding_length(width)
    writer.add_block_count(blocks)
    writer.add_vocab_size(vocab)
    writer.add_context_length(context)
    writer.add_feed_forward_length(forward)
    writer.add_head_count(heads)


def sentencepiece_model(writer):
    """Adds the vocabulary, with a token of the user and unused ids at its end."""
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([TEXT]), model_writer=out, model_type="bpe", vocab_size=330, byte_fallback=True,
        character_coverage=1.0, normalization_rule_name="identity", remove_extra_whitespaces=False,
        user_defined_symbols=["<|endoftext|>"], minloglevel=2)
    pieces = sentencepiece.SentencePieceProcessor(model_proto=out.getvalue())
    tokens, scores, types = [], [], []
    for i in range(pieces.vocab_size()):
        tokens.append(pieces.id_to_piece(i))
        scores.append(pieces.get_score(i))
        types.append(2 if pieces.is_unknown(i) else 3 if pieces.is_control(i) else 6 if pieces.is_byte(i) else
                     4 if tokens[-1] == "<|endoftext|>" else 1)
    for i in range(2):
        tokens.append(f"[PAD{len(tokens)}]")
        scores.append(-1000.0)
        types.append(5)
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_scores(scores)
    writer.add_token_types(types)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(True)
    return len(tokens)


def byte_level_model(writer):
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.train_from_iterator([TEXT], trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<|endoftext|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False))
    model = json.loads(made.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token == "<|endoftext|>" else 1 for token in tokens])
    writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(0)
    writer.add_add_bos_token(False)
    return len(tokens)


def llama(writer, random):
    vocab, width, heads, kv_heads, forward, blocks = sentencepiece_model(writer), 16, 4, 2, 24, 2
    sizes(writer, width, blocks, vocab, 64, forward, heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_layer_norm_rms_eps(1e-3)
    writer.add_rope_freq_base(5000.0)
    writer.add_rope_dimension_count(width // heads)
    kv = width // heads * kv_heads
    tensors = {"token_embd.weight": draw(random, vocab, width, scale=1.0),
               "output_norm.weight": draw(random, width, mean=1.0), "output.weight": draw(random, vocab, width)}
    for i in range(blocks):
        for name, shape in (("attn_q", (width, width)), ("attn_k", (kv, width)), ("attn_v", (kv, width)),
                            ("attn_output", (width, width)), ("ffn_gate", (forward, width)),
                            ("ffn_up", (forward, width)), ("ffn_down", (width, forward))):
            tensors[f"blk.{i}.{name}.weight"] = draw(random, *shape)
        for name in ("attn_norm", "ffn_norm"):
            tensors[f"blk.{i}.{name}.weight"] = draw(random, width, mean=1.0)
    return vocab, tensors


def gpt2(writer, random):
    vocab, width, heads, forward, blocks, context = byte_level_model(writer), 16, 2, 40, 2, 24
    sizes(writer, width, blocks, vocab, context, forward, heads)
    writer.add_layer_norm_eps(1e-3)
    tensors = {"token_embd.weight": draw(random, vocab, width, scale=1.0),
               "position_embd.weight": draw(random, context, width),
               "output_norm.weight": draw(random, width, mean=1.0), "output_norm.bias": draw(random, width)}
    for i in range(blocks):
        for name, rows, columns in (("attn_qkv", 3 * width, width), ("attn_output", width, width),
                                    ("ffn_up", forward, width), ("ffn_down", width, forward)):
            tensors[f"blk.{i}.{name}.weight"] = draw(random, rows, columns)
            tensors[f"blk.{i}.{name}.bias"] = draw(random, rows)
        for name in ("attn_norm", "ffn_norm"):
            tensors[f"blk.{i}.{name}.weight"] = draw(random, width, mean=1.0)
            tensors[f"blk.{i}.{name}.bias"] = draw(random, width)
    return vocab, tensors


def mamba(writer, random):
    vocab, width, inner, states, taps, rank, blocks = 21, 12, 24, 5, 3, 2, 2
    sizes(writer, width, blocks, vocab, 1 << 20, 0, 0)
    writer.add_layer_norm_rms_eps(1e-3)
    writer.add_ssm_conv_kernel(taps)
    writer.add_ssm_inner_size(inner)
    writer.add_ssm_state_size(states)
    writer.add_ssm_time_step_rank(rank)
    writer.add_ssm_dt_b_c_rms(True)
    writer.add_tokenizer_model("none")
    tensors = {"token_embd.weight": draw(random, vocab, width, scale=1.0),
               "output_norm.weight": draw(random, width, mean=1.0), "output.weight": draw(random, vocab, width)}
    for i in range(blocks):
        tensors.update({
            f"blk.{i}.attn_norm.weight": draw(random, width, mean=1.0),
            f"blk.{i}.ssm_in.weight": draw(random, 2 * inner, width),
            f"blk.{i}.ssm_conv1d.weight": draw(random, inner, taps, scale=0.6),
            f"blk.{i}.ssm_conv1d.bias": draw(random, inner),
            f"blk.{i}.ssm_x.weight": draw(random, rank + 2 * states, inner),
            f"blk.{i}.ssm_dt.weight": draw(random, inner, rank),
            f"blk.{i}.ssm_dt.bias": draw(random, inner, mean=-1.0, scale=0.7),
            f"blk.{i}.ssm_a": -numpy.exp(draw(random, inner, states, scale=1.0)),
            f"blk.{i}.ssm_d": draw(random, inner, mean=1.0, scale=0.5),
            f"blk.{i}.ssm_out.weight": draw(random, width, inner)})
    return vocab, tensors


def mamba2(writer, random):
    vocab, width, inner, states, taps, heads, groups, blocks = 21, 12, 24, 6, 4, 4, 2, 2
    sizes(writer, width, blocks, vocab, 1 << 20, 0, 0)
    writer.add_layer_norm_rms_eps(1e-3)
    writer.add_ssm_conv_kernel(taps)
    writer.add_ssm_inner_size(inner)
    writer.add_ssm_state_size(states)
    writer.add_ssm_time_step_rank(heads)
    writer.add_ssm_group_count(groups)
    writer.add_tokenizer_model("none")
    channels = inner + 2 * groups * states
    tensors = {"token_embd.weight": draw(random, vocab, width, scale=1.0),
               "output_norm.weight": draw(random, width, mean=1.0)}
    for i in range(blocks):
        tensors.update({
            f"blk.{i}.attn_norm.weight": draw(random, width, mean=1.0),
            f"blk.{i}.ssm_in.weight": draw(random, inner + channels + heads, width),
            f"blk.{i}.ssm_conv1d.weight": draw(random, channels, taps, scale=0.6),
            f"blk.{i}.ssm_conv1d.bias": draw(random, channels),
            f"blk.{i}.ssm_dt.bias": draw(random, heads, mean=-1.0, scale=0.7),
            f"blk.{i}.ssm_a": -numpy.exp(draw(random, heads, 1, scale=1.0)),
            f"blk.{i}.ssm_d": draw(random, heads, 1, mean=1.0, scale=0.5),
            f"blk.{i}.ssm_norm.weight": draw(random, groups, inner // groups, mean=1.0),
            f"blk.{i}.ssm_out.weight": draw(random, width, inner)})
    return vocab, tensors


def model_fixture(make, random):
    name = make.__name__
    path = ROOT / f"{name}.gguf"
    writer = gguf.GGUFWriter(path, name)
    vocab, tensors = make(writer, random)
    for key, value in tensors.items():
        writer.add_tensor(key, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    tokens = random.integers(0, vocab, LENGTH).astype(numpy.int32)
    with llama_cpp.Model(path) as model:
        save(name, {"tokens": tokens, "logits": model.logits(tokens)})
        return {text: model.encode(text) for text in TEXTS} if name in ("llama", "gpt2") else None


def types_fixture(random):
    writer, expected = gguf.GGUFWriter(ROOT / "types.gguf", "types"), {}
    for name in TYPES:
        kind = gguf.GGMLQuantizationType[name]
        _, size = gguf.GGML_QUANT_SIZES[kind]
        values = draw(random, 2, 256, scale=1.0)
        if name.endswith("_K"):  # which the package does not quantize: random bits with finite scales
            raw = random.integers(0, 256, (2, size), dtype=numpy.uint8)
            halves = draw(random, 2, 2, scale=0.01).astype(numpy.float16).view(numpy.uint8)
            raw[:, slice(-2, None) if name == "Q6_K" else slice(0, 4)] = halves[:, 2:] if name == "Q6_K" else halves
        else:
            raw = gguf.quants.quantize(values, kind)
        writer.add_tensor(name, raw, raw_dtype=kind)
        expected[name] = numpy.ascontiguousarray(gguf.quants.dequantize(raw, kind), dtype=numpy.float32)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    save("types", expected)


def main():
    ROOT.mkdir(exist_ok=True)
    random = numpy.random.default_rng(45)
    types_fixture(random)
    ids = {make.__name__: model_fixture(make, random) for make in (llama, gpt2, mamba, mamba2)}
    (ROOT / "ids.json").write_text(json.dumps({name: found for name, found in ids.items() if found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
