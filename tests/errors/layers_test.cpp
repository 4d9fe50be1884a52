// SPDX-License-Identifier: MIT
// Mistakes with layers.
#include "errors/example.h"

namespace tensorgrad::testing {

TEST(LayerErrors, linear_layer_input_width_differs) {
  const auto loss = [](const Net& net, In in) { return FAULTY(mean(net.fc(in["y"]))); };
  EXPECT_ERROR(compiled(loss), ShapeError,
               "linear: inner sizes differ: x [4,2], weight [2,3] ([out, in])");
}

TEST(LayerErrors, lstm_input_width_differs) {
  const auto loss = [](const nn::LSTM& lstm, In) {
    return FAULTY(sum(lstm(zeros({5, 2, 4})).output));
  };
  EXPECT_ERROR(compiled_model(nn::LSTM(3, 4), loss), ShapeError,
               "recurrent layer: expected x of two or three axes, the last of size 3, got [5,2,4]");
}

TEST(LayerErrors, attention_adapters_without_a_rank) {
  EXPECT_ERROR(
      nn::SharedTransformer::Use(8, {.attention_adapters = true}, 0), UserError,
      "SharedTransformer::Use: attention_adapters: expected an adapter_rank above 0, got 0");
}

TEST(LayerErrors, gru_of_no_layers) {
  EXPECT_ERROR(nn::GRU(3, 4, {.num_layers = 0, .bidirectional = true}), UserError,
               "recurrent layer: num_layers must be at least 1, got 0");
}

TEST(LayerErrors, multihead_attention_key_width_differs) {
  const auto loss = [](const nn::MultiheadAttention& attention, In) {
    const Tensor x = zeros({2, 5, 8});
    return FAULTY(sum(attention(x, x, x)));
  };
  EXPECT_ERROR(compiled_model(nn::MultiheadAttention(8, 2, {.kdim = 6}), loss), ShapeError,
               "MultiheadAttention: key: expected [B, T, 6], got [2,5,8]");
}

TEST(LayerErrors, batch_norm_one_value_per_channel) {
  const auto loss = [](const nn::BatchNorm1d& norm, In) {
    return FAULTY(sum(norm(zeros({1, 3}))));
  };
  EXPECT_ERROR(compiled_model(nn::BatchNorm1d(3), loss), ShapeError,
               "batch_norm: expected more than one value per channel in training, got [1,3]");
}

}  // namespace tensorgrad::testing
