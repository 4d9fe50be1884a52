# SPDX-License-Identifier: MIT
"""Writes what transformers makes of logits before it draws a token: sampling.safetensors. Needs
tools/pretrained-requirements.txt; run it in this folder.

generate() is asked for one token of a model that gives fixed logits; what it does to them, and in which order, is its own.
N/options: repetition penalty, temperature, top-k (0: none), top-p, min-p; N/text: the tokens so far; N/logits; N/scores:
what is drawn from, minus infinity for what is left out.
"""

import torch
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.modeling_outputs import CausalLMOutputWithCrossAttentions

from make_fixtures import draw, write_safetensors

NAMES = ("repetition_penalty", "temperature", "top_k", "top_p", "min_p")
PLAIN = (1.0, 1.0, 0, 1.0, 0.0)
ALONE = {"repetition_penalty": (1.5, 0.5), "temperature": (0.7, 3.0), "top_k": (2, 3, 100), "top_p": (0.6, 0.9, 1e-9),
         "min_p": (0.2, 1.0)}
TOGETHER = [(1.3, 0.8, 6, 0.95, 0.1), (0.5, 2.0, 7, 0.8, 0.05), (1.2, 1.5, 4, 0.7, 0.3)]


class Fixed(GPT2LMHeadModel):
    def forward(self, input_ids, **_):
        return CausalLMOutputWithCrossAttentions(logits=self.row.expand(*input_ids.shape, -1))


def scores(logits, text, options):
    model = Fixed(GPT2Config(vocab_size=len(logits), n_embd=4, n_layer=1, n_head=1, bos_token_id=None, eos_token_id=None))
    model.row = logits
    # What is None is left out.
    given = {name: value for name, value, plain in zip(NAMES, options, PLAIN) if value != plain}
    torch.manual_seed(1)
    made = model.generate(text[None], do_sample=True, max_new_tokens=1, use_cache=False, pad_token_id=0,
                          return_dict_in_generate=True, output_scores=True, **({"top_k": 0} | given))
    return made.scores[0][0]


def main():
    g = torch.Generator().manual_seed(9)
    # Equal ones, of which top-k keeps all and top-p the later; then more of them than there are equal.
    rows = [(torch.tensor([2.0, -1.0, 0.5, 3.0, 2.0, -4.0, 1.0, 0.0]), torch.tensor([3, 5, 3, 2])),
            (draw(g, (40,), 2.0).float(), torch.randint(0, 40, (12,), generator=g))]
    cases = [PLAIN] + TOGETHER
    for name, values in ALONE.items():
        at = NAMES.index(name)
        cases += [PLAIN[:at] + (value,) + PLAIN[at + 1:] for value in values]
    tensors = {}
    for logits, text in rows:
        for options in cases:
            case = len(tensors) // 4
            tensors[f"{case}/options"] = torch.tensor(options)
            tensors[f"{case}/text"] = text
            tensors[f"{case}/logits"] = logits
            tensors[f"{case}/scores"] = scores(logits, text, options)
    write_safetensors("sampling.safetensors", tensors)
    print(len(tensors) // 4, "cases")


if __name__ == "__main__":
    main()
