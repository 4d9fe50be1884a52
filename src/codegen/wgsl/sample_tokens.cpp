// SPDX-License-Identifier: MIT
// sample_tokens(): a workgroup samples the token of a row of logits.
//
// The weight of a token is exp(-gap / temperature), where gap is the distance of its logit to the
// largest one. Tokens with a gap of 64 temperatures or more are never drawn. The key of a token is
// its gap, in units of which 2^32 span the gaps of the row, followed by the number of tokens after
// it. Keys are distinct, and their order is the one in which top_p keeps tokens.
//
// top_k and top_p keep the tokens up to a key. It is found digit by digit, of 8 bits: each round
// adds up the number (top_k) or the weights (top_p) of the tokens by their next digit, among those
// that agree with the key so far. Sums of weights are integers of 64 bits, so that they do not
// depend on the order of atomic additions. A round ends the search if it leaves a single token.
//
// If at most 256 tokens come up to a digit, they are listed, and nothing else is read again.
// Reading the row takes most of the time. Each thread has several loads of it in flight.
//
// The token is drawn by the cumulative weights of 256 parts of the tokens, then of 256 parts of
// that part, until the part is a token.
#include <algorithm>

#include "codegen/wgsl/opaque.h"
#include "kernel/sample_tokens.h"

namespace tensorgrad::wgsl {
namespace {

constexpr std::int64_t kBins = 256;
constexpr int kRowThreads = 256;
constexpr std::int64_t kBatch = 8;  // loads of a thread in flight

// Parts of the kernel in the order of their use. filled() replaces the capitalized words.
constexpr const char* kHelpers = R"(
fn order_of(x: f32) -> u32 {
  let bits = select(bitcast<u32>(x), 0u, x == 0.0);
  return select(bits | 0x80000000u, ~bits, bits > 0x80000000u);
}
)";
constexpr const char* kScan = R"(
fn add_up(local: u32) {
  for (var step = 1u; step < 256u; step = step << 2u) {
    for (var e = local; e < 256u; e += THREADS) {
      other[e] = sums[e] + select(0.0, sums[max(e, step) - step], e >= step);
    }
    workgroupBarrier();
    let next = step << 1u;
    for (var e = local; e < 256u; e += THREADS) {
      sums[e] = other[e] + select(0.0, other[max(e, next) - next], e >= next);
    }
    workgroupBarrier();
  }
}
)";
// Adds a token to the sums by its digit.
constexpr const char* kCount = R"(
struct Row { n: u32, most: f32, span: f32, temperature: f32 }
// A token with the key (q, r) is kept if it is at most (last_q, last_r).
struct Search { round: u32, key_q: u32, key_r: u32, last_q: u32, last_r: u32, by_weight: bool }

