// SPDX-License-Identifier: MIT
#include "pictures.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>
#include <utility>
#include <vector>

#include "cli/xml_check.h"
#include "tensorgrad/data/images.h"

namespace tensorgrad::testing {
namespace {

using test::XmlElement;

double number(const XmlElement& element, const std::string& name) {
  return std::stod(element.attributes.at(name));
}

class Svg {
 public:
  explicit Svg(const std::filesystem::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    elements_ = test::XmlReader(text.str()).read();  // throws if it is missing or not XML
    for (const XmlElement& each : elements_) {
      for (const auto& [name, value] : each.attributes)
        EXPECT_TRUE(value.find("nan") == value.npos && value.find("inf") == value.npos)
            << path << ": " << name << "=" << value;
    }
  }

  [[nodiscard]] std::vector<XmlElement> all(const std::string& name) const {
    std::vector<XmlElement> found;
    for (const XmlElement& each : elements_) {
      if (each.name == name) found.push_back(each);
    }
    return found;
  }
  [[nodiscard]] bool says(const std::string& text) const {
    return std::any_of(elements_.begin(), elements_.end(),
                       [&](const XmlElement& each) { return each.text == text; });
  }

  // Returns the rectangles of a size, in drawing order.
  [[nodiscard]] std::vector<XmlElement> squares(double size) const {
    std::vector<XmlElement> found;
    for (const XmlElement& each : all("rect")) {
      if (each.attributes.contains("x") && number(each, "width") == size) found.push_back(each);
    }
    return found;
  }

  using Points = std::vector<std::pair<double, double>>;
  [[nodiscard]] std::vector<Points> curves() const {
    std::vector<Points> found;
    for (const XmlElement& each : all("polyline")) {
      std::istringstream text(each.attributes.at("points"));
      Points& points = found.emplace_back();
      char comma = 0;
      for (double x = 0, y = 0; text >> x >> comma >> y;) points.emplace_back(x, y);
    }
    return found;
  }

 private:
  std::vector<XmlElement> elements_;
};

// Returns the largest distance in pixels of two curves with the same x.
double distance(const Svg::Points& a, const Svg::Points& b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    EXPECT_EQ(a[i].first, b[i].first);
    most = std::max(most, std::abs(a[i].second - b[i].second));
  }
  return most;
}

// Returns the value, from 0 to 1, of a cell between white and #0072b2, which has no red.
double value_of(const XmlElement& cell) {
  return 1 - std::stoi(cell.attributes.at("fill").substr(1, 2), nullptr, 16) / 255.0;
}

// Expects `count` squares in rows of `columns`, whose values add up to 1 in each row.
std::vector<double> expect_probabilities(const Svg& svg, double size, std::size_t count,
                                         std::size_t columns) {
  std::vector<double> values;
  for (const XmlElement& cell : svg.squares(size)) values.push_back(value_of(cell));
  EXPECT_EQ(values.size(), count);
  for (std::size_t first = 0; first + columns <= values.size(); first += columns) {
    double sum = 0;
    for (std::size_t i = first; i < first + columns; ++i) sum += values[i];
    EXPECT_NEAR(sum, 1, 0.5 * static_cast<double>(columns) / 255) << first / columns;  // rounding
  }
  return values;
}

// Curves are drawn from the last to the first.
void mlp_sin(const Svg& svg, bool trained) {
  const auto curves = svg.curves();
  ASSERT_EQ(curves.size(), trained ? 5 : 3);  // the sine, and the network at some steps
  EXPECT_TRUE(svg.says("sin(x)") && svg.says("step 0"));
  EXPECT_EQ(curves[0].size(), 601);
  EXPECT_GT(distance(curves[0], curves.back()), 50);
  if (!trained) return;
  EXPECT_LT(distance(curves[0], curves[1]), 2);
}

void kan(const Svg& svg, bool trained) {
  const auto curves = svg.curves();
  ASSERT_EQ(curves.size(), 10);  // of eight connections, the sine and the network
  for (const char* text : {"x to h1", "x to h4", "h1 to y", "h4 to y", "sin(pi x)", "network"})
    EXPECT_TRUE(svg.says(text)) << text;
  for (const auto& curve : curves) EXPECT_EQ(curve.size(), 201);
  if (!trained) return;
  EXPECT_LT(distance(curves[8], curves[9]), 2);
}

void cartpole(const Svg& svg, bool trained) {
  const auto curves = svg.curves();
  ASSERT_EQ(curves.size(), 3);  // returns, the angle after training, and before it
  EXPECT_TRUE(svg.says("Return") && svg.says("before training") && svg.says("after"));
  if (!trained) return;
  EXPECT_LT(curves[0].back().second, curves[0].front().second - 100);  // y points down
  EXPECT_GT(curves[1].size(), 150);                                    // of 200
  EXPECT_LT(curves[2].size(), 100);                                    // it has fallen
}

// Returns the board cells of the framed moves, by position.
std::vector<int> chosen_moves(const Svg& svg) {
  std::vector<int> moves;
  const auto frames = svg.squares(66);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const std::size_t across = i % 3, down = i / 3;
    const double x = number(frames[i], "x") - (30 + 260 * static_cast<double>(across));
    const double y = number(frames[i], "y") - (45 + 275 * static_cast<double>(down));
    moves.push_back(static_cast<int>(x / 70) + 3 * static_cast<int>(y / 70));
  }
  return moves;
}

