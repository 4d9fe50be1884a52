// SPDX-License-Identifier: MIT
// Sort: out[p,i,q] = finish(t of the i-th element of line (p, q) in sort order). One workgroup
// sorts one line by Batcher's bitonic network (1968), in the variant in which every comparison puts
// the smaller element first. A line of any length is then equivalent to one padded with elements
// that never move. Keys are words in the order of their unsigned values; equal keys are ordered by
// index. Lines that exceed workgroup memory are sorted in the buffer of the resulting indices:
// steps within a tile run in workgroup memory, one tile at a time, other steps in the buffer.
//
// topk() selects the first k of a line by radix, from the highest digit: each pass counts the
// digits of the keys that agree with the k-th in the digits so far, and so finds one more digit of
// it. Elements equal to the k-th are selected by their index in the same way. The k elements are
// then sorted in workgroup memory.
#include <algorithm>

#include "base/check.h"
#include "codegen/wgsl/opaque.h"
#include "kernel/topk.h"

namespace tensorgrad::wgsl {
namespace {

std::int64_t pow2_of(std::int64_t n) {
  std::int64_t power = 2;
  while (power < n) power *= 2;
  return power;
}

// Parts of a workgroup that sorts one line: its key, and the steps of the network in workgroup
// memory.
class LineSorter {
 protected:
  LineSorter(const Launch& launch, const ScalarProgram& elements, bool descending)
      : launch_(launch),
        window_(window_of(launch)),
        module_(launch),
        type_(register_type(elements.instrs.back().dtype)),
        descending_(descending) {}

  // Declares the line's coordinates p and q. Returns the number of lines.
  std::int64_t open_line(std::int64_t pre, std::int64_t post) {
    const std::int64_t lines = window_.count * post;
    const Domain line = {{"line", pre * post}};
    open_rows(scope_, Tile{1, std::max(threads_, 2), true}, lines, "line", window_.first * post);
    scope_.line("let q = " + coordinate(scope_, line, 1, post) + ";");
    scope_.line("let p = " + coordinate(scope_, line, post, pre) + ";");
    return lines;
  }

  void write_network() {
    module_.shared("keys", "u32", tile_, 4);
    module_.shared("places", "u32", tile_, 4);
    module_.function("order_pair",
                     "fn order_pair(i: u32, j: u32) {\n"
                     "  let k = keys[i];\n  let l = keys[j];\n"
                     "  let s = places[i];\n  let t = places[j];\n"
                     "  if (k > l || (k == l && s > t)) {\n"
                     "    keys[i] = l;\n    keys[j] = k;\n"
                     "    places[i] = t;\n    places[j] = s;\n  }\n}\n");
  }

  // Sorts NaN last and -0 equal to 0; reversed if descending.
  void write_key() {
    std::string text = "fn key_of(x: " + type_ + ") -> u32 {\n";
    if (type_ == "u32") text += "  let key = x;\n";
    if (type_ == "i32") text += "  let key = bitcast<u32>(x) ^ 0x80000000u;\n";
    if (type_ == "f32") {
      text +=
          "  let bits = bitcast<u32>(x);\n"
          "  let size = bits & 0x7fffffffu;\n"
          "  let front = select(bits | 0x80000000u, ~bits, bits > 0x80000000u);\n"
          "  let key = select(front, 0xffffffffu, size > 0x7f800000u);\n";
    }
    text += std::string("  return ") + (descending_ ? "~key" : "key") + ";\n}\n";
    module_.function("key_of", text);
  }

  // Runs `body` for each e < count, distributed over the threads.
  void each(Scope& scope, std::int64_t count, const Scope& body) const {
    scope.block(
        "for (var e = local; e < " + u32_literal(count) + "; e += " + u32_literal(threads_) + ")",
        body);
  }

  // One step of the network within a tile: compares pairs (i, i ^ mask), where bit `half` of i is
  // 0.
  void write_step(Scope& scope, const std::string& half, const std::string& mask,
                  const std::string& count) const {
    Scope pair(&scope);
    pair.line("let i = ((e & ~(" + half + " - 1u)) << 1u) | (e & (" + half + " - 1u));");
    pair.line("let j = i ^ " + mask + ";");
    pair.line("if (j < " + count + ") { order_pair(i, j); }");
    each(scope, tile_ / 2, pair);
    scope.line("workgroupBarrier();");
  }