fn count_token(e: u32, x: f32, row: Row, search: Search) {
  let gap = gap_of(x, row.most);
  if (gap >= 64.0 * row.temperature) { return; }
  let q = key_of(gap, row.span);
  let r = row.n - 1u - e;
  if (q > search.last_q || (q == search.last_q && r > search.last_r)) { return; }
  var digit = 0u;
  if (search.round < 4u) {
    let shift = 24u - 8u * search.round;
    if (search.round > 0u && (q >> ((shift + 8u) & 31u)) != search.key_q) { return; }
    digit = (q >> shift) & 255u;
  } else {
    let shift = 48u - 8u * search.round;
    if (q != search.key_q || (r >> (shift + 8u)) != search.key_r) { return; }
    digit = (r >> shift) & 255u;
  }
  let weight = select(1u, u32(exp(-gap / row.temperature) * 2147483648.0), search.by_weight);
  let before = atomicAdd(&low[digit], weight);
  if (before + weight < before) { atomicAdd(&high[digit], 1u); }
  atomicAdd(&members[digit], 1u);
}
)";
// Lists a token that is kept and whose first digit is at most `digit`.
constexpr const char* kList = R"(
fn list_token(e: u32, x: f32, row: Row, search: Search, digit: u32) {
  let gap = gap_of(x, row.most);
  let q = key_of(gap, row.span);
  let kept = q < search.last_q || (q == search.last_q && row.n - 1u - e <= search.last_r);
  if (gap < 64.0 * row.temperature && kept && (q >> 24u) <= digit) {
    unsorted[atomicAdd(&found[0], 1u) & 255u] = e;
  }
}
)";
// Returns the weight of a token, or 0 if it is not kept.
constexpr const char* kWeight = R"(
fn weight_of(e: u32, x: f32, row: Row, search: Search) -> f32 {
  let gap = gap_of(x, row.most);
  let q = key_of(gap, row.span);
  let kept = gap < 64.0 * row.temperature && (q < search.last_q ||
             (q == search.last_q && row.n - 1u - e <= search.last_r));
  return select(0.0, exp(-gap / row.temperature), kept);
}
)";
constexpr const char* kSee = R"(
    let bits = bitcast<u32>(x);
    if ((bits & 0x7fffffffu) >= 0x7f800000u && bits != 0xff800000u) { atomicMin(&found[0], e); }
    let order = order_of(x);
    if (order > key) {
      key = order;
      place = e;
    }
    if (order > LOWEST) { least = min(least, x); }
)";
// Finds the largest logit, its first token, and the first unusable logit.
constexpr const char* kLargest = R"(
if (local == 0u) { atomicStore(&found[0], 0xffffffffu); }
workgroupBarrier();
let temperature = control_at(p, TEMPERATURE, 0u);
let limit = u32(max(control_at(p, LIMIT, 0u), 0.0));
let n = select(TOKENS, min(limit, TOKENS), limit > 0u);
{
  var key = 0u;
  var place = 0u;
  var least = 3.0e38;
  let size = select(0u, n, temperature >= 0.0);
  EACH_TOKEN(see)
  keys[local] = key;
  places[local] = place;
  lows[local] = least;
}
workgroupBarrier();
for (var half = THREADS >> 1u; half > 0u; half = half >> 1u) {
  if (local < half) {
    let key = keys[local + half];
    let place = places[local + half];
    if (key > keys[local] || (key == keys[local] && place < places[local])) {
      keys[local] = key;
      places[local] = place;
    }
    lows[local] = min(lows[local], lows[local + half]);
  }
  workgroupBarrier();
}
let best = places[0];
let most = logit_at(p, best, 0u);
let fault = atomicLoad(&found[0]);
let usable = temperature >= 0.0 && fault == 0xffffffffu && keys[0] > LOWEST;
let row = Row(n, most, clamp(most - lows[0], 1.0e-30, 64.0 * temperature), temperature);
let top_k = control_at(p, TOP_K, 0u);
let top_p = control_at(p, TOP_P, 0u);
if (local == 0u) {
  var wanted = 0u;
  if (usable && temperature > 0.0) {
    wanted = 4u;
    if (top_k >= 1.0 && top_k < f32(n)) { wanted |= 1u; }
    if (top_p < 1.0) { wanted |= 2u; }
  }
  decision[0] = wanted;
}
let steps = workgroupUniformLoad(&decision[0]);
)";
constexpr const char* kSearch = R"(
var search = Search(0u, 0u, 0u, 0xffffffffu, 0xffffffffu, false);
var size = n;
var listed = false;
for (var rule = 0u; rule < 2u; rule++) {
  if ((steps & (1u << rule)) == 0u) { continue; }
  search.by_weight = rule == 1u;
  search.key_q = 0u;
  search.key_r = 0u;
  var rest = select(top_k, top_p, search.by_weight);
  var digits = 0u;
  for (var round = 0u; round < 7u; round++) {
    search.round = round;
    for (var e = local; e < 256u; e += THREADS) {
      atomicStore(&low[e], 0u);
      atomicStore(&high[e], 0u);
      atomicStore(&members[e], 0u);
    }
    if (local == 0u) { atomicStore(&found[0], 256u); }
    workgroupBarrier();
    EACH_TOKEN(count)
    workgroupBarrier();
    for (var e = local; e < 256u; e += THREADS) {
      sums[e] = f32(atomicLoad(&high[e])) * 4294967296.0 + f32(atomicLoad(&low[e]));
    }
    workgroupBarrier();
    add_up(local);
    if (search.by_weight && round == 0u) { rest *= sums[255]; }
    for (var e = local; e < 256u; e += THREADS) {
      if (sums[e] >= rest && atomicLoad(&members[e]) > 0u) { atomicMin(&found[0], e); }
    }
    workgroupBarrier();
    let digit = atomicLoad(&found[0]);
    if (digit < 256u) {
      if (digit > 0u) { rest -= sums[digit - 1u]; }
      if (round < 4u) {
        search.key_q = (search.key_q << 8u) | digit;
      } else {
        search.key_r = (search.key_r << 8u) | digit;
      }
      digits += 1u;
    }
    workgroupBarrier();
    if (round == 0u && !listed) {
      for (var e = local; e < 256u; e += THREADS) { sums[e] = f32(atomicLoad(&members[e])); }
      workgroupBarrier();
      add_up(local);
    }
    if (local == 0u) {
      let single = atomicLoad(&members[min(digit, 255u)]) == 1u;
      let ends = digit == 256u || single || (rule == 0u && round == 3u);
      let few = round == 0u && !listed && digit < 256u && sums[min(digit, 255u)] <= 256.0;
      decision[0] = select(0u, 1u, ends) | select(0u, 2u, few);
      atomicStore(&found[0], 0u);
    }
    let decided = workgroupUniformLoad(&decision[0]);
    if ((decided & 2u) != 0u) {
      EACH_TOKEN(list)
      workgroupBarrier();
      let count = min(atomicLoad(&found[0]), 256u);
      for (var e = local; e < count; e += THREADS) {
        var rank = 0u;
        for (var i = 0u; i < count; i++) { rank += select(0u, 1u, unsorted[i] < unsorted[e]); }
        list[rank] = unsorted[e];
      }
      size = count;
      listed = true;
      workgroupBarrier();
    }
    if ((decided & 1u) != 0u) { break; }
  }
  // The digits that are not known are the largest ones.
  var end_q = 0xffffffffu;
  var end_r = 0xffffffffu;
  if (digits >= 4u) {
    end_q = search.key_q;
    let shift = 56u - 8u * max(digits, 5u);
    if (digits > 4u) { end_r = (search.key_r << shift) | ((1u << shift) - 1u); }
  } else if (digits > 0u) {
    let shift = 32u - 8u * digits;
    end_q = (search.key_q << shift) | ((1u << shift) - 1u);
  }
  if (end_q < search.last_q || (end_q == search.last_q && end_r < search.last_r)) {
    search.last_q = end_q;
    search.last_r = end_r;
  }
}
let min_p = control_at(p, MIN_P, 0u);
if (min_p > 0.0) {
  let end_q = key_of(max(-log(min_p), 0.0) * temperature, row.span);
  if (end_q < search.last_q) {
    search.last_q = end_q;
    search.last_r = 0xffffffffu;
  }
}
)";
constexpr const char* kDraw = R"(
var token = 0u;
if ((steps & 4u) != 0u) {
  let all = size;
  var first = 0u;
  var rest = uniform_at(p, 0u, 0u);
  for (var round = 0u; round < PASSES; round++) {
    let part = (size + 255u) >> 8u;
    if (local == 0u) {
      atomicStore(&found[0], 256u);
      atomicStore(&last_part[0], 0u);
    }
    for (var e = local; e < 256u; e += THREADS) {
      var sum = 0.0;
      let end = min(min(first + (e + 1u) * part, first + size), all);
      EACH_OF_PART
      sums[e] = sum;
      own[e] = sum;
    }
    workgroupBarrier();
    add_up(local);
    if (round == 0u) { rest *= sums[255]; }
    for (var e = local; e < 256u; e += THREADS) {
      if (own[e] > 0.0) {
        atomicMax(&last_part[0], e);
        if (sums[e] > rest) { atomicMin(&found[0], e); }
      }
    }
    workgroupBarrier();
    var at = atomicLoad(&found[0]);
    if (at == 256u) {
      // The sum of the parts was rounded up.
      at = atomicLoad(&last_part[0]);
      rest = 3.0e38;
    } else if (at > 0u) {
      rest -= sums[at - 1u];
    }
    first += at * part;
    size = part;
    workgroupBarrier();
  }
  token = token_at(min(first, all - 1u), listed);
}
)";
constexpr const char* kResult = R"(
var result = i32(select(best, token, (steps & 4u) != 0u));
if (temperature >= 0.0 && !usable) {
  result = bitcast<i32>(0x80000000u);
  if (fault != 0xffffffffu) {
    let nan = (bitcast<u32>(logit_at(p, fault, 0u)) & 0x7fffffffu) > 0x7f800000u;
    result = select(-2, -1, nan) - 2 * i32(fault);
  }
}
)";