void tic_tac_toe(const Svg& svg, bool trained) {
  EXPECT_EQ(svg.squares(70).size(), 6 * 9);
  const std::vector<int> moves = chosen_moves(svg);
  ASSERT_EQ(moves.size(), 6);
  EXPECT_TRUE(svg.says("Block O") && svg.says("Win") && svg.says("+1.00"));
  EXPECT_EQ(moves[4], 2);  // the rules already determine a win
  if (!trained) return;
  EXPECT_EQ(moves[1], 4);  // the only answer that does not lose
  EXPECT_EQ(moves[3], 2);
}

void addition(const Svg& svg, bool /*trained*/) {
  const std::vector<double> weights = expect_probabilities(svg, 22, 3 * 4 * 64, 8);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const bool later = i % 8 > i / 8 % 8;
    EXPECT_TRUE(!later || weights[i] == 0) << "a place looks at a later one";
  }
  EXPECT_TRUE(svg.says("layer 1, head 1") && svg.says("layer 3, head 4"));
}

void makemore(const Svg& svg, bool trained) {
  const std::vector<double> chances = expect_probabilities(svg, 18, std::size_t{27} * 27, 27);
  std::size_t names = 0;
  for (const XmlElement& text : svg.all("text")) {
    const double y = number(text, "y");
    if (number(text, "x") != 590 || y < 90) continue;
    ++names;
    EXPECT_EQ(text.text.find_first_not_of("abcdefghijklmnopqrstuvwxyz"), text.text.npos);
  }
  EXPECT_EQ(names, 20);
  if (!trained) return;
  const auto q = chances.begin() + std::ptrdiff_t{27} * 17;
  EXPECT_EQ(std::max_element(q, q + 27) - q, 21) << "q is not followed by u";
}

void pokeformer(const Svg& svg, bool trained) {
  const auto curves = svg.curves();
  ASSERT_EQ(curves.size(), 1);
  std::size_t names = 0;
  for (const XmlElement& text : svg.all("text"))
    names += number(text, "x") == 600 && number(text, "font-size") == 16 ? 1 : 0;
  EXPECT_EQ(names, 8);
  if (!trained) return;
  EXPECT_GT(curves[0].back().second, curves[0].front().second + 50);  // y points down
}

// The drawing of examples_test.cpp is a seven.
void digit_canvas(const Svg& svg, bool trained) {
  EXPECT_EQ(svg.squares(10).size(), 28 * 28);
  std::vector<double> bars;
  for (const XmlElement& each : svg.all("rect")) {
    if (number(each, "height") == 18) bars.push_back(number(each, "width") / 150);
  }
  ASSERT_EQ(bars.size(), 10);
  EXPECT_NEAR(std::accumulate(bars.begin(), bars.end(), 0.0), 1, 0.01);
  if (!trained) return;
  EXPECT_EQ(std::max_element(bars.begin(), bars.end()) - bars.begin(), 7);
}

}  // namespace

void expect_picture(const std::filesystem::path& folder, const std::string& example, bool trained) {
  using Check = void (*)(const Svg&, bool);
  const std::map<std::string, Check> checks = {
      {"mlp_sin", mlp_sin},       {"kan", kan},
      {"cartpole", cartpole},     {"tic_tac_toe", tic_tac_toe},
      {"addition", addition},     {"makemore", makemore},
      {"pokeformer", pokeformer}, {"digit_canvas", digit_canvas}};
  if (const auto found = checks.find(example); found != checks.end())
    return found->second(Svg(folder / (example + ".svg")), trained);
  for (const auto& each : std::filesystem::directory_iterator(folder)) {
    if (each.path().extension() == ".svg") const Svg readable(each.path());
    if (each.path().extension() == ".png") {
      const Image image = read_image(each.path().string());
      const auto [low, high] = std::minmax_element(image.pixels.begin(), image.pixels.end());
      EXPECT_LT(*low, *high) << each.path() << " is empty";
    }
  }
}

}  // namespace tensorgrad::testing
