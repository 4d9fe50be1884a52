// SPDX-License-Identifier: MIT
#include "kernel/launch_text.h"

#include "base/check.h"
#include "base/overloaded.h"
#include "base/text.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

const char* name_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum: return "sum";
    case ReduceOp::kMax: return "max";
    case ReduceOp::kMin: return "min";
    case ReduceOp::kArgMax: return "argmax";
    case ReduceOp::kArgMin: return "argmin";
  }
  UNREACHABLE();
}

std::string at_access(const ScalarProgram& program, const Instr& instr) {
  const Access& access = program.accesses[static_cast<std::size_t>(instr.index)];
  return "b" + std::to_string(access.binding) + " at " + to_string(access.map);
}

std::string operands(const Instr& instr) {
  std::string text;
  for (const int operand : instr.operands)
    text += (text.empty() ? "v" : ", v") + std::to_string(operand);
  return "(" + text + ")";
}

std::string what(const ScalarProgram& program, const Instr& instr) {
  switch (instr.kind) {
    case InstrKind::kConst: {
      return format_text("const 0x%x", static_cast<unsigned>(instr.bits));
    }
    case InstrKind::kRuntimeScalar: return "scalar word " + std::to_string(instr.index);
    case InstrKind::kIndex: return "index";
    case InstrKind::kCoord:
      return "index / " + std::to_string(instr.divisor) + " % " + std::to_string(instr.modulus);
    case InstrKind::kLoad: return "load " + at_access(program, instr);
    case InstrKind::kLoadAt: {
      const Access& access = program.accesses[static_cast<std::size_t>(instr.index)];
      return "load " + at_access(program, instr) + " + " + std::to_string(access.at_stride) +
             " * v" + std::to_string(instr.operands[0]);
    }
    case InstrKind::kInBounds:
      return "valid " + to_string(program.accesses[static_cast<std::size_t>(instr.index)].map);
    case InstrKind::kOp: return instr.code->name + operands(instr);
    case InstrKind::kReduce: return name_of(instr.reduce) + operands(instr) + " over the columns";
    case InstrKind::kAcc: return "acc";
  }
  UNREACHABLE();
}

void print_program(TextBuilder& out, const std::string& name, const ScalarProgram& program) {
  if (program.instrs.empty()) return;
  out << name << '\n';
  for (std::size_t i = 0; i < program.instrs.size(); ++i) {
    const Instr& instr = program.instrs[i];
    out << "  v" << i << " = " << what(program, instr) << " : " << to_string(instr.dtype)
        << (instr.level == Level::kRow ? ", once per row" : "") << '\n';
  }
}

void print_store(TextBuilder& out, const Store& store, const std::string& value) {
  out << "  b" << store.binding << " at " << to_string(store.map);
  if (store.ring_word >= 0) out << " + scalar word " << store.ring_word;
  if (store.at >= 0) out << " + " << store.at_stride << " * v" << store.at;
  out << " = " << value << '\n';
}

}  // namespace

std::string print(const Program& program, const Launch& launch) {
  TextBuilder out;
  out << kind_name(launch) << ' ' << launch.name << ' ' << domain_text(launch) << '\n';
  for (std::size_t i = 0; i < launch.bindings.size(); ++i)
    out << "  b" << i << ": " << bound_text(program, launch.bindings[i]) << '\n';
  std::visit(Overloaded{
                 [](const MapLaunch&) {},
                 [](const RowLaunch&) {},
                 [&](const ContractionLaunch& product) {
                   print_program(out, product.a_by_rows ? "operand a, by rows" : "operand a",
                                 product.a);
                   print_program(out, "operand b", product.b);
                 },
                 [&](const ScatterLaunch& scatter) {
                   print_program(out, "indices", scatter.index);
                   print_program(out, "sources", scatter.source);
                 },
                 [&](const ScanLaunch& scan) {
                   print_program(out, "elements a", scan.a);
                   print_program(out, "elements b", scan.b);
                 },
                 [&](const SortLaunch& sort) { print_program(out, "elements b", sort.keys); },
                 [&](const OpaqueLaunch& opaque) {
                   for (std::size_t i = 0; i < opaque.inputs.size(); ++i)
                     print_program(out, "input " + std::to_string(i), opaque.inputs[i]);
                 },
             },
             launch.kind);
  print_program(out, "body", launch.body);
  out << "stores\n";
  const bool of_body = !launch.body.instrs.empty();
  for (const Store& store : launch.stores)
    print_store(out, store, of_body ? "v" + std::to_string(store.value) : "result");
  const auto* product = launch.find<ContractionLaunch>();
  if (product != nullptr && product->has_bias_grad()) {
    print_store(out, product->bias_grad_store,
                product->bias_grad_row ? "sum of b over k" : "sum of a over k");
  }
  return out.str();
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
