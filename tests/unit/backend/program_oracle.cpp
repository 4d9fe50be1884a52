// SPDX-License-Identifier: MIT
// A plain interpreter of Programs, instruction by instruction on vectors of doubles.
#include "program_oracle.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string_view>

namespace tensorgrad::testing {
namespace {

using Values = std::vector<double>;

struct PendingWrite {
  int buffer;
  std::int64_t word;
  std::uint32_t bits;
};

struct Machine {
  const Launch& launch;
  OracleBuffers& buffers;
  const RuntimeScalars& runtime_scalars;
  const OracleOp& op;
  std::vector<PendingWrite> writes;

  std::int64_t word_of(int binding, std::int64_t element) const {
    const Binding& b = launch.bindings.at(static_cast<std::size_t>(binding));
    if (element < 0 || (element + 1) * 4 > b.bytes) {
      throw std::out_of_range(launch.name + ": element " + std::to_string(element) +
                              " lies outside binding " + std::to_string(binding));
    }
    return b.offset / 4 + element;
  }

  double load(const Access& access, std::int64_t element) const {
    const auto word = static_cast<std::size_t>(word_of(access.binding, element));
    const Binding& b = launch.bindings[static_cast<std::size_t>(access.binding)];
    return oracle_decode(buffers.at(static_cast<std::size_t>(b.buffer)).at(word), access.dtype);
  }

  void store(const Store& store, std::int64_t linear, double value, std::int64_t at = 0) {
    if (store.at >= 0 && (at < 0 || at >= store.at_size)) return;
    std::int64_t element = offset_at(store.map, linear) + store.at_stride * at;
    if (store.ring_word >= 0) element += runtime_scalars.words[store.ring_word];
    const Binding& b = launch.bindings.at(static_cast<std::size_t>(store.binding));
    writes.push_back(
        {b.buffer, word_of(store.binding, element), oracle_encode(value, store.dtype)});
  }

