// SPDX-License-Identifier: MIT
// Scalar programs as WGSL statements: one `let` per instruction. Constants get names too: a literal
// operand could turn an inner expression of a helper into a constant, which compilers evaluate and
// reject if it overflows.
#include <algorithm>

#include "base/check.h"
#include "codegen/wgsl/parts.h"

namespace tensorgrad::wgsl {
namespace {

constexpr std::uint32_t kSign = 0x80000000U;
constexpr std::string_view kExp = "tg_exp({0})", kRelaxedExp = "tg_exp_to_f16({0})";

std::string zero_of(DType dtype) {
  switch (dtype) {
    case DType::kF32: return "0.0f";
    case DType::kI32: return "0i";
    case DType::kU32: return "0u";
    case DType::kBool: return "false";
    // No value of a program has this type.
    case DType::kF16: break;
  }
  UNREACHABLE();
}

}  // namespace

ProgramWriter::ProgramWriter(Module& module, const ScalarProgram& program, Domain element,
                             Domain row, std::string acc, std::string suffix)
    : module_(module),
      program_(program),
      element_(std::move(element)),
      row_(std::move(row)),
      acc_(std::move(acc)),
      suffix_(std::move(suffix)),
      values_(program.instrs.size()),
      relaxed_(program.instrs.size(), false) {}

const Domain& ProgramWriter::domain(Level level) const {
  return level == Level::kRow ? row_ : element_;
}

DType ProgramWriter::dtype(int instr) const {
  return program_.instrs.at(static_cast<std::size_t>(instr)).dtype;
}

const std::string& ProgramWriter::value(int instr) const {
  const std::string& name = values_.at(static_cast<std::size_t>(instr));
  CHECK(!name.empty(), "value " + std::to_string(instr) + " is used before it is written");
  return name;
}

void ProgramWriter::set_value(int instr, const std::string& name) {
  values_.at(static_cast<std::size_t>(instr)) = name;
}

std::vector<int> ProgramWriter::needed(const std::vector<int>& roots) const {
  std::vector<bool> wanted(program_.instrs.size(), false);
  for (const int root : roots) wanted.at(static_cast<std::size_t>(root)) = true;
  std::vector<int> order;
  for (std::size_t i = program_.instrs.size(); i-- > 0;) {
    if (!wanted[i]) continue;
    for (const int operand : program_.instrs[i].operands) {
      wanted.at(static_cast<std::size_t>(operand)) = true;
    }
    order.push_back(static_cast<int>(i));
  }
  std::reverse(order.begin(), order.end());
  return order;
}

void ProgramWriter::relax(const std::vector<Store>& stores) {
  std::vector<int> exact, rounded;
  for (const Store& store : stores) {
    (store.dtype == DType::kF16 ? rounded : exact).push_back(store.value);
    if (store.at >= 0) exact.push_back(store.at);
  }
  for (std::size_t i = 0; i < program_.instrs.size(); ++i) {
    const Instr& instr = program_.instrs[i];
    const bool chooses = instr.kind == InstrKind::kReduce || instr.kind == InstrKind::kLoadAt;
    if (chooses) exact.push_back(static_cast<int>(i));
  }
  for (const int instr : needed(rounded)) relaxed_[static_cast<std::size_t>(instr)] = true;
  for (const int instr : needed(exact)) relaxed_[static_cast<std::size_t>(instr)] = false;
}

// Handles 0 * x, 0 / x and x - x, which compilers fold to zero even if x is infinite or NaN.
std::string ProgramWriter::apply_to_zero(const Instr& instr) {
  const bool mul = instr.code->name == std::string_view("mul");
  const bool div = instr.code->name == std::string_view("div");
  if (instr.dtype != DType::kF32) return "";
  if (instr.code->name == std::string_view("sub") && instr.operands[0] == instr.operands[1]) {
    const std::string text = "tg_mul_zero(abs(" + value(instr.operands[0]) + "), 0u)";
    module_.use_helpers(text);
    return text;
  }
  if (!mul && !div) return "";
  for (std::size_t i = 0; i < (mul ? 2U : 1U); ++i) {
    const Instr& zero = program_.instrs.at(static_cast<std::size_t>(instr.operands[i]));
    if (zero.kind != InstrKind::kConst || (zero.bits & ~kSign) != 0) continue;
    std::string text = mul ? "tg_mul_zero(" : "tg_div_zero(";
    text += value(instr.operands[1 - i]) + ", " + u32_literal(zero.bits) + ")";
    module_.use_helpers(text);
    return text;
  }
  return "";
}

std::string ProgramWriter::apply(const Instr& instr, bool relaxed) {
  CHECK(instr.code != nullptr && !instr.operands.empty());
  if (std::string text = apply_to_zero(instr); !text.empty()) return text;
  std::string_view pattern =
      instr.code->wgsl.at(static_cast<std::size_t>(dtype(instr.operands.back())));
  if (relaxed && pattern == kExp) pattern = kRelaxedExp;
  CHECK(!pattern.empty(), std::string(instr.code->name) + " has no WGSL for this type");
  std::string text;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const bool hole = pattern[i] == '{' && i + 2 < pattern.size() && pattern[i + 2] == '}';
    const char what = hole ? pattern[i + 1] : '\0';
    if (what == 't') {
      text += register_type(instr.dtype);
    } else if (what >= '0' && what <= '3') {
      text += value(instr.operands.at(static_cast<std::size_t>(what - '0')));
    } else {
      text += pattern[i];
      continue;
    }
    i += 2;
  }
  module_.use_helpers(text);
  return text;
}

