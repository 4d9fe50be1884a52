// SPDX-License-Identifier: MIT
// f32 matrix products: ours per launch, and OpenBLAS, oneDNN and Eigen if they are installed.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <tensorgrad/tensorgrad.h>

#include "workloads.h"

#ifdef TENSORGRAD_BENCH_EIGEN
#include "eigen_gemm.h"
#endif
#ifdef TENSORGRAD_BENCH_OPENBLAS
#include <cblas.h>
#endif
#ifdef TENSORGRAD_BENCH_ONEDNN
#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>
#endif

namespace tensorgrad::bench {
namespace {

struct Size {
  std::int64_t m, n, k;
};

constexpr Size kSizes[] = {{64, 64, 64},       {128, 128, 128}, {256, 256, 256}, {512, 512, 512},
                           {1024, 1024, 1024}, {128, 256, 784}, {256, 784, 128}};

std::vector<float> filled(std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
  return values;
}

std::string text_of(const Size& s) {
  return std::to_string(s.m) + "x" + std::to_string(s.n) + "x" + std::to_string(s.k);
}

double flop(const Size& s) {
  return 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
}

void report(const char* who, const Size& s, int threads, double us) {
  print_line({{"workload", text("gemm")},
              {"size", text(text_of(s))},
              {"who", text(who)},
              {"threads", std::to_string(threads)},
              {"us", number(us)},
              {"gflops", number(flop(s) / us * 1e-3)}});
}

struct Product {
  Product(const Shape& of_a, const Shape& of_b)
      : a(of_a, init::uniform(-1, 1)), b(of_b, init::uniform(-1, 1)) {}
  Parameter a, b;
  TG_MODULE(a, b)
};

struct Layer {
  explicit Layer(const Size& s)
      : product({s.m, s.k}, {s.k, s.n}), bias({s.n}, init::uniform(-1, 1)) {}
  Product product;
  Parameter bias;
  TG_MODULE(product, bias)
};

#ifdef TENSORGRAD_BENCH_ONEDNN
std::string name_of_onednn() {
  const dnnl_version_t& v = *dnnl_version();
  return "oneDNN " + std::to_string(v.major) + "." + std::to_string(v.minor) + "." +
         std::to_string(v.patch);
}

// Debian's build uses OpenMP, whose library is loaded with it.
bool set_openmp_threads(int threads) {
  const auto set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (set != nullptr) set(threads);
  return set != nullptr;
}
#endif

// Times the launch only, because the peers receive their operands in place too. `epilogue` adds a
// bias and relu.
double ours(const Options& options, const Size& s, int threads, bool epilogue) {
  auto product = compile_function(Layer(s),
                                  [=](const Layer& l, const Inputs&) {
                                    const Tensor y = matmul(l.product.a, l.product.b);
                                    return epilogue ? relu(y + l.bias) : y;
                                  },
                                  {.device = {.kind = "cpu", .threads = threads}});
  const double warm = product.profile({}, {.steps = 5}).microseconds();
  const double steps = std::clamp(options.seconds / 4 * 1e6 / warm, 5.0, 5000.0);
  return product.profile({}, {.steps = static_cast<int>(steps)}).microseconds();
}

constexpr Size kGpuSizes[] = {{1024, 384, 128},   {4096, 4096, 4096}, {16384, 384, 384},
                              {16384, 1152, 384}, {16384, 384, 1536}, {16384, 1536, 384}};

// Times one product as its own program. In a program with others, small products are joined into
// one kernel and have no times of their own. A split-K product is two launches, whose times are
// added.
void gpu_product(const Options& options, const Size& s, const char* name, const Shape& of_a,
                 const Shape& of_b, Tensor (*multiplied)(const Tensor& a, const Tensor& b)) {
  const DType dtype = options.mixed ? f16 : f32;
  auto product = compile_function([=](const Inputs& in) { return multiplied(in["a"], in["b"]); },
                                  {.inputs = {{"a", of_a, dtype}, {"b", of_b, dtype}},
                                   .device = {.kind = "webgpu",
                                              .allow_software = options.allow_software,
                                              .tuning_cache = options.tuning_cache,
                                              .matmul_precision = options.precision()}});
  const std::vector<float> a = filled(numel(of_a)), b = filled(numel(of_b));
  // Long enough for the GPU to raise its clocks.
  const auto measured = [&](int steps) {
    return product.profile({{"a", a}, {"b", b}}, {.steps = steps}).microseconds();
  };
  const double steps = options.seconds * 1e6 / measured(9);
  measured(static_cast<int>(std::clamp(steps, 9.0, 2000.0)));
  const double us = measured(static_cast<int>(std::clamp(steps, 9.0, 2000.0)));
  Fields fields = {{"workload", text("gemm")},
                   {"size", text(text_of(s))},
                   {"product", text(name)},
                   {"dtype", text(std::string(to_string(dtype)))},
                   {"who", text("tensorgrad")}};
  append(fields, described_device(product.device()));
  append(fields, {{"us", number(us)}, {"gflops", number(flop(s) / us * 1e-3)}});
  print_line(fields);
}

// Times the products of a linear layer and its gradients: y = x w^T with x [m, k] and w [n, k].
void gpu_products(const Options& options, const Size& s) {
  const Shape x = {s.m, s.k}, w = {s.n, s.k}, dy = {s.m, s.n};
  gpu_product(options, s, "x w^T", x, w,
              [](const Tensor& a, const Tensor& b) { return matmul(a, transpose(b)); });
  gpu_product(options, s, "dy w", dy, w,
              [](const Tensor& a, const Tensor& b) { return matmul(a, b); });
  gpu_product(options, s, "dy^T x", dy, x,
              [](const Tensor& a, const Tensor& b) { return matmul(transpose(a), b); });
}

}  // namespace

void gemm_on_gpu(const Options& options) {
  for (const Size& s : kGpuSizes) gpu_products(options, s);
}

void gemm(const Options& options) {
  for (const Size& s : kSizes) {
    const std::vector<float> a = filled(s.m * s.k), b = filled(s.k * s.n);
    std::vector<float> c(static_cast<std::size_t>(s.m * s.n));
    for (const int threads : {1, 2}) {
      report("tensorgrad", s, threads, ours(options, s, threads, false));
      report("tensorgrad with bias and relu", s, threads, ours(options, s, threads, true));
#ifdef TENSORGRAD_BENCH_OPENBLAS
      openblas_set_num_threads(threads);
      report("OpenBLAS", s, threads, median_microseconds(options.seconds / 4, 1, [&] {
               const auto m = static_cast<int>(s.m), n = static_cast<int>(s.n),
                          k = static_cast<int>(s.k);
               cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, a.data(), k,
                           b.data(), n, 0, c.data(), n);
             }));
#endif
#ifdef TENSORGRAD_BENCH_ONEDNN
      if (set_openmp_threads(threads)) {
        report(name_of_onednn().c_str(), s, threads,
               median_microseconds(options.seconds / 4, 1, [&] {
                 dnnl_sgemm('N', 'N', s.m, s.n, s.k, 1, a.data(), s.k, b.data(), s.n, 0, c.data(),
                            s.n);
               }));
      }
#endif
    }
#ifdef TENSORGRAD_BENCH_EIGEN
    report("Eigen", s, 1, median_microseconds(options.seconds / 4, 1, [&] {
             eigen_gemm(s.m, s.n, s.k, a.data(), b.data(), c.data());
           }));
#endif
  }
}

}  // namespace tensorgrad::bench
