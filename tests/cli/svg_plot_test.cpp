// SPDX-License-Identifier: MIT
// SVG plots: well-formed, all shapes inside the viewport, the right texts.
#include "plot/svg_plot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <sstream>
#include <stdexcept>

#include "plot/svg_text.h"
#include "support/decimal_comma.h"
#include "xml_check.h"

namespace tensorgrad::cli {
namespace {

using test::XmlElement;
using test::XmlReader;
using Elements = std::vector<XmlElement>;

double number(const XmlElement& element, const std::string& name) {
  return std::stod(element.attributes.at(name));
}

// Parses the SVG and checks that every shape is inside the viewport.
Elements checked(const std::string& svg) {
  Elements elements = XmlReader(svg).read();
  const double width = number(elements.at(0), "width");
  const double height = number(elements.at(0), "height");
  const auto inside = [&](double x, double y) {
    EXPECT_TRUE(x >= 0 && x <= width && y >= 0 && y <= height) << x << "," << y;
  };
  for (const XmlElement& e : elements) {
    if (e.name == "polyline") {
      std::istringstream points(e.attributes.at("points"));
      double x = 0;
      double y = 0;
      char comma = 0;
      while (points >> x >> comma >> y) inside(x, y);
      EXPECT_TRUE(points.eof());
    } else if (e.name == "circle") {
      inside(number(e, "cx"), number(e, "cy"));
    } else if (e.name == "text") {
      inside(number(e, "x"), number(e, "y"));
    } else if (e.name == "rect" && e.attributes.contains("x")) {
      inside(number(e, "x"), number(e, "y"));
      inside(number(e, "x") + number(e, "width"), number(e, "y") + number(e, "height"));
    }
    for (const auto& [name, value] : e.attributes) {
      EXPECT_EQ(value.find("nan"), std::string::npos) << name << "=" << value;
      EXPECT_EQ(value.find("inf"), std::string::npos) << name << "=" << value;
    }
  }
  return elements;
}

int count_of(const Elements& elements, const std::string& name) {
  return static_cast<int>(std::count_if(elements.begin(), elements.end(),
                                        [&](const XmlElement& e) { return e.name == name; }));
}

bool has_text(const Elements& elements, const std::string& text) {
  return std::any_of(elements.begin(), elements.end(),
                     [&](const XmlElement& e) { return e.name == "text" && e.text == text; });
}

TEST(CurvesSvg, draws_lines_marks_and_legend) {
  const Curve loss{"loss", {0, 1, 2, 3}, {2, 1, 0.5, 0.25}};
  const Curve accuracy{"test", {1, 2, 3}, {0.8, 0.85, 0.88125}, false, true};
  const std::string svg = curves_svg(
      "run <1> & \"2\"", {{"Loss", "epoch", {loss}}, {"Accuracy", "epoch", {accuracy}, true}});
  const Elements elements = checked(svg);
  EXPECT_EQ(count_of(elements, "polyline"), 2);
  EXPECT_EQ(count_of(elements, "circle"), 3);
  EXPECT_TRUE(has_text(elements, "run <1> & \"2\""));
  EXPECT_TRUE(has_text(elements, "loss, last 0.25"));
  EXPECT_TRUE(has_text(elements, "test, last 88.12%") || has_text(elements, "test, last 88.13%"));
  EXPECT_TRUE(has_text(elements, "80%"));
  EXPECT_EQ(elements.at(2).attributes.at("fill"), "#ffffff");
}

TEST(CurvesSvg, a_name_has_one_colour_in_all_panels) {
  const Curve training{"training", {0, 1}, {2, 1}}, test{"test", {0, 1}, {3, 2}};
  std::vector<std::string> colours;
  for (const XmlElement& e :
       checked(curves_svg("t", {{"", "x", {training, test}}, {"", "x", {test}}}))) {
    if (e.name == "polyline") colours.push_back(e.attributes.at("stroke"));
  }
  ASSERT_EQ(colours.size(), 3U);
  EXPECT_NE(colours[0], colours[1]);
  EXPECT_EQ(colours[1], colours[2]);
}

TEST(CurvesSvg, legends_name_all_curves_and_dashes_tell_equal_colours_apart) {
  std::vector<Curve> curves;
  for (int i = 0; i < 21; ++i) {
    const double y = i;
    curves.push_back({"run of many, " + std::to_string(100 + i), {0, 1}, {y, y + 1}});
  }
  const Elements elements = checked(curves_svg("t", {{"p", "x", curves}, {"q", "x", {curves[0]}}}));
  std::set<std::string> styles;
  for (const XmlElement& e : elements) {
    if (e.name != "polyline") continue;
    const auto dashes = e.attributes.find("stroke-dasharray");
    styles.insert(e.attributes.at("stroke") + (dashes == e.attributes.end() ? "" : dashes->second));
  }
  EXPECT_EQ(styles.size(), 21U);
  double lowest = 0, last = 0;
  for (int i = 0; i < 21; ++i) {
    const std::string name = curves[static_cast<std::size_t>(i)].name;
    const auto is_entry = [&](const XmlElement& e) {
      return e.name == "text" && e.text.starts_with(shortened(name, 24) + ", last ");
    };
    const auto entry = std::find_if(elements.begin(), elements.end(), is_entry);
    ASSERT_NE(entry, elements.end()) << name;
    const double x = number(*entry, "x"), y = number(*entry, "y");
    EXPECT_TRUE(y > lowest || (y == lowest && x > last + 100)) << "after the others: " << name;
    lowest = y;
    last = x;
  }
  for (const XmlElement& e : elements) {
    if (e.name != "polyline") continue;
    const std::string& points = e.attributes.at("points");
    EXPECT_GT(std::stod(points.substr(points.rfind(',') + 1)), lowest) << "below the legend";
  }
}

TEST(CurvesSvg, labels_of_ticks_have_equal_and_sensible_precision) {
  const Elements elements =
      checked(curves_svg("t", {{"", "epoch", {{"loss", {1, 2, 3}, {1, 0.5, 0.1}}}},
                               {"", "epoch", {{"test", {1, 2, 3}, {0.8, 0.8, 0.8}}}, true}}));
  for (const char* text : {"0.0", "0.2", "1.0", "100%", "0", "1", "3"}) {
    EXPECT_TRUE(has_text(elements, text)) << text;
  }
  for (const char* text : {"0.5", "1.5", "120%"}) EXPECT_FALSE(has_text(elements, text)) << text;
}

TEST(CurvesSvg, legend_of_smoothed_curves_has_raw_values) {
  Curve loss{"loss", {}, {}, true};
  for (int i = 0; i < 60; ++i) {
    loss.x.push_back(i);
    loss.y.push_back(i % 2);
  }
  EXPECT_TRUE(has_text(checked(curves_svg("t", {{"", "x", {loss}}})), "raw values"));
  loss.x.resize(40);
  loss.y.resize(40);
  const Elements few = checked(curves_svg("t", {{"", "x", {loss}}}));
  EXPECT_FALSE(has_text(few, "raw values"));
  EXPECT_TRUE(has_text(few, "loss, last 1"));  // shown as drawn
}

TEST(CurvesSvg, values_are_drawn_at_their_ticks) {
  const Elements elements = checked(curves_svg("t", {{"", "x", {{"c", {0, 10}, {0, 100}}}}}));
  double y_of_tick = -1;
  for (const XmlElement& e : elements) {
    if (e.name == "text" && e.text == "100") y_of_tick = number(e, "y");
  }
  for (const XmlElement& e : elements) {
    if (e.name != "polyline") continue;
    const std::string& points = e.attributes.at("points");
    EXPECT_NEAR(std::stod(points.substr(points.rfind(',') + 1)), y_of_tick - 4, 0.02);
  }
}

TEST(CurvesSvg, values_that_are_not_finite_leave_gaps) {
  const double nan = std::nan("");
  const double inf = std::numeric_limits<double>::infinity();
  const Elements elements = checked(
      curves_svg("t", {{"", "x", {{"c", {0, 1, 2, 3, 4, 5, 6}, {1, 2, nan, 3, inf, 1e300, 4}}}}}));
  EXPECT_EQ(count_of(elements, "polyline"), 1);  // 0 to 1
  EXPECT_EQ(count_of(elements, "circle"), 2);    // 3 and 6, which have no neighbors
}

TEST(CurvesSvg, empty_and_flat_curves_are_fine) {
  for (const Curve& curve :
       {Curve{"none", {}, {}}, Curve{"one", {5}, {-3}}, Curve{"flat", {1, 2}, {0, 0}},
        Curve{"huge", {1, 2}, {1e149, -1e149}}, Curve{"tiny", {0, 1e-300}, {1, 1 + 1e-15}},
        Curve{"nan", {1}, {std::nan("")}}}) {
    for (const bool percent : {false, true}) {
      checked(curves_svg("t", {{"p", "x", {curve}, percent}}));
    }
  }
  EXPECT_THROW(curves_svg("t", {}), std::invalid_argument);
  EXPECT_THROW(curves_svg("t", {{"p", "x", {{"c", {1, 2}, {1}}}}}), std::invalid_argument);
}

TEST(CurvesSvg, long_curves_are_thinned_but_keep_their_extremes) {
  Curve curve{"loss", {}, {}, true};
  for (int i = 0; i < 200'000; ++i) {
    curve.x.push_back(i);
    curve.y.push_back(1 + 0.1 * std::sin(i * 12.9898));
  }
  curve.y[123'456] = 9;
  const std::string svg = curves_svg("t", {{"p", "step", {curve}}});
  EXPECT_LT(svg.size(), 100'000U);
  const Elements elements = checked(svg);
  EXPECT_EQ(count_of(elements, "polyline"), 2);  // pale and strong
  double least = 1e9;
  for (const XmlElement& e : elements) {
    if (e.name != "polyline") continue;
    std::istringstream points(e.attributes.at("points"));
    double x = 0;
    double y = 0;
    char comma = 0;
    while (points >> x >> comma >> y) least = std::min(least, y);
  }
  EXPECT_LT(least, 125);  // the panel begins at 92
}

TEST(ConfusionSvg, shows_counts_names_and_accuracy) {
  const ConfusionPlot matrix{"cats", {"cat", "d<o>g"}, {8, 2, 0, 10}};
  const Elements elements = checked(confusion_svg(matrix));
  EXPECT_TRUE(has_text(elements, "cats: accuracy 90.00%"));
  EXPECT_TRUE(has_text(elements, "18 of 20 correct; color: fraction of the true class"));
  for (const char* text : {"8", "2", "10", "cat", "d<o>g", "true class", "predicted class"}) {
    EXPECT_TRUE(has_text(elements, text)) << text;
  }
  EXPECT_FALSE(has_text(elements, "0"));
}

TEST(ConfusionSvg, colour_is_the_share_of_the_row) {
  const std::string svg = confusion_svg({"", {"a", "b"}, {1, 0, 500, 500}});
  EXPECT_NE(svg.find("fill=\"#08306b\""), std::string::npos);  // the whole of row a
  const Elements elements = checked(svg);
  std::vector<std::string> fills;
  for (const XmlElement& e : elements) {
    if (e.name == "rect" && e.attributes.contains("x") && number(e, "width") > 60) {
      fills.push_back(e.attributes.at("fill"));
    }
  }
  ASSERT_EQ(fills.size(), 3U);
  EXPECT_EQ(fills[1], fills[2]);
}

TEST(ConfusionSvg, works_for_one_and_for_many_classes) {
  EXPECT_TRUE(has_text(checked(confusion_svg({"", {"only"}, {0}})), "no data"));
  ConfusionPlot many{"many", {}, {}};
  for (int i = 0; i < 300; ++i) many.class_names.push_back("class number " + std::to_string(i));
  many.counts.assign(std::size_t{300} * 300, 1);
  checked(confusion_svg(many));
  EXPECT_THROW(confusion_svg({"", {}, {}}), std::invalid_argument);
  EXPECT_THROW(confusion_svg({"", {"a", "b"}, {1, 2, 3}}), std::invalid_argument);
  EXPECT_THROW(confusion_svg({"", {"a"}, {-1}}), std::invalid_argument);
}

TEST(SvgText, escapes_whatever_a_name_may_hold) {
  EXPECT_EQ(xml_escaped("<a & 'b' \"c\">"), "&lt;a &amp; &#39;b&#39; &quot;c&quot;&gt;");
  EXPECT_EQ(xml_escaped("\xc3\xa4\xe2\x82\xac"), "\xc3\xa4\xe2\x82\xac");
  EXPECT_EQ(xml_escaped("a\x01\n\x7f\xff\xc3"), "a?????");
  EXPECT_EQ(xml_escaped("\xef\xbf\xbf\xed\xa0\x80"), "??????");
  EXPECT_EQ(shortened("\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4", 5).size(), 10U);
  EXPECT_EQ(shortened("\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4", 5),
            "\xc3\xa4\xc3\xa4...");
}

TEST(SvgText, ticks_are_round_numbers_inside) {
  EXPECT_EQ(nice_ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  const std::vector<double> shares = nice_ticks(0.82, 0.89, 4);
  ASSERT_EQ(shares.size(), 4U);
  EXPECT_DOUBLE_EQ(shares[0], 0.82);
  EXPECT_DOUBLE_EQ(shares[3], 0.88);
  EXPECT_EQ(nice_ticks(-1, 1, 4).size(), 5U);
  EXPECT_EQ(nice_ticks(3, 3, 4), std::vector<double>{3});
  EXPECT_EQ(short_number(60'000), "60k");
  EXPECT_EQ(short_number(0.25), "0.25");
  EXPECT_EQ(short_number(0.000'001), "1e-06");
  EXPECT_EQ(coordinate(-0.001), "0");
}

TEST(CurvesSvg, is_the_same_with_a_decimal_comma) {
  const auto curves = [] {
    return curves_svg("run 12345",
                      {{"loss", "step", {{"a", {0, 1234.5, 20000}, {0.25, 1e-4, 7.5}}}},
                       {"accuracy", "step", {{"b", {1, 2}, {0.125, 0.875}}}, true}});
  };
  const auto confusion = [] {
    return confusion_svg(
        {.title = "digits", .class_names = {"a", "b"}, .counts = {12345, 1, 3, 67890}});
  };
  const std::string plain_curves = curves(), plain_confusion = confusion();
  const test::DecimalComma comma;
  EXPECT_EQ(curves(), plain_curves);
  EXPECT_EQ(confusion(), plain_confusion);
}

}  // namespace
}  // namespace tensorgrad::cli