  // The rest of a stage, with distances within a tile.
  void write_halves(Scope& scope, const std::string& first, const std::string& count) const {
    Scope body(&scope);
    write_step(body, "half", "half", count);
    scope.block("for (var half = " + first + "; half > 0u; half = half >> 1u)", body);
  }

  void write_tile_sort(Scope& scope, const std::string& count) const {
    Scope stage(&scope);
    write_step(stage, "(width >> 1u)", "(width - 1u)", count);
    write_halves(stage, "width >> 2u", count);
    scope.block("for (var width = 2u; width <= " + u32_literal(tile_) + "; width = width << 1u)",
                stage);
  }

  // NOLINTBEGIN(*-non-private-member-variables-in-classes)
  const Launch& launch_;
  Window window_;
  Module module_;
  Scope scope_;
  std::string type_;
  bool descending_;
  std::int64_t tile_ = 2;  // elements in workgroup memory, a power of two
  int threads_ = 1;
  // NOLINTEND(*-non-private-member-variables-in-classes)
};

class SortWriter : private LineSorter {
 public:
  SortWriter(const Launch& launch, const SortLaunch& sort, const WgslOptions& options)
      : LineSorter(launch, sort.keys, sort.descending), sort_(sort) {
    size_ = pow2_of(sort.count);
    // a key and an index each
    tile_ = std::min<std::int64_t>(size_, floor_pow2(options.max_workgroup_bytes / 8));
    if (options.sort_tile >= 2)
      tile_ = std::min<std::int64_t>(tile_, floor_pow2(options.sort_tile));
    threads_ = std::min({256, floor_pow2(options.max_threads), floor_pow2(tile_ / 2)});
  }

  Shader write() {
    const Domain domain = {{"p", sort_.pre}, {"i", sort_.count}, {"q", sort_.post}};
    write_source(module_, "value_at", sort_.keys, domain);
    write_finish(module_, launch_, domain, DType::kI32);
    write_key();
    write_network();
    const std::int64_t lines = open_line(sort_.pre, sort_.post);
    if (tile_ == size_) {
      write_inside();
    } else {
      write_in_buffer(domain);
    }
    return make_shader(module_, scope_, threads_, lines);
  }

 private:
  void write_inside() {
    const std::string count = u32_literal(sort_.count);
    Scope load(&scope_), store(&scope_);
    load.line("keys[e] = key_of(value_at(p, e, q));");
    load.line("places[e] = e;");
    each(scope_, sort_.count, load);
    scope_.line("workgroupBarrier();");
    write_tile_sort(scope_, count);
    store.line("finish(p, e, q, i32(places[e]));");
    each(scope_, sort_.count, store);
  }

  // The indices of a line are sorted in the buffer where the launch stores them, so the epilogue
  // must store them unchanged.
  void write_buffer_access(const Domain& domain) {
    CHECK(launch_.stores.size() == 1 && launch_.stores[0].ring_word < 0, launch_.name);
    const Store& to = launch_.stores[0];
    CHECK(launch_.body.instrs.at(static_cast<std::size_t>(to.value)).kind == InstrKind::kAcc,
          launch_.name);
    Scope scope;
    const ElementRef place = place_of(scope, domain, to.map);
    scope.line("return u32(" + module_.load(to.binding, to.dtype, place.index) + ");");
    module_.function("place_at",
                     "fn place_at(p: u32, i: u32, q: u32) -> u32 {\n" + scope.text() + "}\n");
    module_.function("order_in_buffer",
                     "fn order_in_buffer(p: u32, i: u32, j: u32, q: u32) {\n"
                     "  let s = place_at(p, i, q);\n  let t = place_at(p, j, q);\n"
                     "  let k = key_of(value_at(p, s, q));\n  let l = key_of(value_at(p, t, q));\n"
                     "  if (k > l || (k == l && s > t)) {\n"
                     "    finish(p, i, q, i32(t));\n    finish(p, j, q, i32(s));\n  }\n}\n");
  }

