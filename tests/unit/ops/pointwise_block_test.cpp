// SPDX-License-Identifier: MIT
// Block functions of every pointwise op, on every instruction set of this machine, compared with
// the op evaluated in double: on its sample range, on edge values, at every block size, and in
// place.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iomanip>
#include <limits>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "kernel/pointwise.h"
#include "ops/pointwise.h"

namespace tensorgrad {
namespace {

constexpr DType kDTypes[] = {DType::kF32, DType::kI32, DType::kU32, DType::kBool};
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The largest error in units in the last place of the exact result. Other ops are exact, up to the
// sign of zero. If only one side is zero or infinite, the distance counts.
const std::map<std::string, double> kUlps = {
    {"add", 0.5},   {"sub", 0.5},     {"mul", 0.5},  {"div", 0.5},    {"square", 0.5},
    {"sqrt", 0.5},  {"cast", 0.5},    {"pow", 0.51}, {"atan2", 1.6},  {"reciprocal", 0.5},
    {"rsqrt", 1.5}, {"exp", 1},       {"exp2", 1},   {"expm1", 1.5},  {"log", 1},
    {"log2", 1.4},  {"log1p", 1.5},   {"sin", 1.6},  {"cos", 1.6},    {"tan", 3},
    {"tanh", 2.5},  {"sigmoid", 2.5}, {"erf", 1.5},  {"softplus", 2}, {"sinh", 3},
    {"asinh", 3},   {"acosh", 3},     {"atanh", 3}};

double float_error(float got, double want) {
  const auto nearest = static_cast<float>(want);
  if (std::isnan(nearest) || std::isnan(got)) {
    return std::isnan(nearest) && std::isnan(got) ? 0 : INFINITY;
  }
  if (got == nearest) return std::isinf(got) ? 0 : std::min(0.5, std::fabs(got - want) * 1e300);
  if (std::isinf(got)) return INFINITY;
  int exponent = 0;
  std::frexp(std::isinf(nearest) ? std::numeric_limits<float>::max() : want, &exponent);
  const double ulp = std::ldexp(1.0, std::max(exponent - 24, -149));
  return std::fabs(got - want) / ulp;
}

// An op with one pair of element types.
struct Case {
  const OpDef* op;
  DType from, to;
  CpuBlockFn block;

  [[nodiscard]] DType operand(int i) const {
    return op->arity == 3 && i == 0 ? DType::kBool : from;
  }
  [[nodiscard]] std::string name() const {
    return std::string(op->name) + " " + std::string(to_string(from)) + " to " +
           std::string(to_string(to));
  }
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const OpDef* op : pointwise_ops()) {
    for (const DType from : kDTypes) {
      for (const DType to : kDTypes) {
        const CpuBlockFn block = op->code->block(from, to);
        if (block != nullptr) cases.push_back({op, from, to, block});
      }
    }
  }
  return cases;
}

// Calls `test` with the cases of each instruction set of this machine.
template <class Test>
void on_every_target(Test test) {
  const std::int64_t all = hwy::SupportedTargets();
  for (const std::int64_t target :
       {HWY_AVX3, HWY_AVX2, HWY_SSE4, HWY_NEON, HWY_SCALAR, HWY_EMU128}) {
    if ((all & target & HWY_TARGETS) == 0) continue;  // HWY_TARGETS: compiled targets
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::GetChosenTarget().Update(target);
    test(all_cases());
  }
  hwy::GetChosenTarget().Update(all);
}

// Aligned memory for n elements and for those that a block may access beyond them.
class Words {
 public:
  explicit Words(std::size_t n) : storage_((n + 15) / 16 + 1) {}
  std::uint32_t& operator[](std::size_t i) { return storage_[i / 16].words[i % 16]; }
  std::uint32_t* data() { return storage_[0].words; }

