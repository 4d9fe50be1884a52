// SPDX-License-Identifier: MIT
// Executes vector programs: one block at a time, one operation after the other.
#include "backend/cpu/vector_program.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "backend/cpu/vector_program_build.h"
#include "base/check.h"
#include "base/half.h"

namespace tensorgrad::cpu {
namespace {

// Converts pointers to words and pointers to f16 elements.
const Half* halves(const Word* data) { return reinterpret_cast<const Half*>(data); }
Half* halves(Word* data) { return reinterpret_cast<Half*>(data); }
Word* words(Half* data) { return reinterpret_cast<Word*>(data); }

Word element_of(const VectorUniform& u) {
  return u.half ? std::bit_cast<Word>(from_half(*halves(u.data))) : *u.data;
}

}  // namespace

const Word* ConstPool::splat(Word bits) {
  AlignedBytes& block = blocks_[bits];
  if (block.size() == 0) {
    block = AlignedBytes(kSplatWords * sizeof(Word));
    std::fill_n(reinterpret_cast<Word*>(block.data()), kSplatWords, bits);
  }
  return reinterpret_cast<const Word*>(block.data());
}

std::int64_t task_count(double ns, std::int64_t pieces, double worth_sharing) {
  constexpr double kTaskTime = 4000;
  constexpr std::int64_t kMaxTasks = 64;
  if (ns < worth_sharing) return 1;
  return std::clamp(static_cast<std::int64_t>(ns / kTaskTime), std::int64_t{1},
                    std::min(kMaxTasks, pieces));
}

VectorProgramSpec operand_spec(const ScalarProgram& program, std::int64_t elements) {
  VectorProgramSpec spec;
  spec.program = &program;
  spec.result = static_cast<int>(program.instrs.size()) - 1;
  spec.rows = elements;
  return spec;
}

VectorProgramSpec epilogue_spec(const Launch& launch, std::int64_t elements) {
  VectorProgramSpec spec;
  spec.program = &launch.body;
  spec.stores = &launch.stores;
  spec.rows = elements;
  return spec;
}

VectorProgram::VectorProgram(const Prepare& prepare, const VectorProgramSpec& spec)
    : name_(prepare.launch.name), rows_(spec.rows), cols_(spec.cols), swapped_(spec.swapped) {
  VectorProgramBuilder(prepare, spec, *this).build();
}

void VectorProgram::lay_out(std::int64_t elements, std::int64_t rows) {
  capacity_ = round_up(elements, 16);
  row_capacity_ = round_up(rows, 16);
}

std::size_t VectorProgram::scratch_bytes() const {
  const std::int64_t table = round_up(static_cast<std::int64_t>(regs_.size() * sizeof(Word*)), 64);
  return static_cast<std::size_t>(table) +
         static_cast<std::size_t>(row_words() + element_slots_ * capacity_) * sizeof(Word);
}

void VectorProgram::start(const RuntimeScalars& runtime_scalars) {
  for (const VectorUniform& u : uniforms_) {
    if (u.fn != nullptr) {
      u.fn(u.operands, u.out, kSplatWords);
    } else {
      std::fill_n(
          u.out, kSplatWords,
          u.runtime_scalars >= 0 ? runtime_scalars.words[u.runtime_scalars] : element_of(u));
    }
  }
  for (VectorStore& store : stores) {
    if (store.ring_word < 0) continue;
    const std::int64_t shift = runtime_scalars.words[store.ring_word];
    CHECK(store.highest + shift < store.count, name_ + ": a ring position leaves its binding");
    store.target = store.half ? words(halves(store.data) + shift) : store.data + shift;
  }
}

Word* VectorProgram::home(int reg, const Frame& frame) const {
  const VectorRegister& r = regs_[static_cast<std::size_t>(reg)];
  return r.home == VectorRegister::Home::kRow ? frame.row_values + r.offset * row_capacity_
                                              : frame.elements + r.offset * capacity_;
}

Frame VectorProgram::frame(std::byte* scratch, Word* row_values) const {
  Frame f;
  f.regs = reinterpret_cast<Word**>(scratch);
  const std::int64_t table = round_up(static_cast<std::int64_t>(regs_.size() * sizeof(Word*)), 64);
  Word* words = reinterpret_cast<Word*>(scratch + table);
  f.row_values = row_values == nullptr ? words : row_values;
  f.elements = words + row_words();
  for (std::size_t i = 0; i < regs_.size(); ++i) {
    const VectorRegister& r = regs_[i];
    // Shared blocks are never written. NOLINTNEXTLINE(*-const-cast)
    f.regs[i] = r.home == VectorRegister::Home::kShared ? const_cast<Word*>(r.shared)
                : r.home == VectorRegister::Home::kAcc  ? nullptr
                                                        : home(static_cast<int>(i), f);
  }
  return f;
}

const VectorStore* VectorProgram::plain_store() const {
  if (ops.size() != 1 || ops[0].kind != VectorOp::Kind::kStore) return nullptr;
  return ops[0].src[0] == acc_reg_ && !stores[0].half ? stores.data() : nullptr;
}

namespace {

void call(const VectorOp& op, Word** regs, std::int64_t count) {
  CpuOperands in;
  for (int k = 0; k < 4 && op.src[k] >= 0; ++k) {
    in.data[k] = regs[op.src[k]];
    in.mask[k] = op.mask[k];
  }
  op.fn(in, regs[op.dst], static_cast<std::size_t>(count));
}

// Shorter runs are gathered element by element.
constexpr std::int64_t kMinRun = 8;

void load(const VectorOp& op, std::int64_t at, std::int64_t first, std::int64_t count, Word* dst) {
  if (op.half) return op.walker->load(halves(op.data) + at, first, count, dst);
  op.walker->load(op.data + at, first, count, dst);
}

void gather_halves(const VectorOp& op, std::int64_t count, const Word* index, Word* at) {
  const Half* data = halves(op.data);
  CHECK(at != nullptr && data != nullptr);
  for (std::int64_t i = 0; i < count; ++i) {
    const bool inside = index[i] < op.at_size && at[i] != ~Word{0};
    at[i] = inside ? std::bit_cast<Word>(from_half(data[at[i] + op.at_stride * index[i]])) : 0;
  }
}

void load_at(const VectorOp& op, std::int64_t first, std::int64_t count, const Word* index,
             Word* dst) {
  if (op.run < kMinRun) {
    op.walker->offsets(first, count, ~Word{0}, dst);
    if (op.half) return gather_halves(op, count, index, dst);
    // A negative i32 is a large u32, thus out of range.
    simd().gather(op.data, static_cast<Word>(op.at_stride), static_cast<Word>(op.at_size), index,
                  count, dst);
    return;
  }
  for (std::int64_t i = 0; i < count;) {
    const std::int64_t length = std::min(op.run - (first + i) % op.run, count - i);
    const auto v = static_cast<std::int64_t>(index[i]);
    if (v < op.at_size) {
      load(op, op.at_stride * v, first + i, length, dst + i);
    } else {
      std::fill_n(dst + i, length, 0u);
    }
    i += length;
  }
}

}  // namespace

void VectorProgram::spread(const VectorOp& op, Frame& frame) const {
  const Word* from = frame.regs[op.src[0]];
  if (swapped_) {
    if (frame.count == frame.rows) {
      frame.regs[op.dst] = frame.regs[op.src[0]];
      return;
    }
    Word* to = frame.regs[op.dst] = home(op.dst, frame);
    for (std::int64_t i = 0; i < frame.count; i += frame.rows) {
      std::memcpy(to + i, from, static_cast<std::size_t>(frame.rows) * sizeof(Word));
    }
    return;
  }
  Word* to = frame.regs[op.dst];
  if (cols_ < kShortRow && frame.rows > 1) return simd().spread_rows(from, frame.rows, cols_, to);
  const std::int64_t each = frame.rows == 1 ? frame.count : cols_;
  for (std::int64_t r = 0; r < frame.rows; ++r) std::fill_n(to + r * each, each, from[r]);
}

void VectorProgram::reduce_rows(const VectorOp& op, const Frame& frame) const {
  const Word* src = frame.regs[op.src[0]];
  Word* dst = frame.regs[op.dst];
  const auto* floats = reinterpret_cast<const float*>(src);
  const bool to_float = op.dtype == DType::kF32;
  if (to_float && cols_ < kShortRow) {
    auto* out = reinterpret_cast<float*>(dst);
    if (op.reduce == ReduceOp::kSum) return simd().sum_rows(floats, frame.rows, cols_, out);
    if (op.reduce == ReduceOp::kMax) return simd().max_rows(floats, frame.rows, cols_, out);
    if (op.reduce == ReduceOp::kMin) return simd().min_rows(floats, frame.rows, cols_, out);
  }
  if (op.reduce == ReduceOp::kSum && to_float) {
    for (std::int64_t r = 0; r < frame.rows; ++r) {
      dst[r] = std::bit_cast<Word>(static_cast<float>(simd().sum(floats + r * cols_, cols_)));
    }
    return;
  }
  for (std::int64_t r = 0; r < frame.rows; ++r) {
    if (op.reduce == ReduceOp::kSum) {
      dst[r] = simd().sum_words(src + r * cols_, cols_);
      continue;
    }
    Best best;
    take_best(op.reduce, op.dtype, src + r * cols_, cols_, 0, best);
    const bool value = op.reduce == ReduceOp::kMax || op.reduce == ReduceOp::kMin;
    dst[r] = value ? best.bits : static_cast<Word>(best.index);
  }
}

// Stores the elements of each run with the same index at once.
void VectorProgram::store_at(const VectorStore& store, const Frame& frame) {
  const Word* from = frame.regs[store.reg];
  const Word* at = frame.regs[store.at_reg];
  for (std::int64_t i = 0, end = 0; i < frame.count; i = end) {
    while (end < frame.count && at[end] == at[i]) ++end;
    if (at[i] >= store.at_size) continue;  // a negative i32 is a large u32
    const std::int64_t shift = store.at_stride * at[i];
    if (store.half) {
      store.walker->store(from + i, frame.first + i, end - i, halves(store.target) + shift);
    } else {
      store.walker->store(from + i, frame.first + i, end - i, store.target + shift);
    }
  }
}

void VectorProgram::store_block(const VectorStore& store, const Frame& frame) const {
  if (store.at_reg >= 0) return store_at(store, frame);
  const std::int64_t first = store.row ? frame.row : frame.first;
  const std::int64_t count = store.row ? frame.rows : frame.count;
  const Word* from = frame.regs[store.reg];
  if (store.half) return store.walker->store(from, first, count, halves(store.target));
  store.walker->store(from, first, count, store.target);
}

void VectorProgram::run_op(const VectorOp& op, Frame& frame) const {
  const std::int64_t first = op.row ? frame.row : frame.first;
  const std::int64_t count = op.row ? frame.rows : frame.count;
  Word* dst = op.dst < 0 ? nullptr : frame.regs[op.dst];
  switch (op.kind) {
    case VectorOp::Kind::kCall: call(op, frame.regs, count); break;
    case VectorOp::Kind::kLoad: load(op, 0, first, count, dst); break;
    case VectorOp::Kind::kBorrow: {
      const Word* from = op.data + op.walker->base() + first;
      // Vector loops continue to the next multiple of 16. If the buffer is written concurrently,
      // they would read elements of another block.
      if (is_aligned(from) && (op.read_only || count % 16 == 0)) {
        frame.regs[op.dst] = const_cast<Word*>(from);  // NOLINT(*-const-cast): only read
      } else {
        frame.regs[op.dst] = home(op.dst, frame);
        std::memcpy(frame.regs[op.dst], from, static_cast<std::size_t>(count) * sizeof(Word));
      }
      break;
    }
    case VectorOp::Kind::kPeriod: {
      const std::int64_t at = first % op.run;
      const Word* from = op.data + at;
      if (is_aligned(from) && (at == 0 || at + count <= op.run)) {
        frame.regs[op.dst] = const_cast<Word*>(from);  // NOLINT(*-const-cast): only read
        break;
      }
      frame.regs[op.dst] = home(op.dst, frame);
      const std::int64_t before = std::min(op.run - at, count);
      std::copy_n(from, before, frame.regs[op.dst]);
      std::copy_n(op.data, std::min(op.run, count) - before, frame.regs[op.dst] + before);
      break;
    }
    case VectorOp::Kind::kLoadAt: load_at(op, first, count, frame.regs[op.src[0]], dst); break;
    case VectorOp::Kind::kValid: op.walker->valid(first, count, dst); break;
    case VectorOp::Kind::kOffsets: op.walker->offsets(first, count, 0, dst); break;
    case VectorOp::Kind::kSpread: spread(op, frame); break;
    case VectorOp::Kind::kFill: std::fill_n(dst, count, *op.data); break;
    case VectorOp::Kind::kReduce: reduce_rows(op, frame); break;
    case VectorOp::Kind::kStore: break;
  }
}

void VectorProgram::run(const VectorOps& list, Frame& frame) const {
  if (acc_reg_ >= 0) {
    frame.regs[acc_reg_] = const_cast<Word*>(frame.acc);  // NOLINT(*-const-cast): only read
  }
  for (const VectorOp& op : list) {
    if (op.store < 0) {
      run_op(op, frame);
      continue;
    }
    const VectorStore& store = stores[static_cast<std::size_t>(op.store)];
    if (op.kind == VectorOp::Kind::kStore) {
      store_block(store, frame);
      continue;
    }
    // Writes directly to the buffer, unless a vector loop would overwrite the elements after the
    // block.
    const std::int64_t first = op.row ? frame.row : frame.first;
    const std::int64_t count = op.row ? frame.rows : frame.count;
    Word* to = store.target + store.walker->base() + first;
    const bool direct = count % 16 == 0 && is_aligned(to);
    frame.regs[op.dst] = direct ? to : home(op.dst, frame);
    run_op(op, frame);
    if (!direct) store_block(store, frame);
  }
}

}  // namespace tensorgrad::cpu