  // For every tile: loads its indices into workgroup memory, runs `work`, and stores them.
  template <class Work>
  void each_tile(Scope& scope, const std::string& place, const Work& work) const {
    Scope tile(&scope), load(&tile), store(&tile);
    const std::string size = u32_literal(tile_), total = u32_literal(sort_.count);
    tile.line("let count = min(" + size + ", " + total + " - base);");
    load.line("if (e < count) {");
    load.line("  let t = " + place + ";");
    load.line("  places[e] = t;");
    load.line("  keys[e] = key_of(value_at(p, t, q));");
    load.line("}");
    each(tile, tile_, load);
    tile.line("workgroupBarrier();");
    work(tile);
    store.line("if (e < count) { finish(p, base + e, q, i32(places[e])); }");
    each(tile, tile_, store);
    tile.line("workgroupBarrier();");
    scope.block("for (var base = 0u; base < " + total + "; base += " + size + ")", tile);
    scope.line("storageBarrier();");
  }

  // One step of the network in the buffer.
  void write_far_step(Scope& scope, const std::string& half, const std::string& mask) const {
    Scope pair(&scope);
    pair.line("let i = ((e & ~(" + half + " - 1u)) << 1u) | (e & (" + half + " - 1u));");
    pair.line("let j = i ^ " + mask + ";");
    pair.line("if (j < " + u32_literal(sort_.count) + ") { order_in_buffer(p, i, j, q); }");
    each(scope, size_ / 2, pair);
    scope.line("storageBarrier();");
  }

  void write_in_buffer(const Domain& domain) {
    write_buffer_access(domain);
    each_tile(scope_, "base + e", [&](Scope& tile) { write_tile_sort(tile, "count"); });
    Scope stage(&scope_), far(&stage);
    write_far_step(stage, "(width >> 1u)", "(width - 1u)");
    write_far_step(far, "half", "half");
    stage.block(
        "for (var half = width >> 2u; half >= " + u32_literal(tile_) + "; half = half >> 1u)", far);
    each_tile(stage, "place_at(p, base + e, q)",
              [&](Scope& tile) { write_halves(tile, u32_literal(tile_ / 2), "count"); });
    scope_.block("for (var width = " + u32_literal(2 * tile_) + "; width <= " + u32_literal(size_) +
                     "; width = width << 1u)",
                 stage);
  }

  const SortLaunch& sort_;
  std::int64_t size_ = 2;  // of a line, rounded up to a power of two
};

class TopkWriter : private LineSorter {
 public:
  TopkWriter(const Launch& launch, const WgslOptions& options)
      : LineSorter(launch, launch.as<OpaqueLaunch>().inputs[0],
                   kernel_of<TopkKernel>(launch).descending),
        kernel_(kernel_of<TopkKernel>(launch)) {
    tile_ = pow2_of(kernel_.k);
    threads_ = std::min(256, floor_pow2(options.max_threads));
  }

  Shader write() {
    const TopkKernel& t = kernel_;
    const Domain domain = {{"p", t.rows}, {"i", t.count}, {"q", t.post}};
    write_source(module_, "value_at", launch_.as<OpaqueLaunch>().inputs[0], domain);
    write_key();
    write_network();
    module_.shared("counts", "atomic<u32>", kRadixDigits, 4);
    module_.shared("sums", "u32", kSums, 4);
    module_.shared("found", "u32", 3, 4);  // a digit, how many to take of it, how many there are
    const std::int64_t lines = open_line(t.rows, t.post);
    scope_.line("var rest = " + u32_literal(t.k) + ";");
    scope_.line("var bound = 0u;");
    for (int shift = 24; shift >= 0; shift -= 8) {
      const bool first = shift == 24;
      write_pass("let word = key_of(value_at(p, e, q));",
                 first ? "" : "word >> " + u32_literal(shift + 8) + " == bound", "word", shift,
                 u32_literal(t.count));
      scope_.line("bound = (bound << 8u) | found[0];");
      scope_.line("rest = found[1];");
    }
    // If not all elements with the key `bound` are taken, those up to index `end` are.
    scope_.line("let ties = found[2] > rest;");
    scope_.line("let looks = select(0u, " + u32_literal(t.count) + ", ties);");
    scope_.line("var end = 0u;");
    int top = 0;
    while (((t.count - 1) >> top) >= kRadixDigits) top += 8;
    for (int shift = top; shift >= 0; shift -= 8) {
      std::string agrees = "key_of(value_at(p, e, q)) == bound";
      if (shift < top) agrees = "e >> " + u32_literal(shift + 8) + " == end && " + agrees;
      write_pass("", agrees, "e", shift, "looks");
      scope_.line("end = (end << 8u) | found[0];");
      scope_.line("rest = found[1];");
    }
    write_gather();
    write_tile_sort(scope_, u32_literal(t.k));
    write_stores();
    return make_shader(module_, scope_, threads_, lines);
  }

