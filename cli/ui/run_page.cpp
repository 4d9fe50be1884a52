// SPDX-License-Identifier: MIT
#include "ui/run_page.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <random>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "run/interrupt.h"
#include "tensorgrad/error.h"
#include "text.h"
#include "ui/page.h"

namespace tensorgrad::cli {
namespace {

using PageJson = nlohmann::ordered_json;

constexpr std::size_t kMaxPageLines = 8192;
constexpr double kPollSeconds = 3;  // a page that has asked within this time is open
constexpr std::chrono::milliseconds kLastPoll{2000};  // a page asks once a second

double page_clock() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Returns 128 random bits in hexadecimal.
std::string new_token() {
  std::random_device random;
  std::string token;
  for (int i = 0; i < 4; ++i) token += fmt::format("{:08x}", random());
  return token;
}

// Compares in a time that does not depend on where the texts differ.
bool same_token(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |=
        static_cast<unsigned>(static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]));
  return difference == 0;
}

std::string dumped(const PageJson& json) {
  return json.dump(-1, ' ', false, PageJson::error_handler_t::replace);
}

std::int64_t integer_in(const HttpRequest& request, const char* key) {
  const auto found = request.query.find(key);
  std::int64_t value = 0;
  if (found != request.query.end()) {
    const std::string& text = found->second;
    std::from_chars(text.data(), text.data() + text.size(), value);
  }
  return value;
}

std::string head_json(const PageHead& head) {
  return dumped({{"tool", head.tool},
                 {"folder", head.folder},
                 {"device", head.device},
                 {"model", head.model},
                 {"data", head.data},
                 {"unit", head.unit},
                 {"held_out", head.held_out},
                 {"loss_unit", head.loss_unit},
                 {"units_per_step", head.units_per_step},
                 {"steps", head.steps},
                 {"epochs", head.epochs},
                 {"launches", head.launches},
                 {"peak_memory", bytes_text(head.peak_bytes)},
                 {"profiles", head.profiles},
                 {"height", head.height},
                 {"width", head.width},
                 {"channels", head.channels}});
}

}  // namespace

RunPage::RunPage(int port) : token_(new_token()), server_(port) {}

std::unique_ptr<RunPage> RunPage::on_port(std::optional<int> port) {
  return port ? std::make_unique<RunPage>(*port) : nullptr;
}

RunPage::~RunPage() {
  Lock lock(mutex_);
  if (!open_ || now_.how.empty() || page_clock() - polled_at_ > kPollSeconds) return;
  changed_.wait_for(lock, kLastPoll, [this] { return end_was_seen_; });
}

void RunPage::open(PageHead head) {
  {
    const Lock lock(mutex_);
    head_ = std::move(head);
    open_ = true;
  }
  server_.start([this](const HttpRequest& request) { return answer(request); });
  fmt::print("page    http://127.0.0.1:{}/?token={}\n", server_.port(), token_);
  std::fflush(stdout);
}

void RunPage::add_line(std::string_view kind, std::string json) {
  if (kind == "pause") return;
  const Lock lock(mutex_);
  lines_.push_back({kind == "step", std::move(json)});
  if (lines_.size() > kMaxPageLines) thin();
}

// Keeps every second line of steps, and of the others if they are many.
void RunPage::thin() {
  const auto others = std::count_if(lines_.begin(), lines_.end(), [](auto& l) { return !l.step; });
  const bool all = static_cast<std::size_t>(others) > kMaxPageLines / 2;
  std::size_t count[2] = {0, 0};
  std::erase_if(lines_, [&](const Line& line) {
    return (line.step || all) && count[line.step ? 1 : 0]++ % 2 == 1;
  });
  ++version_;
}

void RunPage::progress(const ProgressState& state, std::int64_t step, double lr, double seconds) {
  const Lock lock(mutex_);
  now_.step = step;
  now_.epoch = state.epoch;
  now_.loss = state.loss.value_or(0);
  now_.lr = lr;
  now_.rate = state.rate;
  now_.left = state.seconds_left;
  now_.seconds = seconds;
}

void RunPage::busy(std::string_view activity) {
  const Lock lock(mutex_);
  now_.activity = activity;
}

void RunPage::saved(std::int64_t step) {
  const Lock lock(mutex_);
  now_.saved = step;
}

void RunPage::predictions(const std::vector<PagePrediction>& predictions) {
  PageJson list = PageJson::array();
  for (const PagePrediction& each : predictions) {
    list.push_back({{"predicted", each.predicted},
                    {"actual", each.actual},
                    {"probability", each.probability}});
  }
  std::string json = dumped(list);
  const Lock lock(mutex_);
  predictions_ = std::move(json);
  ++pictures_;
}

