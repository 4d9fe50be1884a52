// SPDX-License-Identifier: MIT
#include "backend/cpu/matmul/dequant_read.h"

#include <algorithm>
#include <optional>

#include "backend/cpu/operand.h"

namespace tensorgrad::cpu {
namespace {

constexpr std::uint32_t kUpperBits = 0xffff0000U;

// The format of a packed operand, matched from its program over [rows, cols].
struct PackedForm {
  PackedKind kind = PackedKind::kHalf;
  const Access* words = nullptr;
  const Access* scale = nullptr;
};

class PackedPattern {
 public:
  PackedPattern(const ScalarProgram& program, std::int64_t divisor)
      : program_(program), divisor_(divisor) {}

  std::optional<PackedForm> form() {
    int value = static_cast<int>(program_.instrs.size()) - 1;
    if (is_op(value, "mul")) {
      const int a = operand(value, 0), b = operand(value, 1);
      const int load = at(a).kind == InstrKind::kLoad ? a : b;
      made_.scale = loaded(load, DType::kF32);
      if (made_.scale == nullptr) return std::nullopt;
      value = load == a ? b : a;
    }
    if (!is_value(value)) return std::nullopt;
    return made_;
  }

 private:
  [[nodiscard]] const Instr& at(int number) const {
    return program_.instrs[static_cast<std::size_t>(number)];
  }
  [[nodiscard]] int operand(int number, std::size_t i) const { return at(number).operands[i]; }
  [[nodiscard]] bool is_op(int number, const char* name) const {
    return at(number).kind == InstrKind::kOp && std::string_view(at(number).code->name) == name;
  }
  [[nodiscard]] bool is_const(int number, std::uint32_t bits) const {
    return at(number).kind == InstrKind::kConst && at(number).bits == bits;
  }
  [[nodiscard]] const Access* loaded(int number, DType dtype) const {
    if (at(number).kind != InstrKind::kLoad) return nullptr;
    const Access& access = program_.accesses[static_cast<std::size_t>(at(number).index)];
    return access.dtype == dtype ? &access : nullptr;
  }

  bool is_value(int number) {
    made_.words = loaded(number, DType::kF16);
    if (made_.words != nullptr) return true;
    if (is_op(number, "bitcast") && is_op(operand(number, 0), "bitwise_and")) {
      const int both = operand(number, 0);
      made_.kind = PackedKind::kBrain;
      return is_const(operand(both, 1), kUpperBits) && is_top(operand(both, 0), 16);
    }
    if (!is_op(number, "cast") || !is_op(operand(number, 0), "bitwise_right_shift")) return false;
    const int down = operand(number, 0), as_signed = operand(down, 0);
    if (at(down).dtype != DType::kI32 || !is_op(as_signed, "bitcast")) return false;
    for (const std::uint32_t bits : {8U, 4U}) {
      if (!is_const(operand(down, 1), 32 - bits)) continue;
      made_.kind = bits == 8 ? PackedKind::kInt8 : PackedKind::kInt4;
      return is_top(operand(as_signed, 0), bits);
    }
    return false;
  }

  // Matches words << (32 - bits - bits * lane), which moves the field to the top bits.
  bool is_top(int number, std::uint32_t bits) {
    if (!is_op(number, "bitwise_left_shift")) return false;
    made_.words = loaded(operand(number, 0), DType::kU32);
    const int amount = operand(number, 1);
    if (made_.words == nullptr || !is_op(amount, "sub")) return false;
    const int times = operand(amount, 1);
    if (!is_const(operand(amount, 0), 32 - bits) || !is_op(times, "mul")) return false;
    int number_of = operand(times, 0);
    while (is_op(number_of, "cast")) number_of = operand(number_of, 0);
    const Instr& lane = at(number_of);
    return is_const(operand(times, 1), bits) && lane.kind == InstrKind::kCoord &&
           lane.divisor == divisor_ && lane.modulus == 32 / bits;
  }