  void commit() {
    for (const PendingWrite& w : writes) {
      buffers.at(static_cast<std::size_t>(w.buffer)).at(static_cast<std::size_t>(w.word)) = w.bits;
    }
    writes.clear();
  }
};

// A range of elements of a program's domain: linear indices from `first` to first + count - 1, all
// in one row.
struct Span {
  std::int64_t first = 0, count = 1, row = 0;
};

double reduce(ReduceOp op, DType dtype, const Values& in, std::int64_t count) {
  const auto at = [&](std::int64_t i) {
    return in.size() == 1 ? in[0] : in[static_cast<std::size_t>(i)];
  };
  if (op == ReduceOp::kSum) {
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) sum += at(i);
    if (dtype == DType::kF32) return sum;
    return oracle_decode(static_cast<std::uint32_t>(static_cast<std::int64_t>(sum)), dtype);
  }
  const bool larger = op == ReduceOp::kMax || op == ReduceOp::kArgMax;
  std::int64_t best = 0;
  for (std::int64_t i = 1; i < count && !std::isnan(at(best)); ++i) {
    const bool better = larger ? at(i) > at(best) : at(i) < at(best);
    if (better || std::isnan(at(i))) best = i;
  }
  return op == ReduceOp::kMax || op == ReduceOp::kMin ? at(best) : static_cast<double>(best);
}

double element_value(const Machine& m, const ScalarProgram& program, const Instr& instr,
                     const std::vector<Values>& values, std::int64_t linear, std::int64_t i) {
  const auto operand = [&](std::size_t k) {
    const Values& v = values[static_cast<std::size_t>(instr.operands.at(k))];
    return v.size() == 1 ? v[0] : v[static_cast<std::size_t>(i)];
  };
  const auto access = [&]() -> const Access& {
    return program.accesses.at(static_cast<std::size_t>(instr.index));
  };
  switch (instr.kind) {
    case InstrKind::kConst: return oracle_decode(instr.bits, instr.dtype);
    case InstrKind::kRuntimeScalar:
      return oracle_decode(m.runtime_scalars.words[instr.index], instr.dtype);
    case InstrKind::kIndex: return static_cast<double>(linear);
    case InstrKind::kCoord: return static_cast<double>((linear / instr.divisor) % instr.modulus);
    case InstrKind::kLoad: {
      const std::int64_t at = offset_at(access().map, linear);
      return at < 0 ? 0.0 : m.load(access(), at);
    }
    case InstrKind::kLoadAt: {
      const std::int64_t at = offset_at(access().map, linear);
      const auto v = static_cast<std::int64_t>(operand(0));
      if (at < 0 || v < 0 || v >= access().at_size) return 0.0;
      return m.load(access(), at + access().at_stride * v);
    }
    case InstrKind::kInBounds: return offset_at(access().map, linear) < 0 ? 0.0 : 1.0;
    case InstrKind::kOp: {
      double args[4] = {};
      DType types[4] = {};
      for (std::size_t k = 0; k < instr.operands.size(); ++k) {
        args[k] = operand(k);
        types[k] = program.instrs[static_cast<std::size_t>(instr.operands[k])].dtype;
      }
      return m.op(*instr.code, types, instr.dtype, args);
    }
    case InstrKind::kReduce:
    case InstrKind::kAcc: break;
  }
  throw std::logic_error("oracle: no such instruction here");
}

// Returns the values of all instructions over a span. Row-level instructions have one value.
std::vector<Values> evaluate(const Machine& m, const ScalarProgram& program, const Span& span,
                             bool leveled, const Values* acc = nullptr) {
  std::vector<Values> values;
  for (const Instr& instr : program.instrs) {
    const bool row = leveled && instr.level == Level::kRow;
    Values out;
    if (instr.kind == InstrKind::kAcc) {
      if (acc == nullptr) throw std::logic_error("oracle: nothing was accumulated");
      const auto from = acc->begin() + span.first;
      out.assign(from, from + span.count);
    } else if (instr.kind == InstrKind::kReduce) {
      const auto from = static_cast<std::size_t>(instr.operands.at(0));
      out = {reduce(instr.reduce, program.instrs[from].dtype, values[from], span.count)};
    } else if (row) {
      out = {element_value(m, program, instr, values, span.row, 0)};
    } else {
      out.reserve(static_cast<std::size_t>(span.count));
      for (std::int64_t i = 0; i < span.count; ++i) {
        out.push_back(element_value(m, program, instr, values, span.first + i, i));
      }
    }
    // Values are converted as in memory: integers wrap, but floats keep double precision.
    if (instr.dtype != DType::kF32) {
      for (double& v : out) v = oracle_decode(oracle_encode(v, instr.dtype), instr.dtype);
    }
    values.push_back(std::move(out));
  }
  return values;
}

void store_span(Machine& m, const std::vector<Values>& values, const Span& span, bool leveled) {
  for (const Store& s : m.launch.stores) {
    const Values& v = values.at(static_cast<std::size_t>(s.value));
    if (leveled && s.level == Level::kRow) {
      m.store(s, span.row, v.at(0));
      continue;
    }
    const auto element = [](const Values& of, std::int64_t i) {
      return of.size() == 1 ? of[0] : of[static_cast<std::size_t>(i)];
    };
    for (std::int64_t i = 0; i < span.count; ++i) {
      const double at = s.at < 0 ? 0 : element(values[static_cast<std::size_t>(s.at)], i);
      m.store(s, span.first + i, element(v, i), static_cast<std::int64_t>(at));
    }
  }
}

void run_kind(Machine& m, const MapLaunch& /*map*/) {
  const Window window = window_of(m.launch);
  const Span all{window.first, window.count, 0};
  store_span(m, evaluate(m, m.launch.body, all, false), all, false);
}

void run_kind(Machine& m, const RowLaunch& l) {
  const Window window = window_of(m.launch);
  for (std::int64_t row = window.first; row < window.end(); ++row) {
    const Span span{row * l.cols, l.cols, row};
    store_span(m, evaluate(m, m.launch.body, span, true), span, true);
  }
}

// Stores the epilogue of the accumulated values.
void store_epilogue(Machine& m, const Values& acc) {
  const Window window = window_of(m.launch);
  const Span mine{window.first_row() * window.columns, window.rows() * window.columns, 0};
  store_span(m, evaluate(m, m.launch.body, mine, false, &acc), mine, false);
}

void run_kind(Machine& m, const ContractionLaunch& l) {
  const Span all_a{0, l.batch * l.m * l.k, 0}, all_b{0, l.batch * l.k * l.n, 0};
  const Values a = evaluate(m, l.a, all_a, false).back();
  const Values b = evaluate(m, l.b, all_b, false).back();
  Values acc(static_cast<std::size_t>(l.batch * l.parts * l.m * l.n));
  for (std::int64_t z = 0; z < l.batch * l.parts; ++z) {
    const std::int64_t p = l.parts > 1 ? 0 : z, first = l.parts > 1 ? z * l.part_depth : 0;
    const std::int64_t end = l.parts > 1 ? std::min(l.k, first + l.part_depth) : l.k;
    for (std::int64_t i = 0; i < l.m; ++i) {
      for (std::int64_t j = 0; j < l.n; ++j) {
        double sum = 0;
        for (std::int64_t t = first; t < end; ++t) {
          sum += a[static_cast<std::size_t>((p * l.m + i) * l.k + t)] *
                 b[static_cast<std::size_t>((p * l.k + t) * l.n + j)];
        }
        acc[static_cast<std::size_t>((z * l.m + i) * l.n + j)] = sum;
      }
    }
  }
  store_epilogue(m, acc);
  const Window window = window_of(m.launch);
  for (std::int64_t i = window.first; l.bias_grad_column && i < window.end(); ++i) {
    double sum = 0;
    for (std::int64_t t = 0; t < l.k; ++t) sum += a[static_cast<std::size_t>(i * l.k + t)];
    m.store(l.bias_grad_store, i, sum);
  }
  if (!l.bias_grad_row) return;
  for (std::int64_t j = 0; j < l.n; ++j) {
    double sum = 0;
    for (std::int64_t t = 0; t < l.k; ++t) sum += b[static_cast<std::size_t>(t * l.n + j)];
    m.store(l.bias_grad_store, j, sum);
  }
}

void run_kind(Machine& m, const ScatterLaunch& l) {
  const Span sources{0, l.pre * l.count * l.post, 0};
  const Values index = evaluate(m, l.index, sources, false).back();
  const Values source = evaluate(m, l.source, sources, false).back();
  Values acc(static_cast<std::size_t>(l.pre * l.size * l.post));
  for (std::int64_t s = 0; s < sources.count; ++s) {
    const auto v = static_cast<std::int64_t>(index[static_cast<std::size_t>(s)]);
    if (v < 0 || v >= l.size) continue;
    const std::int64_t p = s / (l.count * l.post), q = s % l.post;
    acc[static_cast<std::size_t>((p * l.size + v) * l.post + q)] +=
        source[static_cast<std::size_t>(s)];
  }
  store_epilogue(m, acc);
}

// Calls visit(first element of a line, stride of the line).
template <class Lines, class Visit>
void each_line(const Lines& l, const Visit& visit) {
  for (std::int64_t p = 0; p < l.pre; ++p) {
    for (std::int64_t q = 0; q < l.post; ++q) visit(p * l.count * l.post + q, l.post);
  }
}

void run_kind(Machine& m, const ScanLaunch& l) {
  const Span all{0, l.pre * l.count * l.post, 0};
  const bool has_a = l.op == ScanOp::kProduct || l.op == ScanOp::kLinear;
  const bool arg = l.op == ScanOp::kArgMax || l.op == ScanOp::kArgMin;
  const Values ones(static_cast<std::size_t>(all.count), 1), zeros(ones.size(), 0);
  const Values a = has_a ? evaluate(m, l.a, all, false).back() : ones;
  const Values b = l.op != ScanOp::kProduct ? evaluate(m, l.b, all, false).back() : zeros;
  Values acc(ones.size());
  each_line(l, [&](std::int64_t first, std::int64_t pitch) {
    double h = l.op == ScanOp::kProduct ? 1 : 0, best = 0;
    for (std::int64_t i = 0; i < l.count; ++i) {
      const std::int64_t t = l.reverse ? l.count - 1 - i : i;
      const auto at = static_cast<std::size_t>(first + t * pitch);
      const double x = b.size() == 1 ? b[0] : b[at];
      const bool reached = l.op == ScanOp::kArgMax ? x >= best : x <= best;
      if (arg && (i == 0 || reached || std::isnan(x))) {
        best = x;
        h = static_cast<double>(t);
      }
      if (!arg) h = (a.size() == 1 ? a[0] : a[at]) * h + x;
      acc[at] = h;
    }
  });
  store_epilogue(m, acc);
}

void run_kind(Machine& m, const SortLaunch& l) {
  const Values keys = evaluate(m, l.keys, {0, l.pre * l.count * l.post, 0}, false).back();
  Values acc(keys.size());
  each_line(l, [&](std::int64_t first, std::int64_t pitch) {
    const auto key = [&](std::int64_t t) {
      const double x = keys[static_cast<std::size_t>(first + t * pitch)];
      const double large = std::isnan(x) ? std::numeric_limits<double>::max() : x;
      const double finite = std::isinf(large) ? std::copysign(1e300, large) : large;
      return l.descending ? -finite : finite;
    };
    std::vector<std::int64_t> order(static_cast<std::size_t>(l.count));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int64_t x, std::int64_t y) { return key(x) < key(y); });
    for (std::int64_t i = 0; i < l.count; ++i) {
      acc[static_cast<std::size_t>(first + i * pitch)] =
          static_cast<double>(order[static_cast<std::size_t>(i)]);
    }
  });
  store_epilogue(m, acc);
}

