// SPDX-License-Identifier: MIT
// Metrics against scikit-learn and learning-rate searches against numpy (make_metric_fixtures.py).
#include "golden/fixture.h"

namespace tensorgrad::testing {
namespace {

void expect_near(const std::vector<double>& got, const std::vector<float>& want, double tolerance,
                 const std::string& name) {
  ASSERT_EQ(got.size(), want.size()) << name;
  for (std::size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(std::isnan(got[i]), std::isnan(want[i])) << name << i;
    if (std::isnan(want[i])) continue;
    EXPECT_NEAR(got[i], want[i], tolerance * std::max(1e-6F, std::abs(want[i]))) << name << i;
  }
}

TEST(MetricsGolden, classification_matches_scikit_learn) {
  const Fixture fixture("metrics.safetensors");
  for (const std::string prefix : {"0/", "1/"}) {
    const auto labels = fixture.values<std::int32_t>(prefix + "labels");
    const auto scores = fixture.values<float>(prefix + "scores");
    const std::int64_t classes = fixture.shape(prefix + "scores").at(1);
    // In two batches of different sizes.
    ConfusionMatrix matrix(classes);
    const std::size_t cut = labels.size() / 3;
    const auto columns = static_cast<std::size_t>(classes);
    matrix.add(std::span(labels).first(cut), std::span(scores).first(cut * columns));
    matrix.add(std::span(labels).subspan(cut), std::span(scores).subspan(cut * columns));
    EXPECT_EQ(matrix.total(), static_cast<std::int64_t>(labels.size()));
    const auto counts = fixture.values<std::int32_t>(prefix + "counts");
    EXPECT_EQ(matrix.counts(), std::vector<std::int64_t>(counts.begin(), counts.end())) << prefix;
    std::vector<double> precision, recall, f1;
    for (std::int64_t c = 0; c < classes; ++c) {
      precision.push_back(matrix.precision(c));
      recall.push_back(matrix.recall(c));
      f1.push_back(matrix.f1(c));
    }
    const auto near = [&](const std::vector<double>& got, const char* name) {
      expect_near(got, fixture.values<float>(prefix + name), 1e-6, prefix + name);
    };
    near(precision, "precision");
    near(recall, "recall");
    near(f1, "f1");
    near({matrix.accuracy()}, "accuracy");
    near({matrix.macro_f1()}, "macro_f1");
  }
}

struct Parabola {
  Parameter w{{1}, init::constant(3)};
  TG_MODULE(w)
};

TEST(MetricsGolden, learning_rate_searches_match_numpy) {
  const Fixture fixture("metrics.safetensors");
  const LearningRateOptions searches[] = {
      {}, {.first = 1e-3, .last = 1, .updates = 20, .smoothing = 0, .divergence = 2}};
  for (std::size_t i = 0; i < 2; ++i) {
    auto trainer =
        compile(Parabola{}, [](const Parabola& m, const Inputs&) { return sum(m.w * m.w); },
                {.inputs = {}, .optimizer = optim::SGD(), .device = {.kind = "cpu"}});
    const LearningRateCurve curve =
        find_learning_rate(trainer, [&] { return trainer.step().loss; }, searches[i]);
    const auto near = [&](const std::vector<double>& got, const char* name) {
      const std::string path = "search/" + std::to_string(i) + "/" + name;
      expect_near(got, fixture.values<float>(path), 1e-3, path);
    };
    near(curve.rates, "rates");
    near(curve.losses, "losses");
    near(curve.smoothed, "smoothed");
    near({curve.suggested}, "suggested");
  }
}

}  // namespace
}  // namespace tensorgrad::testing