void RunPage::profiled(const Profile& profile) {
  PageJson launches = PageJson::array();
  for (const LaunchProfile& launch : profile.launches) {
    std::string ops;
    for (const std::string& op : launch.ops) ops += (ops.empty() ? "" : ", ") + op;
    launches.push_back({{"name", launch.name},
                        {"kind", launch.kind},
                        {"domain", launch.domain},
                        {"ops", ops},
                        {"microseconds", launch.microseconds}});
  }
  std::string json = dumped({{"clock", profile.clock},
                             {"steps", profile.steps},
                             {"microseconds", profile.microseconds()},
                             {"launches", std::move(launches)}});
  const Lock lock(mutex_);
  profile_ = std::move(json);
  ++profiles_;
}

bool RunPage::take_profile() {
  const Lock lock(mutex_);
  return std::exchange(measure_, false);
}

void RunPage::between_steps(Progress& progress, const std::function<void()>& save,
                            const std::function<void()>& waiting) {
  Lock lock(mutex_);
  bool waited = false;
  for (;;) {
    if (interrupted() != 0) break;
    if (std::exchange(save_, false)) {
      now_.activity = "saving";
      lock.unlock();
      progress.pause();
      save();
      if (!waited) progress.resume();
      lock.lock();
      continue;
    }
    if (!pause_) break;
    now_.activity = "paused";
    if (!waited) {
      lock.unlock();
      progress.pause();
      progress.print("paused by the page");
      lock.lock();
      waited = true;
    }
    // Signals do not notify.
    changed_.wait_for(lock, std::chrono::milliseconds(100));
    lock.unlock();
    waiting();
    lock.lock();
  }
  now_.activity.clear();
  if (!waited) return;
  lock.unlock();
  progress.resume();
  if (interrupted() == 0) progress.print("resumed by the page");
}

int RunPage::watch(const std::function<int()>& train) {
  try {
    return train();
  } catch (const Error& error) {
    end("failed", error.message());
    throw;
  } catch (const std::exception& error) {
    end("failed", error.what());
    throw;
  }
}

void RunPage::end(std::string_view how, std::string_view why) {
  const Lock lock(mutex_);
  now_.activity.clear();
  now_.how = how;
  now_.why = why;
}

HttpResponse RunPage::answer(const HttpRequest& request) {
  const auto token = request.query.find("token");
  if (token == request.query.end() || !same_token(token->second, token_))
    return {.status = 403,
            .body = fmt::format("The address lacks the token of this run; {} has printed it.\n",
                                head_.tool)};
  const std::string& path = request.path;
  const bool button = path == "/pause" || path == "/resume" || path == "/save" || path == "/stop" ||
                      path == "/profile";
  if (request.method != (button ? "POST" : "GET"))
    return {.status = 405, .body = "method not allowed\n", .allow = button ? "POST" : "GET"};
  if (button) return press(path);
  if (path == "/") return {.type = "text/html; charset=utf-8", .body = std::string(page_html())};
  const Lock lock(mutex_);
  if (path == "/pixels") return {.type = "application/octet-stream", .body = head_.pixels};
  if (path != "/state") return {.status = 404, .body = "not found\n"};
  polled_at_ = page_clock();
  HttpResponse response{.type = "application/json", .body = state(request)};
  if (!now_.how.empty()) {
    end_was_seen_ = true;
    changed_.notify_all();
  }
  return response;
}

HttpResponse RunPage::press(const std::string& button) {
  const Lock lock(mutex_);
  if (button == "/save") save_ = true;
  if (button == "/profile") measure_ = head_.profiles;
  if (button == "/pause") pause_ = true;
  if (button == "/resume") pause_ = false;
  if (button == "/stop" && !stop_) {
    stop_ = true;
    interrupt();
  }
  changed_.notify_all();
  return {.type = "application/json", .body = "{}"};
}

// A page says which version it has, how many lines, profiles and predictions: it gets what it
// lacks.
std::string RunPage::state(const HttpRequest& request) const {
  const std::int64_t since = integer_in(request, "since");
  const auto size = static_cast<std::int64_t>(lines_.size());
  const bool whole = integer_in(request, "version") != version_ || since < 0 || since > size;
  std::string lines;
  for (std::int64_t i = whole ? 0 : since; i < size; ++i)
    lines += (lines.empty() ? "" : ",") + lines_[static_cast<std::size_t>(i)].json;
  const PageJson now = {{"step", now_.step},
                        {"epoch", now_.epoch},
                        {"loss", now_.loss},
                        {"lr", now_.lr},
                        {"rate", now_.rate},
                        {"seconds_left", now_.left},
                        {"seconds", now_.seconds},
                        {"saved", now_.saved},
                        {"activity", now_.activity},
                        {"pausing", pause_},
                        {"stopping", stop_ || interrupted() != 0},
                        {"how", now_.how},
                        {"why", now_.why},
                        {"pictures", pictures_},
                        {"profiles", profiles_}};
  return fmt::format(
      R"({{"version":{},"next":{},"whole":{},"head":{},"profile":{},"predictions":{},"now":{},"lines":[{}]}})",
      version_, size, whole, whole ? head_json(head_) : "null",
      integer_in(request, "profiles") != profiles_ ? profile_ : "null",
      integer_in(request, "pictures") != pictures_ ? predictions_ : "null", dumped(now), lines);
}

}  // namespace tensorgrad::cli