std::string ProgramWriter::load(Scope& scope, const Instr& instr) {
  const Access& access = program_.accesses.at(static_cast<std::size_t>(instr.index));
  const ElementRef place = place_of(scope, domain(access.level), access.map);
  if (place.valid.empty()) return module_.load(access.binding, access.dtype, place.index);
  const std::string index = "select(0u, " + place.index + ", " + place.valid + ")";
  return "select(" + zero_of(instr.dtype) + ", " +
         module_.load(access.binding, access.dtype, index) + ", " + place.valid + ")";
}

std::string ProgramWriter::load_at(Scope& scope, const Instr& instr, int number) {
  const Access& access = program_.accesses.at(static_cast<std::size_t>(instr.index));
  const ElementRef place = place_of(scope, domain(access.level), access.map);
  const int key = instr.operands.at(0);
  // As u32, a negative i32 exceeds every size.
  const std::string at = "at" + std::to_string(number) + suffix_;
  scope.line("let " + at + " = " +
             (dtype(key) == DType::kU32 ? value(key) : "u32(" + value(key) + ")") + ";");
  const std::string ok = "ok" + std::to_string(number) + suffix_;
  scope.line("let " + ok + " = " + at + " < " + u32_literal(access.at_size) +
             (place.valid.empty() ? "" : " && " + place.valid) + ";");
  std::string step;
  if (access.at_stride > 0) step = " + " + at + " * " + u32_literal(access.at_stride);
  if (access.at_stride < 0) step = " - " + at + " * " + u32_literal(-access.at_stride);
  const std::string index = "select(0u, " + place.index + step + ", " + ok + ")";
  return "select(" + zero_of(instr.dtype) + ", " +
         module_.load(access.binding, access.dtype, index) + ", " + ok + ")";
}

