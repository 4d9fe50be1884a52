// SPDX-License-Identifier: MIT
// The decoder of the samples transformer, makemore and char_gpt: learned positions, layer norms
// before each part, attention without biases, relu, and an output layer tied to the embedding.
import {
  LayerNorm, Linear, Module, add, capture, causalMask, embedding, init, linear, maskedSoftmax, matmul, mul,
  narrow, relu, reshape, transpose, type Tensor, type TensorLike,
} from 'tensorgrad';

class Block extends Module {
  norm1: LayerNorm;
  norm2: LayerNorm;
  query: Linear;
  key: Linear;
  value: Linear;
  out: Linear;
  up: Linear;
  down: Linear;
  constructor(readonly index: number, width: number, readonly heads: number) {
    super();
    this.norm1 = new LayerNorm(width);
    this.norm2 = new LayerNorm(width);
    this.query = new Linear(width, width, false);
    this.key = new Linear(width, width, false);
    this.value = new Linear(width, width, false);
    this.out = new Linear(width, width, false);
    this.up = new Linear(width, 4 * width);
    this.down = new Linear(4 * width, width);
  }

  // [B, T, D] -> [B, T, D]
  attention(x: Tensor): Tensor {
    const [B, T, D] = x.shape as [number, number, number];
    const split = (y: Tensor) => transpose(reshape(y, [B, T, this.heads, D / this.heads]), 1, 2);
    const q = split(this.query.forward(x)), k = split(this.key.forward(x));
    const v = split(this.value.forward(x));
    const scores = mul(matmul(q, transpose(k)), 1 / Math.sqrt(D / this.heads));
    const weights = capture(`attention.${this.index}`, maskedSoftmax(scores, causalMask(T, T)));
    return this.out.forward(reshape(transpose(matmul(weights, v), 1, 2), [B, T, D]));
  }

  forward(x: Tensor): Tensor {
    const h = add(x, this.attention(this.norm1.forward(x)));
    return add(h, this.down.forward(relu(this.up.forward(this.norm2.forward(h)))));
  }
}

export class Decoder extends Module {
  symbols;
  positions;
  blocks: Block[];
  norm: LayerNorm;
  constructor(vocabulary: number, length: number, width = 64, layers = 3, heads = 4) {
    super();
    this.symbols = this.param([vocabulary, width], init.normal(0, 0.02));
    this.positions = this.param([length, width], init.normal(0, 0.02));
    this.blocks = Array.from({ length: layers }, (_, i) => new Block(i, width, heads));
    this.norm = new LayerNorm(width);
  }

  // Symbols i32 [B, T] -> logits [B, T, vocabulary] of the next symbols
  forward(text: Tensor): Tensor {
    let x = add(embedding(text, this.symbols), narrow(this.positions, 0, 0, text.shape[1]!));
    for (const block of this.blocks) x = block.forward(x);
    return linear(this.norm.forward(x), this.symbols as TensorLike);
  }
}
