// SPDX-License-Identifier: MIT
#include "ui/run_page.h"

#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "text.h"
#include "ui/page.h"

namespace tensorgrad::cli {
namespace {

using PageJson = nlohmann::ordered_json;

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

std::string head_json(const RunHead& head) {
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

std::string profile_json(const Profile& profile) {
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
  return dumped({{"clock", profile.clock},
                 {"steps", profile.steps},
                 {"microseconds", profile.microseconds()},
                 {"launches", std::move(launches)}});
}

std::string predictions_json(const std::vector<RunPrediction>& predictions) {
  PageJson list = PageJson::array();
  for (const RunPrediction& each : predictions) {
    list.push_back({{"predicted", each.predicted},
                    {"actual", each.actual},
                    {"probability", each.probability}});
  }
  return dumped(list);
}

// A page says how many profiles and predictions it has seen: it gets what it lacks.
std::string state_json(const RunSnapshot& shot, std::int64_t profiles, std::int64_t pictures) {
  std::string lines;
  for (const RunLine& line : shot.lines) lines += (lines.empty() ? "" : ",") + line.json;
  const RunNow& now = shot.now;
  const PageJson now_json = {
      {"step", now.step},       {"epoch", now.epoch},       {"loss", now.loss},
      {"lr", now.lr},           {"rate", now.rate},         {"seconds_left", now.left},
      {"seconds", now.seconds}, {"saved", now.saved},       {"activity", now.activity},
      {"pausing", now.pausing}, {"stopping", now.stopping}, {"how", now.how},
      {"why", now.why},         {"pictures", now.pictures}, {"profiles", now.profiles}};
  const bool new_profile = shot.profile && profiles != now.profiles;
  const bool new_pictures = shot.predictions && pictures != now.pictures;
  return fmt::format(
      R"({{"version":{},"next":{},"whole":{},"head":{},"profile":{},"predictions":{},"now":{},"lines":[{}]}})",
      shot.version, shot.next, shot.whole, shot.whole ? head_json(*shot.head) : "null",
      new_profile ? profile_json(*shot.profile) : "null",
      new_pictures ? predictions_json(*shot.predictions) : "null", dumped(now_json), lines);
}

}  // namespace

RunPage::RunPage(int port) : LiveRun("the page"), token_(new_token()), server_(port) {}

RunPage::~RunPage() {
  std::unique_lock lock(polls_);
  if (!has_ended_ || page_clock() - polled_at_ > kPollSeconds) return;
  polled_.wait_for(lock, kLastPoll, [this] { return end_was_seen_; });
}

void RunPage::show() {
  server_.start([this](const HttpRequest& request) { return answer(request); });
  fmt::print("page    http://127.0.0.1:{}/?token={}\n", server_.port(), token_);
  std::fflush(stdout);
}

void RunPage::show_end() {
  const std::lock_guard lock(polls_);
  has_ended_ = true;
}

HttpResponse RunPage::answer(const HttpRequest& request) {
  const auto token = request.query.find("token");
  if (token == request.query.end() || !same_token(token->second, token_))
    return {.status = 403,
            .body = fmt::format("The address lacks the token of this run; {} has printed it.\n",
                                head()->tool)};
  const std::string& path = request.path;
  const bool button = path == "/pause" || path == "/resume" || path == "/save" || path == "/stop" ||
                      path == "/profile";
  if (request.method != (button ? "POST" : "GET"))
    return {.status = 405, .body = "method not allowed\n", .allow = button ? "POST" : "GET"};
  if (button) return press(path);
  if (path == "/") return {.type = "text/html; charset=utf-8", .body = std::string(page_html())};
  if (path == "/pixels") return {.type = "application/octet-stream", .body = head()->pixels};
  if (path != "/state") return {.status = 404, .body = "not found\n"};
  const RunSnapshot shot = snapshot(integer_in(request, "version"), integer_in(request, "since"));
  HttpResponse response{
      .type = "application/json",
      .body = state_json(shot, integer_in(request, "profiles"), integer_in(request, "pictures"))};
  const std::lock_guard lock(polls_);
  polled_at_ = page_clock();
  if (!shot.now.how.empty()) {
    end_was_seen_ = true;
    polled_.notify_all();
  }
  return response;
}

HttpResponse RunPage::press(const std::string& button) {
  if (button == "/save") request(RunRequest::kSave);
  if (button == "/profile") request(RunRequest::kProfile);
  if (button == "/pause") request(RunRequest::kPause);
  if (button == "/resume") request(RunRequest::kResume);
  if (button == "/stop") request(RunRequest::kStop);
  return {.type = "application/json", .body = "{}"};
}

}  // namespace tensorgrad::cli