 private:
  static constexpr int kRadixDigits = 256, kSums = 16, kOfSum = kRadixDigits / kSums;

  // Finds the next digit, at bit `shift` of `word`, of the element that `rest` elements that agree
  // so far come up to.
  void write_pass(const std::string& declare, const std::string& agrees, const std::string& word,
                  int shift, const std::string& count) {
    Scope clear(&scope_), look(&scope_), add(&scope_), find(&scope_);
    clear.line("atomicStore(&counts[e], 0u);");
    each(scope_, kRadixDigits, clear);
    scope_.line("workgroupBarrier();");
    if (!declare.empty()) look.line(declare);
    look.line((agrees.empty() ? "" : "if (" + agrees + ") ") + "{ atomicAdd(&counts[(" + word +
              " >> " + u32_literal(shift) + ") & 255u], 1u); }");
    scope_.block("for (var e = local; e < " + count + "; e += " + u32_literal(threads_) + ")",
                 look);
    scope_.line("workgroupBarrier();");
    add.line("var sum = 0u;");
    add.line("for (var i = 0u; i < " + u32_literal(kOfSum) + "; i++) { sum += atomicLoad(&counts[" +
             u32_literal(kOfSum) + " * e + i]); }");
    add.line("sums[e] = sum;");
    each(scope_, kSums, add);
    scope_.line("workgroupBarrier();");
    find.line("var before = 0u;");
    find.line("for (var i = 0u; i < e / " + u32_literal(kOfSum) + "; i++) { before += sums[i]; }");
    find.line("for (var i = e & " + u32_literal(-kOfSum) +
              "; i < e; i++) { before += atomicLoad(&counts[i]); }");
    find.line("let these = atomicLoad(&counts[e]);");
    find.line("if (before < rest && rest <= before + these) {");
    find.line("  found[0] = e;\n  found[1] = rest - before;\n  found[2] = these;");
    find.line("}");
    each(scope_, kRadixDigits, find);
    scope_.line("workgroupBarrier();");
  }

  void write_gather() {
    Scope take(&scope_);
    scope_.line("if (local == 0u) { atomicStore(&counts[0], 0u); }");
    scope_.line("workgroupBarrier();");
    take.line("let key = key_of(value_at(p, e, q));");
    take.line("if (key < bound || (key == bound && (!ties || e <= end))) {");
    take.line("  let at = atomicAdd(&counts[0], 1u);");
    take.line("  keys[at] = key;\n  places[at] = e;");
    take.line("}");
    each(scope_, kernel_.count, take);
    scope_.line("workgroupBarrier();");
  }

  void write_stores() {
    const Store& to = launch_.stores.at(0);
    Scope store(&scope_);
    const Domain domain = {{"p", kernel_.rows}, {"e", kernel_.k}, {"q", kernel_.post}};
    store.own("e");
    const ElementRef place = place_of(store, domain, to.map);
    store.line(module_.store(to.binding, to.dtype, place.index, "i32(places[e])"));
    each(scope_, kernel_.k, store);
  }

  const TopkKernel& kernel_;
};

}  // namespace

Shader write_topk(const Launch& launch, const WgslOptions& options) {
  return TopkWriter(launch, options).write();
}

Shader write_kind(const Launch& launch, const SortLaunch& sort, const WgslOptions& options) {
  return SortWriter(launch, sort, options).write();
}

}  // namespace tensorgrad::wgsl
