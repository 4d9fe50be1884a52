# SPDX-License-Identifier: MIT
"""Writes small random checkpoints as transformers and state-spaces' mamba-ssm keep them, with their logits: pretrained/,
and mamba_functions.safetensors. Needs tools/pretrained-requirements.txt; run it in this folder.

pretrained/NAME/: config.json and weights as `save_pretrained` writes them; expected.safetensors beside them has tokens
and the logits of transformers' implementation, computed in float32 from the weights as the files hold them.
pretrained/ssm_*: the same weights under mamba-ssm's names, with its kind of config.json (the package itself needs CUDA).
mamba_functions.safetensors: the selective scan and SSD, step by step in double precision, with gradients.
"""

import json
import math
import pathlib
import shutil

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from transformers import (BambaConfig, BambaForCausalLM, FalconMambaConfig, FalconMambaForCausalLM, GPT2Config,
                          GPT2LMHeadModel, JambaConfig, JambaForCausalLM, LlamaConfig, LlamaForCausalLM, Mamba2Config,
                          Mamba2ForCausalLM, MambaConfig, MambaForCausalLM, Zamba2Config, Zamba2ForCausalLM)

from make_fixtures import draw, write_safetensors

ROOT = pathlib.Path("pretrained")
BATCH, LENGTH = 2, 13


def randomize(model, generator):
    """Values at which every parameter counts; as first set, D and the norms are ones."""
    heads = {"A_log": (0.0, 1.0), "dt_bias": (-1.0, 0.7), "D": (1.0, 0.5)}
    for name, value in model.named_parameters():
        last = name.split(".")[-1]
        if name.endswith("bias") and ".ln_" in name:
            mean, scale = 0.0, 0.3
        elif "norm" in name or ".ln_" in name:
            mean, scale = 1.0, 0.3
        elif "dt_proj.bias" in name:
            mean, scale = -1.0, 0.7
        else:
            mean, scale = heads.get(last, (0.0, 0.6 if value.dim() == 3 else 0.3))
        if "embeddings" in name:
            scale = 1.0
        value.data = (draw(generator, value.shape, scale) + mean).to(value.dtype)
    model.tie_weights()


def expected(model, folder, vocab, generator):
    tokens = torch.randint(0, vocab, (BATCH, LENGTH), generator=generator)
    model = model.float().eval()
    with torch.no_grad():
        logits = model(tokens).logits
        # The implementation's own two ways agree.
        first = model(tokens[:, :9], use_cache=True)
        cache = "cache_params" if "cache_params" in first else "past_key_values"
        for i in range(9, LENGTH):
            more = {cache: first[cache]}
            if model.config.model_type == "bamba":  # it counts from 0 in each call
                more["position_ids"] = torch.tensor([[i]])
            first = model(tokens[:, i:i + 1], use_cache=True, **more)
        limits = getattr(model.config, "time_step_limit", (0.0, math.inf))
        if getattr(model.config, "time_step_min", 0) > 0.1 and model.config.model_type == "zamba2":
            limits = (model.config.time_step_min, math.inf)
        if tuple(limits) == (0.0, math.inf):  # its step forgets the limits
            assert (first.logits[:, -1] - logits[:, -1]).abs().max() < 1e-4
    write_safetensors(folder / "expected.safetensors", {"tokens": tokens, "logits": logits})


def fresh(name):
    folder = ROOT / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def transformers_fixture(name, kind, config, dtype, generator, shard="50GB"):
    folder = fresh(name)
    model = kind(config).to(dtype)
    randomize(model, generator)
    model.save_pretrained(folder, max_shard_size=shard)
    (folder / "generation_config.json").unlink(missing_ok=True)
    expected(kind.from_pretrained(folder, dtype=torch.float32), folder, config.vocab_size, generator)


def state_spaces_fixture(name, kind, config, written, generator):
    folder = fresh(name)
    model = kind(config)
    randomize(model, generator)
    tensors = {key.replace("embeddings", "embedding"): value.clone() for key, value in model.state_dict().items()}
    tensors.setdefault("lm_head.weight", tensors["backbone.embedding.weight"].clone())  # its files have both
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(written, indent=2) + "\n")
    expected(model, folder, config.vocab_size, generator)


