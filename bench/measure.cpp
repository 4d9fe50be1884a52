// SPDX-License-Identifier: MIT
#include "measure.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace tensorgrad::bench {

double median_microseconds(double seconds, int units, const std::function<void()>& body,
                           const std::function<void()>& after) {
  using Clock = std::chrono::steady_clock;
  const auto elapsed = [](Clock::time_point since) {
    return std::chrono::duration<double>(Clock::now() - since).count();
  };
  const auto warm = Clock::now();
  do {
    body();
    after();
  } while (elapsed(warm) < seconds * 0.2);
  std::vector<double> times;
  const auto start = Clock::now();
  while (elapsed(start) < seconds || times.size() < 5) {
    const auto before = Clock::now();
    body();
    times.push_back(elapsed(before) * 1e6 / units);
    after();
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                   times.end());
  return times[times.size() / 2];
}

void print_line(const Fields& fields) {
  std::string line = "{";
  for (const auto& [name, value] : fields)
    line += (line.size() > 1 ? ", " : "") + text(name) + ": " + value;
  std::printf("%s}\n", line.c_str());
  std::fflush(stdout);
}

void append(Fields& fields, const Fields& more) {
  fields.insert(fields.end(), more.begin(), more.end());
}

std::string text(const std::string& value) {
  std::string out = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 32) out += c;
  }
  return out + "\"";
}

std::string number(double value) {
  char out[32];
  std::snprintf(out, sizeof out, "%.6g", value);
  return out;
}

}  // namespace tensorgrad::bench
