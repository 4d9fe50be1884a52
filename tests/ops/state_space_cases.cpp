// SPDX-License-Identifier: MIT
// State spaces: lengths below, at and above those of a chunk and of a segment, more channels than a
// block, more states than a scan, both discretizations, initial and final states, D and z.
#include "op_cases.h"

namespace tensorgrad::testing {
namespace {

using T = const std::vector<Tensor>&;

struct ScanSize {
  std::int64_t batch, length, channels, states;

  [[nodiscard]] std::string name() const {
    return std::to_string(batch) + "x" + std::to_string(length) + "x" + std::to_string(channels) +
           "x" + std::to_string(states);
  }
  // Returns u, delta, A, B, C and an initial state. The decay is slow enough that it does not reach
  // 0 over a long sequence.
  [[nodiscard]] std::vector<Argument> args() const {
    return {{{batch, length, channels}, -1, 1}, {{batch, length, channels}, 0.01, 0.4},
            {{channels, states}, -2, -0.1},     {{batch, length, states}, -1, 1},
            {{batch, length, states}, -1, 1},   {{batch, channels, states}, -1, 1}};
  }
};

// Concatenates flattened tensors. A state is f32 even if the rest is f16.
Tensor in_a_row(std::vector<Tensor> parts) {
  for (Tensor& part : parts) {
    part = reshape(part, {-1});
    if (part.dtype() == f16) part = cast(part, f32);
  }
  return concat(parts);
}

Tensor both(const SelectiveScan& scan) { return in_a_row({scan.y, scan.state}); }

Tensor plain_scan(T t) { return selective_scan(t[0], t[1], t[2], t[3], t[4]).y; }
Tensor held_scan(T t) {
  return selective_scan(t[0], t[1], t[2], t[3], t[4],
                        {.discretization = Discretization::kZeroOrderHold})
      .y;
}
Tensor carried_scan(T t) {
  return both(selective_scan(t[0], t[1], t[2], t[3], t[4], {.initial_state = t[5]}));
}
Tensor carried_and_held(T t) {
  return both(
      selective_scan(t[0], t[1], t[2], t[3], t[4],
                     {.initial_state = t[5], .discretization = Discretization::kZeroOrderHold}));
}

// Returns all results and gradients.
Tensor scan_both_ways(T t) {
  const SelectiveScan scan = selective_scan(t[0], t[1], t[2], t[3], t[4], {.initial_state = t[5]});
  const Tensor loss = sum(square(scan.y)) + sum(square(scan.state));
  std::vector<Tensor> parts = {scan.y, scan.state};
  for (const Tensor& d : grad(loss, t)) parts.push_back(d);
  return in_a_row(parts);
}

// Adds D and z after u, delta, A, B and C.
std::vector<Argument> gated_args(const ScanSize& size) {
  std::vector<Argument> args = size.args();
  args[5] = {{size.channels}, -1, 1};
  args.push_back({{size.batch, size.length, size.channels}, -3, 3});
  return args;
}
Tensor gated_scan(T t) {
  return selective_scan(t[0], t[1], t[2], t[3], t[4], {.D = t[5], .z = t[6]}).y;
}
Tensor gated_and_carried(T t) {
  return both(
      selective_scan(t[0], t[1], t[2], t[3], t[4], {.D = t[5], .z = t[6], .initial_state = t[7]}));
}
Tensor gated_both_ways(T t) {
  const Tensor y = gated_scan(t);
  std::vector<Tensor> parts = {y};
  for (const Tensor& d : grad(sum(square(y)), t)) parts.push_back(d);
  return in_a_row(parts);
}

// ---- packed documents ----

// Of 1, 3, 2, 16, 1, 29 ... steps; those of other rows begin elsewhere.
Argument documents(std::int64_t batch, std::int64_t length) {
  constexpr std::int64_t kSizes[] = {1, 3, 2, 16, 1, 29, 64, 300};
  Argument argument = {{batch, length}, 0, 0, i32, {}};
  for (std::int64_t b = 0; b < batch; ++b) {
    std::int64_t number = b, left = kSizes[b % 8];
    for (std::int64_t t = 0; t < length; ++t) {
      if (left == 0) left = kSizes[++number % 8];
      --left;
      argument.values.push_back(static_cast<double>(number));
    }
  }
  return argument;
}

// The documents are behind the others.
std::vector<Argument> packed(std::vector<Argument> args, std::int64_t batch, std::int64_t length) {
  args.push_back(documents(batch, length));
  return args;
}

// y, the state and, if asked for, the gradients of all but the documents.
Tensor packed_results(T t, std::vector<Tensor> parts, bool with_gradients) {
  if (!with_gradients) return in_a_row(parts);
  std::optional<Tensor> loss;
  for (const Tensor& part : parts) loss = loss ? *loss + sum(square(part)) : sum(square(part));
  for (const Tensor& d : grad(*loss, {t.begin(), t.end() - 1})) parts.push_back(d);
  return in_a_row(parts);
}

std::function<Tensor(T)> packed_scan(bool with_gradients, Discretization discretization) {
  return [=](T t) {
    const SelectiveScan scan = selective_scan(
        t[0], t[1], t[2], t[3], t[4],
        {.initial_state = t[5], .discretization = discretization, .documents = t.back()});
    return packed_results(t, {scan.y, scan.state}, with_gradients);
  };
}
Tensor packed_gated_scan(T t) {
  return packed_results(
      t,
      {selective_scan(t[0], t[1], t[2], t[3], t[4], {.D = t[5], .z = t[6], .documents = t.back()})
           .y},
      true);
}

std::vector<OpCase> packed_sizes() {
  std::vector<OpCase> cases;
  const auto add = [&](const std::string& name, const ScanSize& s, std::vector<Argument> args,
                       std::function<Tensor(T)> apply) {
    cases.push_back({name + "_" + s.name(), packed(std::move(args), s.batch, s.length),
                     std::move(apply), false});
  };
  for (const ScanSize& s : {ScanSize{2, 63, 70, 16}, {2, 600, 3, 5}})
    add("selective_scan_of_documents", s, s.args(), packed_scan(true, Discretization::kEuler));
  for (const ScanSize& s : {ScanSize{3, 65, 33, 17}, {1, 30, 9, 64}})
    add("selective_scan_gated_of_documents", s, gated_args(s), packed_gated_scan);
  const ScanSize held{2, 63, 33, 5};
  add("selective_scan_hold_of_documents", held, held.args(),
      packed_scan(true, Discretization::kZeroOrderHold));
  return cases;
}

std::vector<OpCase> scan_sizes() {
  std::vector<OpCase> cases;
  for (const ScanSize& s : {ScanSize{1, 1, 1, 1}, {2, 2, 3, 2}, {1, 33, 2, 6}, {1, 260, 1, 1}}) {
    cases.push_back({"selective_scan_" + s.name(), s.args(), carried_scan});
    cases.push_back({"selective_scan_hold_" + s.name(), s.args(), carried_and_held});
  }
  for (const ScanSize& s : {ScanSize{2, 63, 70, 16},
                            {1, 64, 64, 17},
                            {3, 65, 33, 16},
                            {2, 1000, 3, 5},
                            {1, 30, 130, 64}}) {
    cases.push_back({"selective_scan_both_ways_" + s.name(), s.args(), scan_both_ways, false});
  }
  // With 64 states, more threads share a channel than the workgroup memory of the smallest GPU has
  // room for steps.
  for (const ScanSize& s :
       {ScanSize{2, 63, 70, 16}, {2, 300, 3, 5}, {1, 36, 9, 64}, {1, 18, 5, 70}}) {
    cases.push_back(
        {"selective_scan_gated_both_ways_" + s.name(), gated_args(s), gated_both_ways, false});
  }
  return cases;
}

std::vector<OpCase> scan_forms() {
  const ScanSize small{2, 5, 3, 2};
  std::vector<Argument> with_weights = small.args();
  with_weights[1] = {{2, 5, 3}, -3, 1};
  with_weights[5] = {{3}, -1, 1};
  with_weights.push_back({{3}, -1, 1});
  std::vector<Argument> slow = small.args();  // delta A around 0 and beyond the range of the series
  slow[2] = {{3, 2}, 0, 0, f32, {0, -0.01, 1e-4, -0.9, -30, 0.7}};
  std::vector<Argument> carried = gated_args({1, 260, 1, 1});
  carried.push_back({{1, 1, 1}, -1, 1});
  std::vector<Argument> carried_in_one = gated_args(small);
  carried_in_one.push_back({{2, 3, 2}, -1, 1});
  std::vector<Argument> turned = small.args();
  turned[0].shape = turned[1].shape = {2, 3, 5};
  return {
      {"selective_scan", small.args(), plain_scan},
      {"selective_scan_carried", ScanSize{2, 17, 5, 3}.args(), carried_scan},
      {"selective_scan_with_its_gradients", ScanSize{1, 4, 2, 1}.args(), scan_both_ways},
      {"selective_scan_with_its_gradients_of_segments", ScanSize{1, 258, 1, 1}.args(),
       scan_both_ways},
      {"selective_scan_of_two_segments", ScanSize{1, 257, 20, 4}.args(), scan_both_ways, false},
      {"selective_scan_of_many_states", ScanSize{1, 18, 5, 70}.args(), scan_both_ways, false},
      {"selective_scan_of_documents", packed(small.args(), 2, 5),
       packed_scan(false, Discretization::kEuler)},
      {"selective_scan_of_documents_and_lanes", packed(ScanSize{1, 70, 1, 2}.args(), 1, 70),
       packed_scan(false, Discretization::kEuler), false},
      {"selective_scan_of_documents_of_many_states", packed(ScanSize{1, 18, 5, 70}.args(), 1, 18),
       packed_scan(false, Discretization::kEuler), false},
      {"selective_scan_of_documents_of_one_step", packed(ScanSize{2, 1, 3, 2}.args(), 2, 1),
       packed_scan(false, Discretization::kEuler)},
      {"selective_scan_hold_of_documents", packed(small.args(), 2, 5),
       packed_scan(false, Discretization::kZeroOrderHold)},
      {"selective_scan_of_documents_with_its_gradients", packed(ScanSize{1, 5, 2, 1}.args(), 1, 5),
       packed_scan(true, Discretization::kEuler)},
      {"selective_scan_gated", gated_args(small), gated_scan},
      {"selective_scan_gated_and_carried", carried, gated_and_carried},
      {"selective_scan_gated_and_carried_in_one_segment", carried_in_one, gated_and_carried},
      {"selective_scan_gated_of_one_step", gated_args({2, 1, 3, 2}), gated_scan},
      {"selective_scan_gated_with_its_gradients", gated_args({1, 4, 2, 1}), gated_both_ways},
      {"selective_scan_gated_with_its_gradients_of_segments", gated_args({1, 258, 1, 1}),
       gated_both_ways},
      {"selective_scan_hold", small.args(), held_scan},
      {"selective_scan_hold_of_slow_ones", slow, held_scan},
      {"selective_scan_of_slow_ones", slow, plain_scan},
      {"selective_scan_of_the_state_alone", small.args(),
       [](T t) {
         return selective_scan(t[0], t[1], t[2], t[3], t[4], {.initial_state = t[5]}).state;
       }},
      {"selective_scan_with_softplus", with_weights,
       [](T t) {
         return selective_scan(t[0], t[1], t[2], t[3], t[4],
                               {.D = t[5], .delta_bias = t[6], .delta_softplus = true})
             .y;
       }},
      {"selective_scan_of_channels_first", turned,
       [](T t) {
         const Tensor y =
             selective_scan(transpose(t[0]), transpose(t[1]) * 0.5, t[2], t[3], t[4]).y;
         return transpose(y);
       }},
      {"selective_scan_of_one_for_all", small.args(),
       [](T t) { return selective_scan(t[0], t[0] * t[0], -(t[2] * t[2]), t[3], t[3]).y; }},
      {"selective_scan_in_two_calls", ScanSize{1, 7, 2, 3}.args(),
       [](T t) {
         const auto part = [&](std::int64_t from, std::int64_t count, Tensor state) {
           const auto some = [&](Tensor x) { return narrow(x, 1, from, count); };
           return selective_scan(some(t[0]), some(t[1]), t[2], some(t[3]), some(t[4]),
                                 {.initial_state = state});
         };
         const SelectiveScan front = part(0, 4, t[5]);
         const SelectiveScan back = part(4, 3, front.state);
         return in_a_row({front.y, back.y, back.state});
       }},
  };
}

std::vector<OpCase> convolutions() {
  return {
      {"document_positions", packed({}, 3, 9), [](T t) { return document_positions(t[0]); }, false},
      {"causal_conv1d", {{{2, 6, 3}}, {{3, 4}}}, [](T t) { return causal_conv1d(t[0], t[1]).y; }},
      {"causal_conv1d_shorter_than_its_weight",
       {{{2, 2, 3}}, {{3, 1, 4}}, {{3}}},
       [](T t) { return causal_conv1d(t[0], t[1], t[2]).y; }},
      {"causal_conv1d_with_state",
       {{{2, 5, 3}}, {{3, 4}}, {{3}}, {{2, 3, 3}}},
       [](T t) {
         const CausalConv conv = causal_conv1d(t[0], t[1], t[2], t[3]);
         return concat({conv.y, conv.state * 2.0}, 1);
       }},
      {"causal_conv1d_in_two_calls",
       {{{1, 7, 2}}, {{2, 3}}},
       [](T t) {
         const CausalConv front = causal_conv1d(narrow(t[0], 1, 0, 4), t[1]);
         return concat(
             {front.y, causal_conv1d(narrow(t[0], 1, 4, 3), t[1], std::nullopt, front.state).y}, 1);
       }},
      {"causal_conv1d_of_documents", packed({{{2, 9, 3}}, {{3, 4}}, {{3}}, {{2, 3, 3}}}, 2, 9),
       [](T t) {
         const CausalConv conv = causal_conv1d(t[0], t[1], t[2], t[3], t[4]);
         return packed_results(t, {conv.y, conv.state}, false);
       }},
      {"causal_conv1d_of_documents_and_its_gradients",
       packed({{{2, 30, 5}}, {{5, 4}}, {{5}}, {{2, 3, 5}}}, 2, 30),
       [](T t) {
         const CausalConv conv = causal_conv1d(t[0], t[1], t[2], t[3], t[4]);
         return packed_results(t, {conv.y, conv.state}, true);
       },
       false},
      {"causal_conv1d_64x70",
       {{{2, 64, 70}}, {{70, 4}}, {{70}}},
       [](T t) {
         const Tensor y = silu(causal_conv1d(t[0], t[1], t[2]).y);
         const std::vector<Tensor> d = grad(sum(y * y), {t[0], t[1], t[2]});
         return concat(
             {reshape(sum(y, -1), {-1}), reshape(sum(d[0], -1), {-1}), reshape(d[1], {-1}), d[2]});
       },
       false},
  };
}

std::vector<OpCase> rotations() {
  const auto args = [](std::int64_t length, std::int64_t ranks) {
    const Shape steps = {2, length, 2};
    return std::vector<Argument>{{{2, length, 2, ranks, 2}, -1, 1},
                                 {steps, 0.1, 0.6},
                                 {steps, -2, -0.1},
                                 {steps, 0, 1},
                                 {{2, length, 2, 1}, -2, 2},
                                 {{2, length, 2, ranks, 2}, -1, 1},
                                 {{2, length, 2, ranks, 2}, -1, 1}};
  };
  const auto flat = [](const RotaryScan& scan) { return in_a_row({scan.y, scan.state.state}); };
  const auto plain = [flat](T t) {
    return flat(rotary_scan(t[0], t[1], t[2], t[3], t[4], t[5], t[6], {.chunk = 3}));
  };
  // Runs the first steps, then the others.
  const auto in_two = [flat](T t, std::int64_t first) {
    const auto piece = [&](std::int64_t from, std::int64_t count, const RotaryScanOptions& how) {
      const auto some = [&](std::size_t i) { return narrow(t[i], 1, from, count); };
      return rotary_scan(some(0), some(1), some(2), some(3), some(4), some(5), some(6), how);
    };
    const RotaryScan front = piece(0, first, {});
    return in_a_row({front.y, flat(piece(first, 3 - first, {.initial_state = front.state}))});
  };
  return {
      {"rotary_scan", args(4, 1), plain},
      {"rotary_scan_of_one_step", args(1, 1), plain},
      {"rotary_scan_of_one_step_of_ranks", args(1, 2), plain},
      {"rotary_scan_of_ranks", args(3, 2), plain},
      {"rotary_scan_of_documents", packed(args(6, 2), 2, 6),
       [](T t) {
         const RotaryScan scan =
             rotary_scan(t[0], t[1], t[2], t[3], t[4], t[5], t[6], {.chunk = 3, .documents = t[7]});
         return in_a_row({scan.y, scan.state.state, scan.state.phase});
       }},
      {"rotary_scan_in_two_calls", args(3, 1), [=](T t) { return in_two(t, 1); }},
      {"rotary_scan_and_one_step", args(3, 1), [=](T t) { return in_two(t, 2); }},
  };
}

std::vector<OpCase> dualities() {
  const auto args = [](std::int64_t length, std::int64_t heads, std::int64_t groups) {
    return std::vector<Argument>{{{2, length, heads, 2}, -1, 1},
                                 {{2, length, heads}, 0.01, 0.4},
                                 {{heads}, -2, -0.1},
                                 {{2, length, groups, 3}, -1, 1},
                                 {{2, length, groups, 3}, -1, 1},
                                 {{2, heads, 2, 3}, -1, 1}};
  };
  const auto with = [](std::int64_t chunk) {
    return [chunk](T t) {
      const Ssd made = ssd(t[0], t[1], t[2], t[3], t[4], {.chunk = chunk, .initial_state = t[5]});
      return in_a_row({made.y, made.state});
    };
  };
  std::vector<Argument> weighted = args(3, 2, 2);
  weighted[1] = {{2, 3, 2}, -3, 1};
  weighted[5] = {{2}, -1, 1};
  weighted.push_back({{2}, -1, 1});
  return {
      {"ssd", args(4, 2, 1), [](T t) { return ssd(t[0], t[1], t[2], t[3], t[4]).y; }},
      {"ssd_of_one_step", args(1, 2, 2), with(64)},
      {"ssd_in_chunks", args(5, 4, 2), with(2)},
      {"ssd_of_documents", packed(args(9, 4, 2), 2, 9),
       [](T t) {
         const Ssd made = ssd(t[0], t[1], t[2], t[3], t[4],
                              {.chunk = 2, .initial_state = t[5], .documents = t[6]});
         return in_a_row({made.y, made.state});
       }},
      {"ssd_with_softplus", weighted,
       [](T t) {
         return ssd(t[0], t[1], t[2], t[3], t[4],
                    {.chunk = 2, .D = t[5], .dt_bias = t[6], .dt_softplus = true})
             .y;
       }},
  };
}

}  // namespace

std::vector<OpCase> state_space_forms() {
  std::vector<OpCase> cases = scan_forms();
  for (const auto& part : {convolutions(), dualities(), rotations()}) {
    cases.insert(cases.end(), part.begin(), part.end());
  }
  return cases;
}

std::vector<OpCase> state_space_cases() {
  std::vector<OpCase> cases = scan_sizes(), forms = state_space_forms();
  for (OpCase& each : packed_sizes()) cases.push_back(std::move(each));
  cases.insert(cases.end(), forms.begin(), forms.end());
  return cases;
}

}  // namespace tensorgrad::testing