 private:
  struct alignas(64) Line {
    std::uint32_t words[16];
  };
  std::vector<Line> storage_;
};

double value_of(std::uint32_t word, DType dtype) {
  switch (dtype) {
    case DType::kF32: return std::bit_cast<float>(word);
    case DType::kI32: return static_cast<std::int32_t>(word);
    case DType::kU32: return word;
    case DType::kBool: return word != 0 ? 1 : 0;
    case DType::kF16: break;  // no value of a program has this type
  }
  return 0;
}

std::uint32_t word_of(double value, DType dtype) {
  switch (dtype) {
    case DType::kF32: return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    case DType::kI32: return static_cast<std::uint32_t>(static_cast<std::int32_t>(value));
    case DType::kU32: return static_cast<std::uint32_t>(std::fabs(value));
    case DType::kBool: return value >= 0.5 ? 1 : 0;
    case DType::kF16: break;  // no value of a program has this type
  }
  return 0;
}

// Returns edge values of a type, as words. There is no signalling NaN, because a double would quiet
// it.
std::vector<std::uint32_t> edges(DType dtype) {
  std::vector<std::uint32_t> words;
  if (dtype == DType::kBool) return {0, 1};
  if (dtype == DType::kF32) {
    for (const float x : {0.0F,          1.0F,          2.0F,          3.0F,
                          0.5F,          1e-45F,        1e-40F,        1.1754944e-38F,
                          1e-8F,         1e-4F,         0.35F,         0.9999999F,
                          1.0000001F,    1.5F,          2.5F,          3.5F,
                          9.1F,          16.7F,         25.5F,         87.0F,
                          88.72F,        89.0F,         103.9F,        128.0F,
                          150.0F,        1e5F,          1048575.0F,    8388607.5F,
                          8388609.0F,    16777217.0F,   2147483520.0F, 2147483648.0F,
                          4294967040.0F, 4294967296.0F, 1e10F,         3.4028235e38F,
                          kInf,          kNan}) {
      words.push_back(std::bit_cast<std::uint32_t>(x));
      words.push_back(std::bit_cast<std::uint32_t>(-x));
    }
    return words;
  }
  return {0,          1,          2,          3,          7,          31,
          32,         33,         100,        0x7FFFFFFF, 0x80000000, 0x80000001,
          0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFF9, 0x00FFFFFF, 0x01000001};
}

CpuOperands whole_blocks(std::vector<Words>& operands) {
  CpuOperands in;
  for (std::size_t k = 0; k < operands.size(); ++k) in.data[k] = operands[k].data();
  return in;
}

// Runs the block and the reference on the operands and compares the results.
void compare(const Case& c, std::vector<Words>& operands, std::size_t n) {
  Words out(n);
  c.block(whole_blocks(operands), out.data(), n);

  std::vector<RefTensor> tensors(operands.size());
  std::vector<const RefTensor*> inputs;
  const Shape shape = {static_cast<std::int64_t>(n)};
  for (std::size_t k = 0; k < operands.size(); ++k) {
    tensors[k].type = {c.operand(static_cast<int>(k)), shape};
    for (std::size_t i = 0; i < n; ++i) {
      tensors[k].data.push_back(value_of(operands[k][i], tensors[k].type.dtype));
    }
    inputs.push_back(&tensors[k]);
  }
  Node node;
  node.op = c.op;
  node.type = {c.to, shape};
  RefTensor want{node.type, {}};
  c.op->eval({node, inputs}, want);

  const auto found = kUlps.find(c.op->name);
  const double limit = found == kUlps.end() ? 0 : found->second;
  for (std::size_t i = 0; i < n; ++i) {
    const double got = value_of(out[i], c.to);
    const bool good = c.to == DType::kF32
                          ? float_error(static_cast<float>(got), want.data[i]) <= limit
                          : got == want.data[i];
    if (good) continue;
    std::ostringstream text;
    text << std::setprecision(9) << c.name() << ":";
    for (const RefTensor& t : tensors) text << " " << t.data[i];
    ADD_FAILURE() << text.str() << std::setprecision(12) << " gives " << got << ", not "
                  << want.data[i];
    return;
  }
  if (c.to != DType::kBool) return;
  for (std::size_t i = 0; i < n; ++i) ASSERT_LE(out[i], 1U) << c.name();
}

TEST(PointwiseBlock, meets_its_error_bound_on_sample_ranges) {
  on_every_target([](const std::vector<Case>& cases) {
    std::mt19937 random(1);
    constexpr std::size_t kCount = 8192;
    for (const Case& c : cases) {
      std::vector<Words> operands;
      for (int k = 0; k < c.op->arity; ++k) {
        const SampleRange range = c.op->samples[static_cast<std::size_t>(k)];
        std::uniform_real_distribution<double> sample(range.lo, range.hi);
        operands.emplace_back(kCount);
        for (std::size_t i = 0; i < kCount; ++i) {
          operands.back()[i] = word_of(sample(random), c.operand(k));
        }
      }
      compare(c, operands, kCount);
    }
  });
}

TEST(PointwiseBlock, meets_its_error_bound_on_edges_and_random_bits) {
  on_every_target([](const std::vector<Case>& cases) {
    std::mt19937 random(2);
    constexpr std::size_t kCount = 8192;
    for (const Case& c : cases) {
      std::vector<Words> operands;
      for (int k = 0; k < c.op->arity; ++k) {
        const std::vector<std::uint32_t> edge = edges(c.operand(k));
        operands.emplace_back(kCount);
        for (std::size_t i = 0; i < kCount; ++i) {
          // All pairs of edges come first (a row for each value of the second operand).
          const std::size_t pick = k == 0 ? i : k == 1 ? i / edge.size() : random();
          std::uint32_t word = edge[pick % edge.size()];
          if (i >= 6000 && random() % 2 == 0) word = static_cast<std::uint32_t>(random());
          if (c.operand(k) == DType::kBool) word &= 1U;
          if (c.operand(k) == DType::kF32 && std::isnan(std::bit_cast<float>(word))) {
            word |= 0x00400000U;
          }
          operands.back()[i] = word;
        }
      }
      compare(c, operands, kCount);
    }
  });
}

TEST(PointwiseBlock, takes_any_size_and_works_in_place) {
  on_every_target([](const std::vector<Case>& cases) {
    std::mt19937 random(3);
    constexpr std::size_t kCount = 1024;
    for (const Case& c : cases) {
      std::vector<Words> operands;
      for (int k = 0; k < c.op->arity; ++k) {
        operands.emplace_back(kCount);
        for (std::size_t i = 0; i < kCount; ++i) {
          const double v = std::uniform_real_distribution<double>(1, 30)(random);
          operands.back()[i] = c.operand(k) == DType::kBool ? i % 3 % 2 : word_of(v, c.operand(k));
        }
      }
      Words whole(kCount);
      c.block(whole_blocks(operands), whole.data(), kCount);
      for (std::size_t n = 1; n <= 40; ++n) {
        Words part(n);
        c.block(whole_blocks(operands), part.data(), n);
        for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(part[i], whole[i]) << c.name() << " " << n;
      }
      for (std::size_t k = 0; k < operands.size(); ++k) {
        Words saved = operands[k];
        c.block(whole_blocks(operands), operands[k].data(), kCount);
        for (std::size_t i = 0; i < kCount; ++i) {
          ASSERT_EQ(operands[k][i], whole[i]) << c.name() << " in place of operand " << k;
        }
        operands[k] = saved;
      }
    }
  });
}

TEST(PointwiseBlock, takes_operands_that_all_elements_share) {
  on_every_target([](const std::vector<Case>& cases) {
    std::mt19937 random(4);
    constexpr std::size_t kCount = 100;
    for (const Case& c : cases) {
      for (unsigned shared = 1; shared < 1U << c.op->arity; ++shared) {
        std::vector<Words> operands, short_ones;
        for (int k = 0; k < c.op->arity; ++k) {
          operands.emplace_back(kCount);
          short_ones.emplace_back(16);
          std::uint32_t word = 0;
          for (std::size_t i = 0; i < kCount; ++i) {
            const double v = std::uniform_real_distribution<double>(1, 30)(random);
            const bool again = (shared >> k & 1U) != 0 && i > 0;
            if (!again) word = c.operand(k) == DType::kBool ? i % 3 % 2 : word_of(v, c.operand(k));
            operands.back()[i] = word;
          }
          for (std::size_t i = 0; i < 16; ++i) short_ones.back()[i] = word;
        }
        Words want(kCount), got(kCount);
        CpuOperands in = whole_blocks(operands);
        c.block(in, want.data(), kCount);
        for (std::size_t k = 0; k < operands.size(); ++k) {
          if ((shared >> k & 1U) == 0) continue;
          in.data[k] = short_ones[k].data();
          in.mask[k] = 0;
        }
        c.block(in, got.data(), kCount);
        for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(got[i], want[i]) << c.name() << shared;
      }
    }
  });
}

}  // namespace
}  // namespace tensorgrad
