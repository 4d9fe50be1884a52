// SPDX-License-Identifier: MIT
// The forward pass of attention with few queries and many keys, as when a text is generated token
// by token. A workgroup has one query and loops over blocks of keys. Four threads compute the score
// of a key, so a subgroup reads neighboring vectors. For the products with v, the threads of a line
// have its vectors, and several lines are read at a time. Keys that a mask excludes, such as the
// unused part of a KV cache, are not read.
#include <algorithm>
#include <array>
#include <bit>
#include <string>

#include "codegen/wgsl/attention/attention.h"

namespace tensorgrad::wgsl {
namespace {

constexpr std::int64_t kMaxQueries = 4, kMinKeys = 64;
constexpr int kMinThreads = 32;
// With more threads, a block is visited in fewer steps. If several workgroups share a core, their
// steps overlap anyway.
constexpr int kMaxThreads = 256, kMaxThreadsOfCore = 512;
constexpr int kKeysPerThread = 2;  // of a block
constexpr int kLanes = 4;          // threads that compute a score
// Keys and lines of v that a thread reads at a time, to hide latency.
constexpr int kKeysAtOnce = 4, kLinesAtOnce = 8;
constexpr int kReducers = 16;  // threads that reduce the values of all threads

class FewQueriesAttention : private AttentionParts {
 public:
  FewQueriesAttention(const Launch& launch, const WgslOptions& options)
      : AttentionParts(launch, options) {
    const bool fit_cores = window_.count * s_.rows <= options.gpu.cores;
    const int most = std::min(fit_cores ? kMaxThreadsOfCore : kMaxThreads, options.max_threads);
    while (threads_ * 2 <= most && block() < s_.columns) threads_ *= 2;
    while (threads_ > kMaxThreads && !arrays_fit()) threads_ /= 2;
  }

  bool write(Shader& shader);

 private:
  [[nodiscard]] bool takes() const;
  [[nodiscard]] std::int64_t block() const { return std::int64_t{threads_} * kKeysPerThread; }
  // Distance of the lanes' parts of scores: neighboring threads access different banks.
  [[nodiscard]] std::int64_t pitch() const { return block() + 32 / kLanes; }
  // Vectors of a line of v, and lines that are read at a time.
  [[nodiscard]] std::int64_t vectors() const { return s_.width / 4; }
  [[nodiscard]] std::int64_t lines() const { return threads_ / vectors(); }
  // Arrays in workgroup memory.
  struct Array {
    const char *name, *type;
    std::int64_t count;
    int element_bytes;
  };
  [[nodiscard]] std::array<Array, 6> arrays() const;
  [[nodiscard]] bool arrays_fit() const;

  void write_live(Scope& scope, const std::string& n) const;
  void write_parts_of_scores(Scope& scope) const;
  void write_weights(Scope& scope);
  void write_values(Scope& scope) const;
  void write_reduced(Scope& scope, const std::string& name, const std::string& value,
                     bool is_maximum) const;
  void write_results(Scope& scope);