void run_kind(Machine& m, const OpaqueLaunch& /*opaque*/) {
  throw std::logic_error("the oracle runs no " + m.launch.name + ": tests/ops compares those");
}

using DoubleOp = double (*)(const double* x);

const std::map<std::string_view, DoubleOp>& double_ops() {
  static const std::map<std::string_view, DoubleOp> table = {
      {"add", [](const double* x) { return x[0] + x[1]; }},
      {"sub", [](const double* x) { return x[0] - x[1]; }},
      {"mul", [](const double* x) { return x[0] * x[1]; }},
      {"div", [](const double* x) { return x[0] / x[1]; }},
      {"neg", [](const double* x) { return -x[0]; }},
      {"exp", [](const double* x) { return std::exp(x[0]); }},
      {"log", [](const double* x) { return std::log(x[0]); }},
      {"sqrt", [](const double* x) { return std::sqrt(x[0]); }},
      {"rsqrt", [](const double* x) { return 1.0 / std::sqrt(x[0]); }},
      {"tanh", [](const double* x) { return std::tanh(x[0]); }},
      {"sigmoid", [](const double* x) { return 1.0 / (1.0 + std::exp(-x[0])); }},
      {"sin", [](const double* x) { return std::sin(x[0]); }},
      {"cos", [](const double* x) { return std::cos(x[0]); }},
      {"erf", [](const double* x) { return std::erf(x[0]); }},
      {"where", [](const double* x) { return x[0] != 0 ? x[1] : x[2]; }},
  };
  return table;
}

}  // namespace

