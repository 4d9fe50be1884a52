// SPDX-License-Identifier: MIT
// A profile as one page: timeline of launches, roofline, sortable tables, timeline of passes.
#include <algorithm>
#include <cmath>

#include "base/numbers.h"
#include "compile/debug/dump.h"
#include "compile/debug/profile.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr const char* kProfileHead = R"(<style>
body { font: 13px/1.4 sans-serif; margin: 0 auto; max-width: 78em; padding: 0 1em 4em; color: #212529 }
h1 { font-size: 1.3em } h2 { font-size: 1.1em; margin: 1.6em 0 .4em }
svg { width: 100%; height: auto; background: #f8f9fa } svg text { font: 11px sans-serif }
table { border-collapse: collapse; width: 100% } td, th { padding: .15em .5em; text-align: right }
th { cursor: pointer; background: #e9ecef } tr:nth-child(even) td { background: #f8f9fa }
td.t, th.t { text-align: left; overflow-wrap: anywhere } td small { color: #495057 }
.map { fill: #868e96 } .row { fill: #2f9e44 } .contraction { fill: #1971c2 } .scatter { fill: #e8590c }
.scan { fill: #9c36b5 } .sort { fill: #f08c00 } .attention { fill: #0c8599 } .selective_scan { fill: #66a80f } .custom { fill: #c2255c }
.pass { fill: #495057 }
rect.box, circle { stroke: #fff; stroke-width: .5 }
i { display: inline-block; height: .7em; background: #1971c2 } i.roof { background: #2f9e44 }
</style></head><body>
)";

// Clicking a header sorts by that column: numbers in descending order, names alphabetically.
constexpr const char* kSort = R"(<script>
for (const head of document.querySelectorAll("th")) head.addEventListener("click", () => {
  const at = head.cellIndex, body = head.closest("table").tBodies[0];
  const key = row => row.cells[at].dataset.v;
  const rows = [...body.rows].sort((a, b) => isNaN(key(a)) ? key(a).localeCompare(key(b))
    : at === 0 ? key(a) - key(b) : key(b) - key(a));
  body.append(...rows);
});
</script>
)";

std::string line_text(const SourceLocation& location) {
  std::string text = to_string(location);
  return xml_text(text.erase(0, text.find_last_of("/\\") + 1));
}

std::string tip(const Profile& profile, std::size_t i) {
  const LaunchProfile& launch = profile.launches[i];
  std::string text = std::to_string(i) + " " + xml_text(launch.name) + "\n" + launch.kind + " " +
                     launch.domain + format_text("\n%.1f us, ", launch.microseconds) +
                     bytes_text(launch.bytes);
  const double share = profile.roofline_share(launch);
  if (share > 0) text += format_text("\n%.1f %% of the roofline", 100 * share);
  for (const SourceLocation& location : launch.locations) text += "\nat " + line_text(location);
  return "<title>" + text + "</title>";
}

// Returns the smallest number >= `least` that is 1, 2 or 5 times a power of ten.
double round_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least) return factor * power;
  }
  return 10 * power;
}

// A bar of a timeline; `tip` is its <title>.
struct TimeBar {
  std::string kind, name, tip;
  double begin = 0, length = 0;
};

std::string time_axis(double all, const char* unit, double width, double bottom) {
  std::string text;
  const double step = round_step(all / 8);
  for (int tick = 0; tick * step <= all; ++tick) {
    const double x = tick * step / all * width;
    text += format_text(
        "<line x1=\"%.1f\" y1=\"12\" x2=\"%.1f\" y2=\"%.0f\" stroke=\"#adb5bd\"/>"
        "<text x=\"%.1f\" y=\"11\" text-anchor=\"%s\">%g %s</text>\n",
        x, x, bottom, x,
        tick == 0        ? "start"
        : x > width - 40 ? "end"
                         : "middle",
        tick * step, unit);
  }
  return text;
}

// Draws the bars in order on an axis from 0 to `all`, with widths proportional to their times. A
// bar that is too thin becomes a line taller than the bars, whose end is visible below them.
std::string time_bars(const std::vector<TimeBar>& bars, double all, const char* unit) {
  constexpr double kWidth = 1000, kAbove = 18, kHeight = 46, kBelow = 8, kCharacter = 6.2;
  constexpr double kThin = 1;
  std::string text =
      format_text("<svg viewBox=\"0 0 %.0f %.0f\">\n", kWidth, kAbove + kHeight + kBelow) +
      time_axis(all, unit, kWidth, kAbove);
  for (const TimeBar& bar : bars) {
    const double true_width = bar.length / all * kWidth;
    const bool thin = true_width < kThin;
    const double wide = thin ? kThin : true_width;
    const double x = std::min(bar.begin / all * kWidth, kWidth - wide);
    text += "<g><rect class=\"" + std::string(thin ? "" : "box ") + bar.kind +
            format_text("\" x=\"%.3f\" y=\"%.0f\" width=\"%.3f\" height=\"%.0f\"/>", x, kAbove,
                        wide, thin ? kHeight + kBelow : kHeight);
    const auto letters = static_cast<std::size_t>(wide / kCharacter);
    if (letters >= 5) {
      text += format_text("<text x=\"%.1f\" y=\"%.0f\" fill=\"#fff\">", x + 3,
                          kAbove + kHeight / 2 + 4) +
              xml_text(bar.name.substr(0, letters - 1)) + "</text>";
    }
    text += bar.tip + "</g>\n";
  }
  return text + "</svg>\n";
}

std::string launch_timeline(const Profile& profile) {
  const double all = profile.microseconds();
  const std::string head = format_text("<h2>One step, launch by launch: %.1f us</h2>\n", all);
  if (all <= 0) return head + "<p>This device reports no times.</p>\n";
  std::vector<TimeBar> bars;
  double begin = 0;
  for (std::size_t i = 0; i < profile.launches.size(); ++i) {
    const LaunchProfile& launch = profile.launches[i];
    bars.push_back({launch.kind, launch.name, tip(profile, i), begin, launch.microseconds});
    begin += launch.microseconds;
  }
  return head + time_bars(bars, all, "us");
}

// Returns the timeline from the start of the compilation to the end of the last pass.
std::string pass_timeline(const std::vector<PassProfile>& passes) {
  std::vector<TimeBar> bars;
  double end = 0;
  for (const PassProfile& pass : passes) {
    bars.push_back(
        {"pass", pass.name,
         "<title>" + xml_text(pass.name) + format_text("\n%.3f ms", pass.milliseconds) + "</title>",
         pass.begin, pass.milliseconds});
    end = std::max(end, pass.begin + pass.milliseconds);
  }
  return end > 0 ? time_bars(bars, end, "ms") : "";
}

// Operations per byte against operations per second, both on logarithmic axes.
class Roofline {
 public:
  explicit Roofline(const Profile& profile) : profile_(profile) {
    const DevicePeaks& peaks = profile.peaks;
    knee_ = peaks.flops_per_second / peaks.bytes_per_second;
    for (const LaunchProfile& launch : profile.launches) {
      if (!drawn(launch)) continue;
      grow(intensity(launch), speed(launch));
    }
    grow(knee_ * 4, peaks.flops_per_second);
    grow(knee_ / 16, peaks.flops_per_second / 16);
  }

  [[nodiscard]] std::string svg() const {
    std::string text = format_text("<svg viewBox=\"0 0 %.0f %.0f\">\n", kWide, kHigh);
    for (int p = static_cast<int>(std::ceil(left_)); p <= right_; ++p) {
      text += format_text(
          "<line x1=\"%.1f\" y1=\"4\" x2=\"%.1f\" y2=\"%.0f\" stroke=\"#dee2e6\"/>"
          "<text x=\"%.1f\" y=\"%.0f\" text-anchor=\"middle\">%g</text>\n",
          x(p), x(p), kHigh - kEdge, x(p), kHigh - kEdge + 14, std::pow(10, p));
    }
    for (int p = static_cast<int>(std::ceil(low_)); p <= high_; ++p) {
      text += format_text(
          "<line x1=\"%.0f\" y1=\"%.1f\" x2=\"%.0f\" y2=\"%.1f\" stroke=\"#dee2e6\"/>"
          "<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
          kEdge, y(p), kWide, y(p), kEdge - 4, y(p) + 4, std::pow(10, p - 9));
    }
    const double flops = std::log10(profile_.peaks.flops_per_second);
    const double bytes = std::log10(profile_.peaks.bytes_per_second);
    text += format_text(
        "<polyline fill=\"none\" stroke=\"#e03131\" points=\"%.1f,%.1f %.1f,%.1f %.1f,%.1f\"/>\n",
        x(left_), y(bytes + left_), x(std::log10(knee_)), y(flops), x(right_), y(flops));
    text += format_text(
        "<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"end\">operations per byte</text>"
        "<text x=\"%.0f\" y=\"14\">GFLOP/s</text>\n",
        kWide - 4, kHigh - 4, kEdge + 4);
    const double all = profile_.microseconds();
    for (std::size_t i = 0; i < profile_.launches.size(); ++i) {
      const LaunchProfile& launch = profile_.launches[i];
      if (!drawn(launch)) continue;
      text += format_text(
                  "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill-opacity=\".7\">",
                  launch.kind.c_str(), x(std::log10(intensity(launch))),
                  y(std::log10(speed(launch))), 3 + 20 * std::sqrt(launch.microseconds / all)) +
              tip(profile_, i) + "</circle>\n";
    }
    return text + "</svg>\n";
  }

 private:
  static constexpr double kWide = 1000, kHigh = 360, kEdge = 52;

  static bool drawn(const LaunchProfile& launch) {
    return launch.flops > 0 && launch.bytes > 0 && launch.microseconds > 0;
  }
  static double intensity(const LaunchProfile& launch) {
    return static_cast<double>(launch.flops) / static_cast<double>(launch.bytes);
  }
  static double speed(const LaunchProfile& launch) {
    return static_cast<double>(launch.flops) / launch.microseconds * 1e6;
  }
  void grow(double intensity, double speed) {
    left_ = std::min(left_, std::log10(intensity) - 0.2);
    right_ = std::max(right_, std::log10(intensity) + 0.2);
    low_ = std::min(low_, std::log10(speed) - 0.2);
    high_ = std::max(high_, std::log10(speed) + 0.2);
  }
  [[nodiscard]] double x(double power) const {
    return kEdge + (power - left_) / (right_ - left_) * (kWide - kEdge);
  }
  [[nodiscard]] double y(double power) const {
    return 4 + (high_ - power) / (high_ - low_) * (kHigh - kEdge - 4);
  }

  const Profile& profile_;
  double knee_ = 1;
  double left_ = 1e9, right_ = -1e9, low_ = 1e9, high_ = -1e9;
};

std::string number_cell(double value, const std::string& shown) {
  return format_text("<td data-v=\"%.9g\">", value) + shown + "</td>";
}

std::string bar(const char* kind, double share) {
  return format_text(" <i class=\"%s\" style=\"width:%.0fpx\"></i>", kind,
                     60 * std::clamp(share, 0.0, 1.0));
}

std::string launch_row(const Profile& profile, std::size_t i, double all) {
  const LaunchProfile& launch = profile.launches[i];
  const double us = launch.microseconds, share = all > 0 ? us / all : 0;
  const double roof = profile.roofline_share(launch);
  const auto rate = [&](std::int64_t count) {
    return us > 0 ? static_cast<double>(count) / us / 1e3 : 0;
  };
  std::string text = "<tr>" + number_cell(static_cast<double>(i), std::to_string(i)) +
                     "<td class=\"t\" data-v=\"" + xml_text(launch.name) + "\"><details><summary>" +
                     xml_text(launch.name) + " <small>" + launch.kind + " " + launch.domain +
                     "</small></summary>";
  for (const std::string& op : launch.ops) text += "<div><code>" + xml_text(op) + "</code></div>";
  for (const SourceLocation& location : launch.locations)
    text += "<div>at " + xml_text(to_string(location)) + "</div>";
  const std::string at = launch.locations.empty() ? "" : line_text(launch.locations.front());
  text += "</details></td><td class=\"t\" data-v=\"" + at + "\">" + at + "</td>" +
          number_cell(us, format_text("%.1f", us)) +
          number_cell(share, format_text("%.1f %%", 100 * share) + bar("time", share)) +
          number_cell(static_cast<double>(launch.bytes), bytes_text(launch.bytes)) +
          number_cell(rate(launch.bytes), format_text("%.2f", rate(launch.bytes))) +
          number_cell(static_cast<double>(launch.flops),
                      launch.flops > 0 ? std::to_string(launch.flops) : "") +
          number_cell(rate(launch.flops),
                      launch.flops > 0 ? format_text("%.2f", rate(launch.flops)) : "");
  if (profile.peaks.bytes_per_second > 0) {
    text += number_cell(roof, format_text("%.1f %% of %s", 100 * roof,
                                          profile.compute_bound(launch) ? "flops" : "bytes") +
                                  bar("roof", roof));
  }
  return text + "</tr>\n";
}

std::string launch_rows(const Profile& profile) {
  std::string text =
      "<h2>Launches</h2><p>Click a column header to sort by it. Click a launch to show the ops "
      "fused into it and their source lines.</p>\n<table><thead><tr><th>launch</th>"
      "<th class=\"t\">name</th><th class=\"t\">line</th><th>us</th><th>share of time</th>"
      "<th>bytes</th><th>GB/s</th><th>operations</th><th>GFLOP/s</th>";
  if (profile.peaks.bytes_per_second > 0) text += "<th>share of roofline</th>";
  text += "</tr></thead><tbody>\n";
  const double all = profile.microseconds();
  for (std::size_t i = 0; i < profile.launches.size(); ++i) text += launch_row(profile, i, all);
  return text + "</tbody></table>\n";
}

std::string compile_part(const Profile& profile) {
  double all = 0;
  for (const PassProfile& pass : profile.passes) all += pass.milliseconds;
  std::string text = format_text("<h2>Compile: %.2f ms in passes</h2>\n", all) +
                     pass_timeline(profile.passes) +
                     "<table><thead><tr><th>at, ms</th><th "
                     "class=\"t\">pass</th><th>ms</th><th>share</th></tr></thead><tbody>\n";
  for (const PassProfile& pass : profile.passes) {
    const double share = all > 0 ? pass.milliseconds / all : 0;
    text += "<tr>" + number_cell(pass.begin, format_text("%.2f", pass.begin)) +
            "<td class=\"t\" data-v=\"" + xml_text(pass.name) + "\">" + xml_text(pass.name) +
            "</td>" + number_cell(pass.milliseconds, format_text("%.3f", pass.milliseconds)) +
            number_cell(share, format_text("%.1f %%", 100 * share) + bar("time", share)) +
            "</tr>\n";
  }
  return text + "</tbody></table>\n";
}

}  // namespace

std::string Profile::html(const std::string& title) const {
  std::string text =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" + xml_text(title) +
      "</title>" + kProfileHead + "<h1>" + xml_text(title) + "</h1>\n<p>" + xml_text(device) +
      "; " + std::to_string(launches.size()) + " launches, " + bytes_text(peak_bytes) +
      " in buffers; medians of " + std::to_string(steps) + " steps" +
      (clock.empty() ? "" : " by " + xml_text(clock)) + "</p>\n" + launch_timeline(*this);
  text += "<p>";
  for (const char* kind : {"map", "row", "contraction", "scatter", "scan", "sort", "attention",
                           "selective_scan", "custom"}) {
    text += std::string("<svg style=\"width:1em;height:.8em\" viewBox=\"0 0 1 1\"><rect class=\"") +
            kind + "\" width=\"1\" height=\"1\"/></svg> " + kind + " &nbsp; ";
  }
  text += "</p>\n";
  if (peaks.bytes_per_second > 0 && peaks.flops_per_second > 0) {
    text +=
        format_text("<h2>Roofline: %.1f GB/s, %.1f GFLOP/s</h2>\n<p>Measured with ",
                    peaks.bytes_per_second / 1e9, peaks.flops_per_second / 1e9) +
        xml_text(peaks.method) +
        " just before the steps. Each point is a launch with a known operation count; a larger one "
        "takes more of the step.</p>\n" +
        Roofline(*this).svg();
  }
  return text + launch_rows(*this) + compile_part(*this) + kSort + "</body></html>\n";
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