void ProgramWriter::write(Scope& scope, int number) {
  const Instr& instr = program_.instrs.at(static_cast<std::size_t>(number));
  std::string text;
  switch (instr.kind) {
    case InstrKind::kConst: text = module_.constant(instr.dtype, instr.bits); break;
    case InstrKind::kRuntimeScalar:
      text = module_.runtime_scalars(instr.index);
      if (instr.dtype == DType::kBool) text += " != 0u";
      if (instr.dtype == DType::kF32 || instr.dtype == DType::kI32) {
        text = "bitcast<" + std::string(register_type(instr.dtype)) + ">(" + text + ")";
      }
      break;
    case InstrKind::kIndex: text = linear_index(scope, domain(instr.level)); break;
    case InstrKind::kCoord:
      text = coordinate(scope, domain(instr.level), instr.divisor, instr.modulus);
      break;
    case InstrKind::kLoad: text = load(scope, instr); break;
    case InstrKind::kLoadAt: text = load_at(scope, instr, number); break;
    case InstrKind::kInBounds: {
      const Access& access = program_.accesses.at(static_cast<std::size_t>(instr.index));
      const ElementRef place = place_of(scope, domain(access.level), access.map);
      text = place.valid.empty() ? "true" : place.valid;
      break;
    }
    case InstrKind::kOp: text = apply(instr, relaxed_[static_cast<std::size_t>(number)]); break;
    case InstrKind::kAcc: set_value(number, acc_); return;
    case InstrKind::kReduce:
      CHECK(!values_.at(static_cast<std::size_t>(number)).empty(), "reduction out of order");
      return;
  }
  const std::string name = "v" + std::to_string(number) + suffix_;
  scope.line("let " + name + " = " + text + ";");
  scope.own(name);
  set_value(number, name);
}

void ProgramWriter::write_all(Scope& scope, const std::vector<int>& instrs) {
  for (const int instr : instrs) write(scope, instr);
}

void ProgramWriter::store(Scope& scope, const Store& store) {
  const ElementRef place = place_of(scope, domain(store.level), store.map);
  CHECK(place.valid.empty(), "a store has no mask");
  if (store.at >= 0) {
    // As u32, a negative number exceeds every size.
    const std::string at = "u32(" + value(store.at) + ")";
    Scope inner(&scope);
    inner.line(module_.store(store.binding, store.dtype,
                             place.index + " + " + at + " * " + u32_literal(store.at_stride),
                             value(store.value)));
    scope.block("if (" + at + " < " + u32_literal(store.at_size) + ")", inner);
    return;
  }
  if (store.ring_word < 0) {
    scope.line(module_.store(store.binding, store.dtype, place.index, value(store.value)));
    return;
  }
  // The slot comes from the host, so it is guarded like an index from data.
  Scope ring(&scope);
  ring.line("let slot = " + place.index + " + " + module_.runtime_scalars(store.ring_word) + ";");
  Scope inner(&ring);
  inner.line(module_.store(store.binding, store.dtype, "slot", value(store.value)));
  ring.block("if (slot < arrayLength(&b" + std::to_string(store.binding) + "))", inner);
  scope.block("", ring);
}

namespace {

void write_function(Module& module, const std::string& name, const std::string& more,
                    const Scope& body) {
  module.function(name,
                  "fn " + name + "(p: u32, i: u32, q: u32" + more + " {\n" + body.text() + "}\n");
}

}  // namespace

void write_source(Module& module, const std::string& name, const ScalarProgram& program,
                  const Domain& domain) {
  CHECK(!program.instrs.empty());
  ProgramWriter writer(module, program, domain, domain);
  Scope scope;
  const int last = static_cast<int>(program.instrs.size()) - 1;
  writer.write_all(scope, writer.needed({last}));
  scope.line("return " + writer.value(last) + ";");
  write_function(module, name, ") -> " + std::string(register_type(writer.dtype(last))), scope);
}

void write_finish(Module& module, const Launch& launch, const Domain& domain, DType dtype) {
  ProgramWriter writer(module, launch.body, domain, domain, "acc");
  Scope scope;
  std::vector<int> roots;
  for (const Store& store : launch.stores) roots.push_back(store.value);
  writer.write_all(scope, writer.needed(roots));
  for (const Store& store : launch.stores) writer.store(scope, store);
  write_function(module, "finish", ", acc: " + std::string(register_type(dtype)) + ")", scope);
}

}  // namespace tensorgrad::wgsl