def checkpoints(generator):
    transformers_fixture("mamba", MambaForCausalLM, MambaConfig(
        vocab_size=23, hidden_size=16, state_size=4, num_hidden_layers=2), torch.float32, generator)
    transformers_fixture("mamba_odd", MambaForCausalLM, MambaConfig(
        vocab_size=19, hidden_size=18, state_size=5, num_hidden_layers=2, conv_kernel=3, expand=3, time_step_rank=3,
        use_bias=True, use_conv_bias=False, layer_norm_epsilon=1e-3, tie_word_embeddings=False), torch.bfloat16,
        generator)
    transformers_fixture("mamba2", Mamba2ForCausalLM, Mamba2Config(
        vocab_size=23, hidden_size=16, state_size=6, num_hidden_layers=2, num_heads=4, head_dim=8, n_groups=2,
        chunk_size=4), torch.float16, generator, shard="6KB")
    transformers_fixture("mamba2_odd", Mamba2ForCausalLM, Mamba2Config(
        vocab_size=19, hidden_size=15, state_size=5, num_hidden_layers=2, num_heads=6, head_dim=5, n_groups=3,
        conv_kernel=2, use_bias=True, use_conv_bias=False, layer_norm_epsilon=1e-3, time_step_limit=(0.05, 0.4),
        tie_word_embeddings=True), torch.float32, generator)
    common = {"rms_norm": True, "residual_in_fp32": True, "fused_add_norm": True, "pad_vocab_size_multiple": 8}
    state_spaces_fixture("ssm_mamba", MambaForCausalLM, MambaConfig(
        vocab_size=24, hidden_size=16, state_size=16, num_hidden_layers=2), {
            "d_model": 16, "n_layer": 2, "vocab_size": 21, "ssm_cfg": {}, **common}, generator)
    state_spaces_fixture("ssm_mamba2", Mamba2ForCausalLM, Mamba2Config(
        vocab_size=24, hidden_size=16, state_size=6, num_hidden_layers=2, num_heads=4, head_dim=8, n_groups=2,
        chunk_size=8, tie_word_embeddings=False), {
            "d_model": 16, "d_intermediate": 0, "n_layer": 2, "vocab_size": 24,
            "ssm_cfg": {"layer": "Mamba2", "d_state": 6, "headdim": 8, "ngroups": 2, "chunk_size": 8},
            "attn_layer_idx": [], "attn_cfg": {}, "tie_embeddings": False, **common}, generator)


def llamas(generator):
    transformers_fixture("llama", LlamaForCausalLM, LlamaConfig(
        vocab_size=23, hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=3,
        num_key_value_heads=1, max_position_embeddings=64, rms_norm_eps=1e-3, rope_theta=5000.0,
        eos_token_id=[2, 5]), torch.float32, generator)
    transformers_fixture("llama_tied", LlamaForCausalLM, LlamaConfig(
        vocab_size=19, hidden_size=16, intermediate_size=24, num_hidden_layers=3, num_attention_heads=2,
        max_position_embeddings=32, tie_word_embeddings=True), torch.bfloat16, generator, shard="6KB")


def gpt2s(generator):
    transformers_fixture("gpt2", GPT2LMHeadModel, GPT2Config(
        vocab_size=23, n_embd=24, n_layer=2, n_head=3, n_positions=32, eos_token_id=7, bos_token_id=7),
        torch.float32, generator)
    transformers_fixture("gpt2_odd", GPT2LMHeadModel, GPT2Config(
        vocab_size=19, n_embd=20, n_layer=3, n_head=4, n_positions=13, n_inner=28, layer_norm_epsilon=1e-3,
        activation_function="gelu_pytorch_tanh", tie_word_embeddings=False, eos_token_id=7, bos_token_id=7),
        torch.float16, generator, shard="9KB")


def falcon_mambas(generator):
    transformers_fixture("falcon_mamba", FalconMambaForCausalLM, FalconMambaConfig(
        vocab_size=23, hidden_size=16, state_size=4, num_hidden_layers=2, mixer_rms_eps=0.01,
        tie_word_embeddings=False), torch.float32, generator)