double oracle_decode(std::uint32_t bits, DType dtype) {
  switch (dtype) {
    case DType::kF32: return std::bit_cast<float>(bits);
    case DType::kI32: return std::bit_cast<std::int32_t>(bits);
    case DType::kU32: return bits;
    case DType::kBool: return bits != 0 ? 1.0 : 0.0;
    case DType::kF16: break;  // no value of a program has this type
  }
  return 0;
}

std::uint32_t oracle_encode(double value, DType dtype) {
  switch (dtype) {
    case DType::kF32: return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    case DType::kI32:
    case DType::kU32:
      return std::isnan(value) ? 0 : static_cast<std::uint32_t>(static_cast<std::int64_t>(value));
    case DType::kBool: return value != 0 ? 1 : 0;
    case DType::kF16: break;  // no value of a program has this type
  }
  return 0;
}

double oracle_op(const PointwiseCode& code, const DType* types, DType result, const double* args) {
  const DType type = types[code.arity - 1];
  if (type == DType::kF32 && result == DType::kF32) {
    const auto found = double_ops().find(code.name);
    if (found != double_ops().end()) return found->second(args);
  }
  alignas(64) std::uint32_t in[4][16] = {};
  alignas(64) std::uint32_t out[16] = {};
  for (int k = 0; k < code.arity; ++k) {
    in[k][0] = oracle_encode(args[k], types[k]);
  }
  const CpuBlockFn block = code.block(type, result);
  if (block == nullptr) throw std::logic_error(std::string("oracle: no block for ") + code.name);
  CpuOperands operands;
  for (int k = 0; k < code.arity; ++k) operands.data[k] = in[k];
  block(operands, out, 1);
  return oracle_decode(out[0], result);
}

OracleBuffers oracle_buffers(const Program& program) {
  OracleBuffers buffers;
  for (const BufferDecl& decl : program.buffers) {
    std::vector<std::uint32_t> words(static_cast<std::size_t>(decl.bytes / 4), 0);
    std::copy(decl.data.begin(), decl.data.end(), words.begin());
    buffers.push_back(std::move(words));
  }
  return buffers;
}

void run_oracle(const Launch& launch, OracleBuffers& buffers, const RuntimeScalars& runtime_scalars,
                const OracleOp& op) {
  Machine m{launch, buffers, runtime_scalars, op, {}};
  std::visit([&](const auto& kind) { run_kind(m, kind); }, launch.kind);
  m.commit();
}

void run_oracle(const Program& program, OracleBuffers& buffers,
                const RuntimeScalars& runtime_scalars, const OracleOp& op) {
  for (const Launch& launch : program.launches) run_oracle(launch, buffers, runtime_scalars, op);
}

RuntimeScalars oracle_scalars() {
  RuntimeScalars row{};
  row.words[kScalarInf] = 0x7f800000u;
  row.words[kScalarNan] = 0x7fc00000u;
  return row;
}

}  // namespace tensorgrad::testing