// Statements that run `body` for the tokens `e` with the logits `x` at the indices `begin`, begin +
// step ... before `end`, kBatch of them at a time. The next batch begins after `advance`.
std::string in_batches(const std::string& begin, const std::string& end, std::int64_t step,
                       std::int64_t advance, const std::string& listed, const std::string& body) {
  std::string loads;
  for (std::int64_t k = 0; k < kBatch; ++k) {
    const std::string at = "min(i + " + u32_literal(k * step) + ", " + end + " - 1u)";
    loads += "  xs[" + std::to_string(k) + "] = logit_at(p, token_at(" + at + ", " + listed +
             "), 0u);\n";
  }
  return "for (var i = " + begin + "; i < " + end + "; i += " + u32_literal(advance) + ") {\n" +
         "  var xs: array<f32, " + std::to_string(kBatch) + ">;\n" + loads +
         "  for (var k = 0u; k < " + u32_literal(kBatch) + "; k++) {\n    let at = i + k * " +
         u32_literal(step) + ";\n    if (at >= " + end + ") { break; }\n" +
         "    let e = token_at(at, " + listed + ");\n    let x = xs[k];\n" + body + "  }\n}\n";
}

void replace_all(std::string& text, std::string_view word, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += by.size())
    text.replace(at, word.size(), by);
}