  int threads_ = kMinThreads;  // a power of two
};

bool FewQueriesAttention::takes() const {
  return forward() && s_.rows <= kMaxQueries && s_.columns >= kMinKeys &&
         options_.attention_columns == 0 && threads_ <= options_.max_threads && s_.depth % 4 == 0 &&
         s_.width % 4 == 0 && vectors() <= threads_;
}

std::array<FewQueriesAttention::Array, 6> FewQueriesAttention::arrays() const {
  return {Array{"query", "vec4<f32>", s_.depth / 4, 16}, Array{"parts", "f32", kLanes * pitch(), 4},
          Array{"weights", "f32", block(), 4},           Array{"of_threads", "f32", threads_, 4},
          Array{"of_reducers", "f32", kReducers, 4},     Array{"outs", "vec4<f32>", threads_, 16}};
}

bool FewQueriesAttention::arrays_fit() const {
  std::int64_t bytes = 0;
  for (const Array& array : arrays()) bytes += array.count * array.element_bytes;
  return bytes <= options_.max_workgroup_bytes;
}

// Declares `jN`, the key `atN` of the block, and `liveN`, which is false if it does not exist or is
// masked.
void FewQueriesAttention::write_live(Scope& scope, const std::string& n) const {
  scope.line("let j" + n + " = start + at" + n + ";");
  scope.line("var live" + n + " = j" + n + " < " + u32_literal(s_.columns) +
             (s_.causal ? " && j" + n + " <= i;" : ";"));
  if (truth_mask()) scope.line("if (live" + n + ") { live" + n + " = mask_at(p, i, j" + n + "); }");
}

// Stores a thread's part of the scores of the block. Instead of a masked key, reads the first one,
// which is cached.
void FewQueriesAttention::write_parts_of_scores(Scope& scope) const {
  const std::int64_t at_once = threads_ / kLanes, vectors_of_key = s_.depth / 4;
  Scope loop(&scope), any(&loop);
  std::string some;
  for (int n = 0; n < kKeysAtOnce; ++n) {
    const std::string name = std::to_string(n);
    loop.line("let at" + name + " = first + local / " + u32_literal(kLanes) + " + " +
              u32_literal(n * at_once) + ";");
    write_live(loop, name);
    some += (n > 0 ? " || live" : "live") + name;
    any.line("let key" + name + " = select(0u, j" + name + ", live" + name + ");");
    any.line("var part" + name + " = vec4<f32>();");
  }
  for (std::int64_t d = 0; d < vectors_of_key; d += kLanes) {
    Scope step(&any);
    step.line("let d = quarter + " + u32_literal(d) + ";");
    step.line("let q = query[d];");
    for (int n = 0; n < kKeysAtOnce; ++n) {
      const std::string name = std::to_string(n);
      step.line("part" + name + " = fma(q, k_line(p, key" + name + ", d), part" + name + ");");
    }
    const bool whole = d + kLanes <= vectors_of_key;
    any.block(whole ? "" : "if (quarter < " + u32_literal(vectors_of_key - d) + ")", step);
  }
  for (int n = 0; n < kKeysAtOnce; ++n) {
    const std::string name = std::to_string(n);
    any.line("parts[quarter * " + u32_literal(pitch()) + " + at" + name + "] = dot(part" + name +
             ", vec4<f32>(1.0f));");
  }
  loop.block("if (" + some + ")", any);
  scope.block("for (var first = 0u; first < " + u32_literal(block()) +
                  "; first += " + u32_literal(at_once * kKeysAtOnce) + ")",
              loop);
  scope.line("workgroupBarrier();");
}

// Declares NAME, the maximum or the sum of a value over all threads.
void FewQueriesAttention::write_reduced(Scope& scope, const std::string& name,
                                        const std::string& value, bool is_maximum) const {
  const auto add = [&](Scope& to, const std::string& all, const std::string& more) {
    to.line(all + " = " + (is_maximum ? "max(" + all + ", " + more + ")" : all + " + " + more) +
            ";");
  };
  scope.line("of_threads[local] = " + value + ";");
  scope.line("workgroupBarrier();");
  Scope some(&scope), each(&some), all(&scope);
  some.line("var reduced = of_threads[local];");
  add(each, "reduced", "of_threads[other]");
  some.block("for (var other = local + " + u32_literal(kReducers) + "; other < " +
                 u32_literal(threads_) + "; other += " + u32_literal(kReducers) + ")",
             each);
  some.line("of_reducers[local] = reduced;");
  scope.block("if (local < " + u32_literal(kReducers) + ")", some);
  scope.line("workgroupBarrier();");
  scope.line("var " + name + " = of_reducers[0];");
  add(all, name, "of_reducers[other]");
  scope.block("for (var other = 1u; other < " + u32_literal(kReducers) + "; other++)", all);
}

// Stores the weights of the block, relative to `top`, the maximum of the scores so far.
void FewQueriesAttention::write_weights(Scope& scope) {
  const std::string scale =
      module_.constant(DType::kF32, std::bit_cast<std::uint32_t>(static_cast<float>(s_.scale)));
  scope.line("var most = top;");
  for (int n = 0; n < kKeysPerThread; ++n) {
    const std::string name = std::to_string(n);
    scope.line("let at" + name + " = local + " + u32_literal(n * threads_) + ";");
    write_live(scope, name);
    scope.line("var score" + name + " = 0.0f;");
    Scope live(&scope);
    std::string sum;
    for (int lane = 0; lane < kLanes; ++lane) {
      sum +=
          (lane > 0 ? " + parts[" : "(parts[") + u32_literal(lane * pitch()) + " + at" + name + "]";
    }
    live.line("score" + name + " = " + sum + ") * " + scale + ";");
    if (has(AttentionInput::kMask) && !truth_mask())
      live.line("score" + name + " += mask_at(p, i, j" + name + ");");
    live.line("most = max(most, score" + name + ");");
    scope.block("if (live" + name + ")", live);
  }
  write_reduced(scope, "new_top", "most", true);
  scope.line("let shrink = exp(top - new_top);");
  scope.line("top = new_top;");
  scope.line("sum *= shrink;");
  scope.line("out *= shrink;");
  for (int n = 0; n < kKeysPerThread; ++n) {
    const std::string name = std::to_string(n);
    scope.line("var weight" + name + " = 0.0f;");
    Scope live(&scope);
    live.line("weight" + name + " = exp(score" + name + " - top);");
    live.line("sum += weight" + name + ";");
    if (has(AttentionInput::kKeep))
      live.line("weight" + name + " *= keep_at(p, i, j" + name + ");");
    scope.block("if (live" + name + ")", live);
    scope.line("weights[at" + name + "] = weight" + name + ";");
  }
  scope.line("workgroupBarrier();");
}

// Adds the block's weights times v to `out`, a thread's vector of some lines. Lines of weight 0 are
// not read.
void FewQueriesAttention::write_values(Scope& scope) const {
  const std::int64_t at_once = lines() * kLinesAtOnce;
  Scope loop(&scope), any(&loop);
  std::string some;
  for (int n = 0; n < kLinesAtOnce; ++n) {
    const std::string name = std::to_string(n);
    loop.line("let at" + name + " = first + " + u32_literal(n * lines()) + ";");
    const std::string weight = "weights[at" + name + "]";
    const bool whole = block() % at_once == 0 && threads_ % vectors() == 0;
    loop.line("let weight" + name + " = " +
              (whole ? weight
                     : "select(0.0f, weights[min(at" + name + ", " + u32_literal(block() - 1) +
                           ")], at" + name + " < " + u32_literal(block()) + ")") +
              ";");
    some += (n > 0 ? " || weight" : "weight") + name + " != 0.0f";
    any.line("let value" + name + " = v_line(p, select(0u, start + at" + name + ", weight" + name +
             " != 0.0f), vector);");
  }
  for (int n = 0; n < kLinesAtOnce; ++n) {
    const std::string name = std::to_string(n);
    any.line("out = fma(vec4<f32>(weight" + name + "), value" + name + ", out);");
  }
  loop.block("if (" + some + ")", any);
  scope.block("for (var first = line; first < " + u32_literal(block()) +
                  "; first += " + u32_literal(at_once) + ")",
              loop);
}

void FewQueriesAttention::write_results(Scope& scope) {
  write_result(1, s_.rows, 1);
  write_result_of_four(0, s_.rows, s_.width);
  write_reduced(scope, "total", "sum", false);  // contains barriers after the last block
  // zeros if all keys are masked
  scope.line("let nothing = total == 0.0f;");
  scope.line("if (local == 0u) { store1(p, i, 0u, select(top + log(total), 0.0f, nothing)); }");
  scope.line("outs[local] = out;");
  scope.line("workgroupBarrier();");
  Scope store(&scope), add(&store);
  store.line("var all = vec4<f32>();");
  add.line("all += outs[other * " + u32_literal(vectors()) + " + local];");
  store.block("for (var other = 0u; other < " + u32_literal(lines()) + "; other++)", add);
  store.line("store0_four(p, i, local * 4u, all * select(1.0f / total, 0.0f, nothing));");
  scope.block("if (local < " + u32_literal(vectors()) + ")", store);
}

bool FewQueriesAttention::write(Shader& shader) {
  if (!takes()) return false;
  write_inputs();
  for (const Array& array : arrays())
    module_.shared(array.name, array.type, array.count, array.element_bytes);
  const std::int64_t groups = window_.count * s_.rows;
  Scope scope;
  open_rows(scope, Tile{1, threads_, true}, groups, "unit");
  scope.line("let i = unit % " + u32_literal(s_.rows) + ";");
  scope.line("let p = unit / " + u32_literal(s_.rows) + " + " + u32_literal(window_.first) + ";");
  scope.line("let quarter = local % " + u32_literal(kLanes) + ";");
  scope.line("let line = local / " + u32_literal(vectors()) + ";");
  scope.line("let vector = local % " + u32_literal(vectors()) + ";");
  scope.line("for (var d = local; d < " + u32_literal(s_.depth / 4) +
             "; d += " + u32_literal(threads_) + ") { query[d] = q_line(p, i, d); }");
  scope.line("var top = -3.4028234e38f;");
  scope.line("var sum = 0.0f;");
  scope.line("var out = vec4<f32>();");
  scope.line("workgroupBarrier();");
  Scope keys(&scope);
  write_parts_of_scores(keys);
  write_weights(keys);
  write_values(keys);
  std::string end = u32_literal(s_.columns);
  if (s_.causal) end = "min(" + end + ", i + 1u)";
  scope.block("for (var start = 0u; start < " + end + "; start += " + u32_literal(block()) + ")",
              keys);
  write_results(scope);
  shader = make_shader(module_, scope, threads_, groups);
  return true;
}

}  // namespace

bool write_attention_of_few_queries(const Launch& launch, const WgslOptions& options,
                                    Shader& shader) {
  return FewQueriesAttention(launch, options).write(shader);
}

}  // namespace tensorgrad::wgsl