def biased_llamas(generator):
    transformers_fixture("llama_bias", LlamaForCausalLM, LlamaConfig(
        vocab_size=19, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=32, attention_bias=True, mlp_bias=True), torch.float32, generator)


def bambas(generator):
    transformers_fixture("bamba", BambaForCausalLM, BambaConfig(
        vocab_size=23, hidden_size=16, intermediate_size=24, num_hidden_layers=3, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=32, attn_layer_indices=[1], mamba_n_heads=4, mamba_n_groups=2,
        mamba_d_state=6, mamba_chunk_size=4, rms_norm_eps=1e-3), torch.float32, generator)
    transformers_fixture("bamba_odd", BambaForCausalLM, BambaConfig(
        vocab_size=19, hidden_size=24, intermediate_size=20, num_hidden_layers=4, num_attention_heads=3,
        num_key_value_heads=3, max_position_embeddings=32, attn_layer_indices=[0, 3], mamba_n_heads=6, mamba_d_head=12,
        mamba_d_state=5, mamba_d_conv=3, mamba_expand=3, mamba_chunk_size=8, mamba_conv_bias=False,
        mamba_proj_bias=True, attention_bias=True, mlp_bias=True, time_step_limit=(0.05, 0.4), rope_theta=500.0,
        tie_word_embeddings=True), torch.bfloat16, generator, shard="9KB")


def jambas(generator):
    transformers_fixture("jamba", JambaForCausalLM, JambaConfig(
        vocab_size=23, hidden_size=16, intermediate_size=12, num_hidden_layers=4, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=32, num_experts=4, num_experts_per_tok=2, attn_layer_period=3,
        attn_layer_offset=1, expert_layer_period=2, expert_layer_offset=1, mamba_d_state=4, rms_norm_eps=1e-3),
        torch.float32, generator)
    transformers_fixture("jamba_odd", JambaForCausalLM, JambaConfig(
        vocab_size=19, hidden_size=20, intermediate_size=24, num_hidden_layers=3, num_attention_heads=5,
        num_key_value_heads=5, max_position_embeddings=32, num_experts=1, num_experts_per_tok=1, attn_layer_period=2,
        attn_layer_offset=1, mamba_d_state=5, mamba_d_conv=3, mamba_expand=3, mamba_dt_rank=3, mamba_conv_bias=False,
        mamba_proj_bias=True, tie_word_embeddings=True), torch.float16, generator, shard="9KB")


def zamba2s(generator):
    common = {"max_position_embeddings": 32, "use_mem_rope": True}
    transformers_fixture("zamba2", Zamba2ForCausalLM, Zamba2Config(
        vocab_size=23, hidden_size=16, intermediate_size=20, num_hidden_layers=4,
        layers_block_type=["mamba", "hybrid", "hybrid", "mamba"], num_attention_heads=2, adapter_rank=3,
        use_shared_attention_adapter=True, mamba_d_state=6, n_mamba_heads=4, mamba_ngroups=2, chunk_size=4,
        rms_norm_eps=1e-3, **common), torch.float32, generator)
    transformers_fixture("zamba2_odd", Zamba2ForCausalLM, Zamba2Config(
        vocab_size=19, hidden_size=12, intermediate_size=28, num_hidden_layers=6,
        layers_block_type=["hybrid", "mamba", "hybrid", "hybrid", "mamba", "hybrid"], num_mem_blocks=2,
        num_attention_heads=4, num_key_value_heads=2, adapter_rank=5, mamba_d_state=5, mamba_d_conv=3, mamba_expand=3,
        n_mamba_heads=3, chunk_size=8, add_bias_linear=True, time_step_min=0.3, time_step_max=0.4, rope_theta=500.0,
        **common), torch.bfloat16, generator, shard="9KB")


