// SPDX-License-Identifier: MIT
// Text, names and declarations of a shader.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/numbers.h"
#include "codegen/wgsl/parts.h"

namespace tensorgrad::wgsl {
namespace {

// Returns the shortest decimal that parses to `value`, both as float and as a double that is then
// rounded. Tint rejects a literal above the largest f32, even by less than half an ulp.
std::string f32_literal(float value) {
  char text[48];
  const auto shortest = std::to_chars(text, text + sizeof text, value);
  std::string decimal(text, shortest.ptr);
  const double read = parse_finite(decimal).value();
  if (static_cast<float>(read) != value || std::abs(read) > std::numeric_limits<float>::max()) {
    // Avoids std::to_chars for double, whose tables take 100 KB.
    for (int digits = 10; parse_finite(decimal) != static_cast<double>(value); ++digits)
      decimal = format_text("%.*g", digits, static_cast<double>(value));
  }
  if (decimal.find_first_of(".e") == std::string::npos) decimal += ".0";
  return decimal + "f";
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

}  // namespace

std::string u32_literal(std::int64_t value) {
  return std::to_string(static_cast<std::uint32_t>(value)) + "u";
}

std::string_view register_type(DType dtype) { return to_string(dtype); }

std::string_view memory_type(DType dtype) {
  return dtype == DType::kBool ? "u32" : to_string(dtype);
}

void Scope::line(const std::string& statement) {
  text_.append(static_cast<std::size_t>(depth_) * 2, ' ');
  text_ += statement + "\n";
}

void Scope::block(const std::string& opening, const Scope& inner) {
  line(opening.empty() ? "{" : opening + " {");
  text_ += inner.text_;
  line("}");
}

std::string Scope::let(const std::string& prefix, const std::string& expression,
                       const std::vector<std::string>& parts) {
  Scope* home = this;
  while (home->parent_ != nullptr &&
         std::none_of(parts.begin(), parts.end(),
                      [&](const std::string& part) { return home->owned_.contains(part); })) {
    home = home->parent_;
  }
  const auto known = home->named_.find(expression);
  if (known != home->named_.end()) return known->second;
  const std::string name = prefix + std::to_string((*names_)++);
  home->line("let " + name + " = " + expression + ";");
  home->own(name);
  home->named_[expression] = name;
  return name;
}

Module::Module(const Launch& launch) : types_(launch.bindings.size()) {
  for (const ScalarProgram* program : programs_of(launch)) count_use(*program);
  for (const Store* store : stores_of(launch)) {
    types_.at(static_cast<std::size_t>(store->binding)).emplace(memory_type(store->dtype));
  }
  // A buffer that is read as two types is an array of words.
  for (std::set<std::string>& types : types_) {
    CHECK(types.size() <= 1 || !types.contains("f16"), launch.name);
    if (types.size() != 1) types = {types.empty() ? "f32" : "u32"};
  }
}

void Module::count_use(const ScalarProgram& program) {
  for (const Instr& instr : program.instrs) {
    if (instr.kind != InstrKind::kLoad && instr.kind != InstrKind::kLoadAt) continue;
    const Access& access = program.accesses.at(static_cast<std::size_t>(instr.index));
    types_.at(static_cast<std::size_t>(access.binding)).emplace(memory_type(access.dtype));
  }
}

std::string Module::load(int binding, DType dtype, const std::string& index) const {
  const std::string& stored = *types_.at(static_cast<std::size_t>(binding)).begin();
  std::string value = "b" + std::to_string(binding) + "[" + index + "]";
  if (stored.starts_with("vec4<")) {
    CHECK(stored == "vec4<" + std::string(to_string(dtype)) + ">");
    value = "b" + std::to_string(binding) + "[(" + index + ") / 4u][(" + index + ") % 4u]";
    return dtype == DType::kF16 ? "f32(" + value + ")" : value;
  }
  if (dtype == DType::kBool) return "(" + value + " != 0u)";
  if (dtype == DType::kF16) return "f32(" + value + ")";
  if (stored != memory_type(dtype)) {
    value = "bitcast<" + std::string(memory_type(dtype)) + ">(" + value + ")";
  }
  return value;
}

void Module::hold_vectors(int binding, DType dtype, int width) {
  types_.at(static_cast<std::size_t>(binding)) = {"vec" + std::to_string(width) + "<" +
                                                  std::string(to_string(dtype)) + ">"};
}

void Module::hold_vec8(int binding) {
  types_.at(static_cast<std::size_t>(binding)) = {"vec4<u32>"};
}

std::string Module::load_vector(int binding, DType dtype, const std::string& index, int width) {
  const std::string vector =
      "b" + std::to_string(binding) + "[(" + index + ") / " + u32_literal(width) + "]";
  return dtype == DType::kF16 ? "vec" + std::to_string(width) + "<f32>(" + vector + ")" : vector;
}

std::string Module::store_vector(int binding, DType dtype, const std::string& index,
                                 const std::string& value) {
  return "b" + std::to_string(binding) + "[(" + index +
         ") / 4u] = " + (dtype == DType::kF16 ? "vec4<f16>(" + value + ")" : value) + ";";
}

std::string Module::store(int binding, DType dtype, const std::string& index,
                          const std::string& value) const {
  const std::string& stored = *types_.at(static_cast<std::size_t>(binding)).begin();
  std::string word = dtype == DType::kBool  ? "select(0u, 1u, " + value + ")"
                     : dtype == DType::kF16 ? "f16(" + value + ")"
                                            : value;
  if (stored != memory_type(dtype)) word = "bitcast<" + stored + ">(" + word + ")";
  return "b" + std::to_string(binding) + "[" + index + "] = " + word + ";";
}

std::string Module::runtime_scalars(int word) {
  CHECK(word >= 0 && word < kMaxRuntimeScalars);
  uses_scalars_ = true;
  return "scalars[" + std::to_string(word / 4) + "]." + "xyzw"[word % 4];
}

std::string Module::constant(DType dtype, std::uint32_t bits) {
  switch (dtype) {
    case DType::kBool: return bits != 0 ? "true" : "false";
    case DType::kU32: return std::to_string(bits) + "u";
    case DType::kI32: return "i32(" + std::to_string(static_cast<std::int32_t>(bits)) + ")";
    case DType::kF32: break;
    case DType::kF16: UNREACHABLE();
  }
  const float value = std::bit_cast<float>(bits);
  if (std::isnan(value)) return "bitcast<f32>(" + runtime_scalars(kScalarNan) + ")";
  if (std::isinf(value)) {
    return std::string(value < 0 ? "-" : "") + "bitcast<f32>(" + runtime_scalars(kScalarInf) + ")";
  }
  // Compilers may merge -0 and 0 into one constant. The bits of +inf, shifted left, are those of
  // -0.
  if (bits == 0x80000000u) return "bitcast<f32>(" + runtime_scalars(kScalarInf) + " << 8u)";
  return f32_literal(value);
}

void Module::use_helpers(std::string_view expression) {
  for (std::size_t at = expression.find("tg_"); at != std::string_view::npos;
       at = expression.find("tg_", at + 1)) {
    if (at > 0 && is_word(expression[at - 1])) continue;
    std::size_t end = at;
    while (end < expression.size() && is_word(expression[end])) ++end;
    const std::string name(expression.substr(at, end - at));
    if (functions_.contains(name)) continue;
    const std::string_view text = wgsl_helper(name);
    CHECK(!text.empty(), "no WGSL helper is called " + name);
    functions_[name] = std::string(text);
    use_helpers(text);
  }
  if (expression.find("scalars[") != std::string_view::npos) uses_scalars_ = true;
}

void Module::function(const std::string& name, const std::string& text) {
  functions_.emplace(name, text);
}

void Module::shared(const std::string& name, const std::string& type, std::int64_t count,
                    int element_bytes) {
  Shader::Shared& array = shared_[name];
  if (count > array.count) array = {type, count, count * element_bytes};
}

Shader Module::shader() const {
  Shader shader;
  for (const std::set<std::string>& types : types_) shader.types.push_back(*types.begin());
  shader.shared = shared_;
  shader.functions = functions_;
  shader.uses_scalars = uses_scalars_;
  shader.enables_subgroups = enables_subgroups_;
  return shader;
}

std::int64_t Shader::workgroup_bytes() const {
  std::int64_t total = 0;
  for (const auto& [name, array] : shared) total += array.bytes;
  return total;
}

}  // namespace tensorgrad::wgsl