  const ScalarProgram& program_;
  std::int64_t divisor_;
  PackedForm made_;
};

// Computes the offsets of the lines of a view over [rows, cols]. Returns false unless element i of
// a line is at the line's offset + i / each, for some `each`, which is also returned.
bool split_lines(const View& view, std::int64_t rows, std::int64_t cols, bool along_rows,
                 std::vector<std::int32_t>& lines, std::int64_t& each) {
  std::vector<std::int64_t> start;
  LineOffsets of_row, of_col;
  if (!split_offsets(view, 1, rows, cols, start, of_row, of_col)) return false;
  const std::vector<std::int32_t>& along = along_rows ? of_row.at : of_col.at;
  lines = along_rows ? of_col.at : of_row.at;
  for (std::int32_t& line : lines) line += static_cast<std::int32_t>(start[0]);
  const auto second =
      std::find_if(along.begin(), along.end(), [](std::int32_t o) { return o != 0; });
  each = second - along.begin();
  for (std::size_t i = 0; i < along.size(); ++i) {
    if (along[i] != static_cast<std::int64_t>(i) / each) return false;
  }
  return true;
}

}  // namespace

std::unique_ptr<DequantRead> DequantRead::recognise(const Prepare& prepare,
                                                    const ScalarProgram& program, std::int64_t rows,
                                                    std::int64_t cols, bool along_rows) {
  const std::optional<PackedForm> form = PackedPattern(program, along_rows ? cols : 1).form();
  if (!form || form->words->map.views.size() != 1) return nullptr;
  if (form->scale != nullptr && form->scale->map.views.size() != 1) return nullptr;
  auto made = std::make_unique<DequantRead>();
  made->kind_ = form->kind;
  made->length_ = along_rows ? rows : cols;
  const auto data = [&](const Access& access) {
    return prepare.data[static_cast<std::size_t>(access.binding)];
  };
  std::int64_t held = 0;
  if (!split_lines(form->words->map.views[0], rows, cols, along_rows, made->line_, held) ||
      held != elements_in_word(form->kind)) {
    return nullptr;
  }
  made->words_ = data(*form->words);
  if (form->scale == nullptr) return made;
  if (!split_lines(form->scale->map.views[0], rows, cols, along_rows, made->scale_line_,
                   made->each_)) {
    return nullptr;
  }
  if (made->each_ != kPackedGroup && made->each_ != made->length_) return nullptr;
  made->scales_ = reinterpret_cast<const float*>(data(*form->scale));
  return made;
}

const std::byte* DequantRead::data(std::int64_t line) const {
  const std::int64_t unit = kind_ == PackedKind::kHalf ? 2 : 4;
  return reinterpret_cast<const std::byte*>(words_) + unit * line_[static_cast<std::size_t>(line)];
}

const float* DequantRead::scales(std::int64_t line) const {
  return scales_ == nullptr ? nullptr : scales_ + scale_line_[static_cast<std::size_t>(line)];
}

void DequantRead::arrange(float* v) const { dequant_kernels().arrange(kind_, length_, v); }

void DequantRead::multiply(const float* v, std::int64_t first, std::int64_t count,
                           float* sums) const {
  const bool groups = each_ == kPackedGroup;
  PackedLine lines[kMaxPackedLines];
  for (std::int64_t i = 0; i < count;) {
    const int together = static_cast<int>(std::min<std::int64_t>(kMaxPackedLines, count - i));
    for (int r = 0; r < together; ++r)
      lines[r] = {data(first + i + r), groups ? scales(first + i + r) : nullptr};
    dequant_kernels().dots(kind_, length_, v, lines, together, sums + i);
    i += together;
  }
  if (groups || scales_ == nullptr) return;
  for (std::int64_t i = 0; i < count; ++i) sums[i] *= *scales(first + i);
}

void DequantRead::read(std::int64_t line, std::int64_t first, std::int64_t count,
                       float* out) const {
  const float* scale = scales(line);
  if (scale != nullptr && each_ == kPackedGroup && first % kPackedGroup == 0) {
    dequant_kernels().unpack(kind_, data(line), first, count, scale + first / kPackedGroup, out);
    return;
  }
  dequant_kernels().unpack(kind_, data(line), first, count, nullptr, out);
  if (scale == nullptr) return;
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t group = (first + done) / each_;
    const std::int64_t end = std::min(count, (group + 1) * each_ - first);
    for (std::int64_t i = done; i < end; ++i) out[i] *= scale[group];
    done = end;
  }
}

}  // namespace tensorgrad::cpu