class SampleTokensWriter {
 public:
  SampleTokensWriter(const Launch& launch, const WgslOptions& options)
      : launch_(launch),
        kernel_(kernel_of<SampleTokensKernel>(launch)),
        module_(launch),
        threads_(std::min(kRowThreads, floor_pow2(options.max_threads))) {}

  Shader write() {
    const auto& inputs = launch_.as<OpaqueLaunch>().inputs;
    const std::int64_t rows = kernel_.rows;
    write_source(module_, "logit_at", inputs[0], {{"p", rows}, {"i", kernel_.tokens}, {"q", 1}});
    write_source(module_, "uniform_at", inputs[1], {{"p", rows}, {"i", 1}, {"q", 1}});
    write_source(module_, "control_at", inputs[2], {{"p", rows}, {"i", kSampleControls}, {"q", 1}});
    module_.function("order_of", filled(kHelpers));
    module_.function("gap_of",
                     "fn gap_of(x: f32, most: f32) -> f32 {\n"
                     "  return select(min(most - x, 3.0e38), 3.0e38, "
                     "bitcast<u32>(x) == 0xff800000u);\n}\n");
    module_.function("key_of",
                     "fn key_of(gap: f32, span: f32) -> u32 {\n"
                     "  return u32(min(gap / span, 1.0) * 4294967040.0);\n}\n");
    module_.function("add_up", filled(kScan));
    module_.function("token_at",
                     "fn token_at(i: u32, listed: bool) -> u32 {\n"
                     "  if (listed) { return list[i & 255u]; }\n  return i;\n}\n");
    module_.function("count_token", kCount);
    module_.function("list_token", kList);
    module_.function("weight_of", kWeight);
    for (const char* name : {"list", "unsorted"}) module_.shared(name, "u32", kBins, 4);
    for (const char* name : {"keys", "places"}) module_.shared(name, "u32", threads_, 4);
    for (const char* name : {"low", "high", "members"})
      module_.shared(name, "atomic<u32>", kBins, 4);
    module_.shared("lows", "f32", threads_, 4);
    for (const char* name : {"sums", "other", "own"}) module_.shared(name, "f32", kBins, 4);
    for (const char* name : {"found", "last_part"}) module_.shared(name, "atomic<u32>", 1, 4);
    module_.shared("decision", "u32", 1, 4);
    const Window window = window_of(launch_);
    open_rows(scope_, Tile{1, threads_, true}, window.count, "p", window.first);
    for (const char* part : {kLargest, kSearch, kDraw, kResult}) scope_.line(filled(part));
    const Store& to = launch_.stores.at(0);
    Scope store(&scope_);
    const ElementRef place = place_of(store, {{"p", rows}}, to.map);
    store.line(module_.store(to.binding, to.dtype, place.index, "result"));
    scope_.block("if (local == 0u)", store);
    return make_shader(module_, scope_, threads_, window.count);
  }

 private:
  // Replaces the capitalized words of a text.
  [[nodiscard]] std::string filled(std::string text) const {
    const auto each_token = [&](const std::string& listed, const std::string& body) {
      return in_batches("local", "size", threads_, kBatch * threads_, listed, body);
    };
    replace_all(text, "EACH_TOKEN(see)", each_token("false", kSee));
    replace_all(text, "EACH_TOKEN(count)",
                each_token("listed", "    count_token(e, x, row, search);\n"));
    replace_all(text, "EACH_TOKEN(list)",
                each_token("false", "    list_token(e, x, row, search, digit);\n"));
    replace_all(text, "EACH_OF_PART",
                in_batches("first + e * part", "end", 1, kBatch, "listed",
                           "    sum += weight_of(e, x, row, search);\n"));
    int passes = 1;
    for (std::int64_t part = ceil_div(kernel_.tokens, kBins); part > 1;
         part = ceil_div(part, kBins))
      ++passes;
    const std::pair<const char*, std::int64_t> numbers[] = {
        {"THREADS", threads_}, {"TOKENS", kernel_.tokens},
        {"PASSES", passes},    {"TEMPERATURE", kTemperature},
        {"TOP_K", kTopK},      {"TOP_P", kTopP},
        {"MIN_P", kMinP},      {"LIMIT", kTokens},
        {"LOWEST", 0x007fffff}};  // order_of() minus infinity
    for (const auto& [word, number] : numbers) replace_all(text, word, u32_literal(number));
    return text;
  }

  const Launch& launch_;
  const SampleTokensKernel& kernel_;
  Module module_;
  Scope scope_;
  int threads_;
};

}  // namespace

Shader write_sample_tokens(const Launch& launch, const WgslOptions& options) {
  return SampleTokensWriter(launch, options).write();
}

}  // namespace tensorgrad::wgsl
