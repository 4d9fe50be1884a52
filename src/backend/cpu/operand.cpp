// SPDX-License-Identifier: MIT
// Operands of contractions: strides found in views, blocks of other programs computed.
#include "backend/cpu/operand.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/block_size.h"
#include "base/check.h"

namespace tensorgrad::cpu {
namespace {

TapeSpec operand_spec(const ScalarProgram& program, std::int64_t batch, std::int64_t rows,
                      std::int64_t cols, bool swapped) {
  TapeSpec spec;
  spec.program = &program;
  spec.result = static_cast<int>(program.instrs.size()) - 1;
  spec.batch = batch;
  spec.rows = rows;
  spec.cols = cols;
  spec.swapped = swapped;
  return spec;
}

// The one stride of axes [begin, end) of a view, or false.
bool single_stride(const View& view, std::size_t begin, std::size_t end, std::int64_t& stride) {
  View part;
  part.shape.assign(view.shape.begin() + static_cast<std::ptrdiff_t>(begin),
                    view.shape.begin() + static_cast<std::ptrdiff_t>(end));
  part.strides.assign(view.strides.begin() + static_cast<std::ptrdiff_t>(begin),
                      view.strides.begin() + static_cast<std::ptrdiff_t>(end));
  const View flat = part.simplified();
  if (flat.shape.size() > 1) return false;
  stride = flat.shape.empty() ? 1 : flat.strides[0];  // of one element any stride is right
  return true;
}

// More loads jump about when rows are walked than when columns are.
bool better_swapped(const ScalarProgram& program, std::int64_t rows, std::int64_t cols) {
  int score = 0;
  for (const Access& access : program.accesses) {
    const std::int64_t along = Walker(access.map).inner_stride();
    const std::int64_t across = Walker::swapped(access.map, rows, cols).inner_stride();
    score += along != 0 && along != 1 ? 1 : 0;
    score -= across != 0 && across != 1 ? 1 : 0;
  }
  return score > 0;
}

}  // namespace

bool split_strides(const View& view, std::int64_t batch, std::int64_t rows, std::int64_t cols,
                   std::int64_t& rs, std::int64_t& cs, std::vector<std::int64_t>& offsets) {
  if (view.masked()) return false;
  // Unit strides never merge: this view keeps the cuts apart.
  const View fence{{batch, rows, cols}, {1, 1, 1}, 0, {}, {}};
  Shape cut;
  View fine;
  if (!common_cut({&view, &fence}, cut) || !recut(view, cut, fine)) return false;
  std::size_t inner = cut.size(), middle = cut.size();
  for (std::int64_t n = 1; n < cols;) {
    if (inner == 0) return false;
    n *= cut[--inner];
  }
  middle = inner;
  for (std::int64_t n = 1; n < rows;) {
    if (middle == 0) return false;
    n *= cut[--middle];
  }
  if (!single_stride(fine, inner, cut.size(), cs) || !single_stride(fine, middle, inner, rs)) {
    return false;
  }
  View outer;
  outer.offset = fine.offset;
  outer.shape.assign(cut.begin(), cut.begin() + static_cast<std::ptrdiff_t>(middle));
  outer.strides.assign(fine.strides.begin(),
                       fine.strides.begin() + static_cast<std::ptrdiff_t>(middle));
  if (numel(outer.shape) != batch) return false;
  offsets.clear();
  for (std::int64_t b = 0; b < batch; ++b) offsets.push_back(offset_at({{outer}}, b));
  return true;
}

Operand::Operand(const Prepare& prepare, const ScalarProgram& program, std::int64_t batch,
                 std::int64_t rows, std::int64_t cols)
    : rows_(rows), cols_(cols) {
  CHECK(!program.instrs.empty(), prepare.launch.name + ": an empty operand");
  const Instr& last = program.instrs.back();
  if (last.kind == InstrKind::kLoad) {
    const Access& access = program.accesses[static_cast<std::size_t>(last.index)];
    if (access.map.views.size() == 1 &&
        split_strides(access.map.views[0], batch, rows, cols, rs_, cs_, offsets_)) {
      // The tape is made for its bounds check alone.
      const Tape checked(prepare, operand_spec(program, batch, rows, cols, false));
      data_ =
          reinterpret_cast<const float*>(prepare.data[static_cast<std::size_t>(access.binding)]);
      return;
    }
  }
  swapped_ = better_swapped(program, rows, cols);
  tape_ = std::make_unique<Tape>(prepare, operand_spec(program, batch, rows, cols, swapped_));
  tape_->lay_out(block_elements(tape_->element_registers()), 0);
}

std::size_t Operand::scratch_bytes(std::int64_t rows, std::int64_t cols) const {
  if (plain()) return 0;
  return static_cast<std::size_t>(round_up(static_cast<std::int64_t>(tape_->scratch_bytes()), 64)) +
         static_cast<std::size_t>(round_up(rows * cols, 16)) * sizeof(float);
}

void Operand::evaluate(std::int64_t first, std::int64_t count, Frame& frame, Word* out) const {
  for (std::int64_t done = 0; done < count; done += frame.count) {
    frame.first = first + done;
    frame.count = std::min(tape_->capacity(), count - done);
    tape_->run(tape_->ops, frame);
    std::memcpy(out + done, tape_->result(frame),
                static_cast<std::size_t>(frame.count) * sizeof(Word));
  }
}

Matrix Operand::block(std::int64_t batch, std::int64_t r, std::int64_t rows, std::int64_t c,
                      std::int64_t cols, std::byte* scratch) const {
  if (plain()) {
    return {data_ + offsets_[static_cast<std::size_t>(batch)] + r * rs_ + c * cs_, rs_, cs_};
  }
  const std::int64_t start = round_up(static_cast<std::int64_t>(tape_->scratch_bytes()), 64);
  auto* out = reinterpret_cast<Word*>(scratch + start);
  Frame frame = tape_->frame(scratch);
  // Lines run along memory: rows, or columns where swapped.
  const std::int64_t length = swapped_ ? rows_ : cols_;
  const std::int64_t lines = swapped_ ? cols : rows, each = swapped_ ? rows : cols;
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
