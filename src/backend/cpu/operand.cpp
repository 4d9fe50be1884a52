// SPDX-License-Identifier: MIT
// Operands of contractions: derives strides from views, or evaluates blocks of other programs.
#include "backend/cpu/operand.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/block_size.h"
#include "base/check.h"

namespace tensorgrad::cpu {
namespace {

VectorProgramSpec window_spec(const ScalarProgram& program, std::int64_t batch, std::int64_t rows,
                              std::int64_t cols, bool swapped) {
  VectorProgramSpec spec;
  spec.program = &program;
  spec.result = static_cast<int>(program.instrs.size()) - 1;
  spec.batch = batch;
  spec.rows = rows;
  spec.cols = cols;
  spec.swapped = swapped;
  return spec;
}

// Returns true and the stride if an unmasked view has a single stride.
bool single_stride(const View& view, std::int64_t& stride) {
  const View flat = view.simplified();
  if (flat.shape.size() > 1) return false;
  stride = flat.shape.empty() ? 1 : flat.strides[0];  // with one element, any stride is correct
  return true;
}

// True if walking along rows has more strided loads than walking along columns.
bool rows_jump_more(const ScalarProgram& program, std::int64_t rows, std::int64_t cols) {
  int score = 0;
  for (const Access& access : program.accesses) {
    const std::int64_t along = Walker(access.map).inner_stride();
    const std::int64_t across = Walker::swapped(access.map, rows, cols).inner_stride();
    score += along != 0 && along != 1 ? 1 : 0;
    score -= across != 0 && across != 1 ? 1 : 0;
  }
  return score > 0;
}

// A view over [batch, rows, cols], split into one view per axis; `batch` has the offset.
// split_view() returns false if an axis of the view cannot be split at these boundaries.
struct Parts {
  View batch, rows, cols;
};
bool split_view(const View& view, std::int64_t batch, std::int64_t rows, std::int64_t cols,
                Parts& parts) {
  if (view.masked()) return false;
  // The axes of this view never merge, which keeps the three parts separate.
  const View fence{{batch, rows, cols}, {1, 1, 1}, 0, {}, {}};
  Shape cut;
  View fine;
  if (!common_cut({&view, &fence}, cut) || !recut(view, cut, fine)) return false;
  std::size_t end = cut.size();
  const auto take = [&](std::int64_t count, View& part) {
    std::size_t begin = end;
    for (std::int64_t n = 1; n < count;) {
      if (begin == 0) return false;
      n *= cut[--begin];
    }
    part.shape.assign(cut.begin() + static_cast<std::ptrdiff_t>(begin),
                      cut.begin() + static_cast<std::ptrdiff_t>(end));
    part.strides.assign(fine.strides.begin() + static_cast<std::ptrdiff_t>(begin),
                        fine.strides.begin() + static_cast<std::ptrdiff_t>(end));
    end = begin;
    return numel(part.shape) == count;
  };
  parts.batch.offset = fine.offset;
  return take(cols, parts.cols) && take(rows, parts.rows) && take(batch, parts.batch);
}

std::vector<std::int64_t> offsets_of(const View& view) {
  std::vector<std::int64_t> offsets;
  for (std::int64_t i = 0; i < numel(view.shape); ++i) offsets.push_back(offset_at({{view}}, i));
  return offsets;
}

LineOffsets lines_of(const View& view) {
  LineOffsets lines;
  for (const std::int64_t offset : offsets_of(view)) {
    lines.at.push_back(static_cast<std::int32_t>(offset));
  }
  lines.run_end.resize(lines.at.size());
  for (std::size_t i = lines.at.size(); i-- > 0;) {
    const bool breaks = i + 1 == lines.at.size() || lines.at[i + 1] != lines.at[i] + 1;
    lines.run_end[i] = breaks ? static_cast<std::int32_t>(i) + 1 : lines.run_end[i + 1];
  }
  return lines;
}

}  // namespace

bool split_strides(const View& view, std::int64_t batch, std::int64_t rows, std::int64_t cols,
                   std::int64_t& rs, std::int64_t& cs, std::vector<std::int64_t>& offsets) {
  Parts parts;
  if (!split_view(view, batch, rows, cols, parts)) return false;
  if (!single_stride(parts.cols, cs) || !single_stride(parts.rows, rs)) return false;
  offsets = offsets_of(parts.batch);
  return true;
}

bool split_offsets(const View& view, std::int64_t batch, std::int64_t rows, std::int64_t cols,
                   std::vector<std::int64_t>& of_batch, LineOffsets& of_row, LineOffsets& of_col) {
  Parts parts;
  if (!split_view(view, batch, rows, cols, parts)) return false;
  of_batch = offsets_of(parts.batch);
  of_row = lines_of(parts.rows);
  of_col = lines_of(parts.cols);
  return true;
}

Operand::Operand(const Prepare& prepare, const ScalarProgram& program, std::int64_t batch,
                 std::int64_t rows, std::int64_t cols, bool windows)
    : rows_(rows), cols_(cols) {
  CHECK(!program.instrs.empty(), prepare.launch.name + ": an empty operand");
  const Instr& last = program.instrs.back();
  if (last.kind == InstrKind::kLoad) {
    const Access& access = program.accesses[static_cast<std::size_t>(last.index)];
    const bool one = access.map.views.size() == 1 && access.dtype != DType::kF16;
    const bool strided =
        one && split_strides(access.map.views[0], batch, rows, cols, rs_, cs_, offsets_);
    if (strided ||
        (one && windows &&
         split_offsets(access.map.views[0], batch, rows, cols, offsets_, row_at_, col_at_))) {
      // Constructing the vector program checks the bounds.
      const VectorProgram checked(prepare, window_spec(program, batch, rows, cols, false));
      (strided ? data_ : base_) =
          reinterpret_cast<const float*>(prepare.data[static_cast<std::size_t>(access.binding)]);
      return;
    }
  }
  for (const bool along_rows : {false, true}) {
    if (batch > 1 || packed_ != nullptr) break;
    packed_ = DequantRead::recognise(prepare, program, rows, cols, along_rows);
    swapped_ = along_rows;
  }
  if (packed_ == nullptr) swapped_ = rows_jump_more(program, rows, cols);
  vector_program_ =
      std::make_unique<VectorProgram>(prepare, window_spec(program, batch, rows, cols, swapped_));
  vector_program_->lay_out(block_elements(vector_program_->element_registers()), 0);
}

std::size_t Operand::scratch_bytes(std::int64_t rows, std::int64_t cols) const {
  if (vector_program_ == nullptr) return 0;
  return static_cast<std::size_t>(
             round_up(static_cast<std::int64_t>(vector_program_->scratch_bytes()), 64)) +
         static_cast<std::size_t>(round_up(rows * cols, 16)) * sizeof(float);
}

bool Operand::repeats() const {
  return vector_program_ == nullptr &&
         std::all_of(offsets_.begin(), offsets_.end(),
                     [&](std::int64_t at) { return at == offsets_[0]; });
}

void Operand::pack_rows(std::int64_t batch, std::int64_t r, std::int64_t rows, std::int64_t width,
                        float* out) const {
  gemm_kernels().pack_windows(base_ + offsets_[static_cast<std::size_t>(batch)], col_at_, cols_,
                              row_at_, r, rows, width, out);
}

void Operand::pack_columns(std::int64_t batch, std::int64_t c, std::int64_t cols,
                           std::int64_t width, float* out) const {
  gemm_kernels().pack_windows(base_ + offsets_[static_cast<std::size_t>(batch)], row_at_, rows_,
                              col_at_, c, cols, width, out);
}

void Operand::evaluate(std::int64_t first, std::int64_t count, Frame& frame, Word* out) const {
  for (std::int64_t done = 0; done < count; done += frame.count) {
    frame.first = first + done;
    frame.count = std::min(vector_program_->capacity(), count - done);
    vector_program_->run(vector_program_->ops, frame);
    std::memcpy(out + done, vector_program_->result(frame),
                static_cast<std::size_t>(frame.count) * sizeof(Word));
  }
}

Matrix Operand::block(std::int64_t batch, std::int64_t r, std::int64_t rows, std::int64_t c,
                      std::int64_t cols, std::byte* scratch) const {
  if (plain()) {
    return {data_ + offsets_[static_cast<std::size_t>(batch)] + r * rs_ + c * cs_, rs_, cs_};
  }
  const std::int64_t start =
      round_up(static_cast<std::int64_t>(vector_program_->scratch_bytes()), 64);
  auto* out = reinterpret_cast<Word*>(scratch + start);
  Frame frame = vector_program_->frame(scratch);
  // Lines are contiguous: rows, or columns if swapped.
  const std::int64_t length = swapped_ ? rows_ : cols_;
  const std::int64_t lines = swapped_ ? cols : rows, each = swapped_ ? rows : cols;
  if (packed_ != nullptr) {
    auto* values = reinterpret_cast<float*>(out);
    for (std::int64_t i = 0; i < lines; ++i)
      packed_->read(swapped_ ? c + i : r + i, swapped_ ? r : c, each, values + i * each);
    return swapped_ ? Matrix{values, 1, each} : Matrix{values, each, 1};
  }
  const std::int64_t first = batch * rows_ * cols_ + (swapped_ ? c * length + r : r * length + c);
  if (each == length) {
    evaluate(first, lines * length, frame, out);
  } else {
    for (std::int64_t i = 0; i < lines; ++i) {
      evaluate(first + i * length, each, frame, out + i * each);
    }
  }
  const auto* floats = reinterpret_cast<const float*>(out);
  return swapped_ ? Matrix{floats, 1, each} : Matrix{floats, each, 1};
}

}  // namespace tensorgrad::cpu