def selective_scan(u, delta, a, b, c, d, z, delta_bias):
    """u, delta and z [B, D, L], a [D, N], b and c [B, N, L], as mamba-ssm's selective_scan_fn takes them."""
    delta = F.softplus(delta + delta_bias[:, None])
    state, steps = torch.zeros(u.shape[0], u.shape[1], a.shape[1], dtype=u.dtype), []
    for t in range(u.shape[2]):
        decay = torch.exp(delta[:, :, t, None] * a)
        state = decay * state + (delta[:, :, t] * u[:, :, t])[:, :, None] * b[:, None, :, t]
        steps.append((state * c[:, None, :, t]).sum(-1))
    return (torch.stack(steps, -1) + d[:, None] * u) * F.silu(z), state


def ssd(x, dt, a, b, c, d, z, dt_bias, state):
    """x and z [B, L, H, P], dt [B, L, H], a [H], b and c [B, L, G, N], state [B, H, P, N], as mamba-ssm's
    mamba_chunk_scan_combined takes them."""
    dt = F.softplus(dt + dt_bias)
    each, steps = x.shape[2] // b.shape[2], []
    b, c = b.repeat_interleave(each, 2), c.repeat_interleave(each, 2)
    for t in range(x.shape[1]):
        push = (dt[:, t, :, None] * x[:, t])[..., None] * b[:, t, :, None, :]
        state = torch.exp(dt[:, t] * a)[..., None, None] * state + push
        steps.append((state * c[:, t, :, None, :]).sum(-1) + d[:, None] * x[:, t])
    return torch.stack(steps, 1) * F.silu(z), state


def with_gradients(tensors, name, function, operands, generator):
    for value in operands.values():
        value.requires_grad_(True)
    y, state = function(**operands)
    weigh = {"y": draw(generator, y.shape, 1.0), "state": draw(generator, state.shape, 1.0)}
    ((y * weigh["y"]).sum() + (state * weigh["state"]).sum()).backward()
    tensors.update({f"{name}/in/{key}": value for key, value in operands.items()})
    tensors.update({f"{name}/weight/{key}": value for key, value in weigh.items()})
    tensors.update({f"{name}/grad/{key}": value.grad for key, value in operands.items()})
    tensors.update({f"{name}/y": y, f"{name}/state": state})


def functions(generator):
    tensors, batch, length = {}, 2, 19
    width, n = 5, 3
    with_gradients(tensors, "selective_scan", selective_scan, {
        "u": draw(generator, (batch, width, length), 1.0), "delta": draw(generator, (batch, width, length), 1.0),
        "a": (-draw(generator, (width, n), 0.7).exp()).float().double(), "b": draw(generator, (batch, n, length), 1.0),
        "c": draw(generator, (batch, n, length), 1.0), "d": draw(generator, (width,), 1.0),
        "z": draw(generator, (batch, width, length), 1.0), "delta_bias": draw(generator, (width,), 1.0)}, generator)
    heads, p, groups = 4, 3, 2
    with_gradients(tensors, "ssd", ssd, {
        "x": draw(generator, (batch, length, heads, p), 1.0), "dt": draw(generator, (batch, length, heads), 1.0),
        "a": (-draw(generator, (heads,), 0.7).exp()).float().double(),
        "b": draw(generator, (batch, length, groups, n), 1.0), "c": draw(generator, (batch, length, groups, n), 1.0),
        "d": draw(generator, (heads,), 1.0), "z": draw(generator, (batch, length, heads, p), 1.0),
        "dt_bias": draw(generator, (heads,), 1.0), "state": draw(generator, (batch, heads, p, n), 1.0)}, generator)
    return tensors


def main():
    generator = torch.Generator().manual_seed(23)
    checkpoints(generator)
    llamas(torch.Generator().manual_seed(45))
    gpt2s(torch.Generator().manual_seed(46))
    falcon_mambas(torch.Generator().manual_seed(47))
    biased_llamas(torch.Generator().manual_seed(48))
    bambas(torch.Generator().manual_seed(49))
    jambas(torch.Generator().manual_seed(50))
    zamba2s(torch.Generator().manual_seed(56))  # others lose up to 5e-4 of the largest logit in float32
    write_safetensors("mamba_functions.safetensors", functions(generator))


if __name__ == "__main__":
    main()
