// SPDX-License-Identifier: MIT
// Results computed by PyTorch: named tensors from a file of this folder.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "support/source_path.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {

class Fixture {
 public:
  explicit Fixture(const std::string& name)
      : file_(read_safetensors(test::source_path("tests/golden/" + name))) {}

  [[nodiscard]] bool has(const std::string& name) const { return file_.tensors.contains(name); }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& [name, tensor] : file_.tensors) all.push_back(name);
    return all;
  }
  [[nodiscard]] const Shape& shape(const std::string& name) const {
    return file_.tensors.at(name).shape;
  }
  [[nodiscard]] DType dtype(const std::string& name) const {
    return file_.tensors.at(name).dtype == "I32" ? i32 : f32;
  }
  template <class T>
  [[nodiscard]] std::vector<T> values(const std::string& name) const {
    const std::vector<std::byte>& data = file_.tensors.at(name).data;
    std::vector<T> values(data.size() / sizeof(T));
    std::memcpy(values.data(), data.data(), data.size());
    return values;
  }
  // Returns the elements of either type.
  [[nodiscard]] std::vector<double> numbers(const std::string& name) const {
    const auto as_double = [](const auto& given) {
      return std::vector<double>(given.begin(), given.end());
    };
    return dtype(name) == i32 ? as_double(values<std::int32_t>(name))
                              : as_double(values<float>(name));
  }
  // Returns the part of `name` for a step.
  template <class T>
  [[nodiscard]] std::vector<T> batch(const std::string& name, std::int64_t step) const {
    const std::vector<T> all = values<T>(name);
    const auto size = static_cast<std::ptrdiff_t>(all.size()) / shape(name).at(0);
    return {all.begin() + step * size, all.begin() + (step + 1) * size};
  }
  // Returns the tensors whose names begin with `prefix`, without the prefix.
  [[nodiscard]] std::map<std::string, HostTensor> all_of(const std::string& prefix) const {
    std::map<std::string, HostTensor> found;
    for (const auto& [name, tensor] : file_.tensors) {
      if (!name.starts_with(prefix)) continue;
      found[name.substr(prefix.size())] = {dtype(name), tensor.shape, tensor.data};
    }
    return found;
  }
  [[nodiscard]] std::map<std::string, HostTensor> parameters() const { return all_of("init/"); }

 private:
  StoredFile file_;
};

// Tolerances of a training. Those of tensors are relative to the largest element.
struct Tolerances {
  double loss, gradient, parameter;
};
inline constexpr Tolerances kOnCpu = {1e-5, 1e-4, 1e-4}, kOnWebGpu = {2e-5, 2e-4, 5e-4};

// `tolerance` is relative to the largest element of `want`.
inline void expect_close(const std::vector<float>& got, const std::vector<float>& want,
                         double tolerance, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  double largest = 0, worst = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(want[i])));
    const double difference = std::abs(static_cast<double>(got[i]) - want[i]);
    worst = difference <= worst ? worst : difference;  // keeps NaN
  }
  EXPECT_LE(worst, tolerance * largest) << what;
}

// Expects `given` to be all tensors of the fixture whose names begin with `prefix`.
inline void expect_tensors(const Fixture& fixture, const std::string& prefix,
                           const std::map<std::string, HostTensor>& given, double tolerance) {
  EXPECT_EQ(given.size(), fixture.all_of(prefix).size());
  for (const auto& [name, tensor] : given) {
    expect_close(tensor.floats(), fixture.values<float>(prefix + name), tolerance, prefix + name);
  }
}

// Returns 1, 1.25 .. 2.5, 1 .. as weights of the elements.
inline Tensor weights_like(Tensor y) {
  const Tensor place = iota({numel(y.shape())}, 0, i32);
  return reshape(1.0 + 0.25 * cast(remainder(place, 7), f32), y.shape());
}

}  // namespace tensorgrad::testing
