// SPDX-License-Identifier: MIT
// --ui: the live page of a run, its state and buttons, who is refused, and what ends with the run.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <memory>
#include <regex>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/tool.h"

namespace tensorgrad::test {
namespace {

namespace fs = std::filesystem;
using UiJson = nlohmann::json;

#ifdef SO_NOSIGPIPE
constexpr int kSendFlags = 0;
#else
constexpr int kSendFlags = MSG_NOSIGNAL;
#endif

bool has_ended(const UiJson& page) { return !page["now"]["how"].get<std::string>().empty(); }

// A socket of this machine's loopback interface.
class LoopbackSocket {
 public:
  LoopbackSocket() : file_(::socket(AF_INET, SOCK_STREAM, 0)) {
    const timeval patience = {.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(file_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
#ifdef SO_NOSIGPIPE  // macOS, in place of MSG_NOSIGNAL
    const int yes = 1;
    ::setsockopt(file_, SOL_SOCKET, SO_NOSIGPIPE, &yes, sizeof yes);
#endif
  }
  ~LoopbackSocket() { ::close(file_); }
  LoopbackSocket(const LoopbackSocket&) = delete;
  LoopbackSocket& operator=(const LoopbackSocket&) = delete;

  [[nodiscard]] bool connect(int port, in_addr_t host = INADDR_LOOPBACK) const {
    const sockaddr_in address = of(port, host);
    return ::connect(file_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  // Listens on a free port and returns it.
  [[nodiscard]] int listen() const {
    sockaddr_in address = of(0, INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    if (::bind(file_, generic, size) != 0 || ::listen(file_, 1) != 0 ||
        ::getsockname(file_, generic, &size) != 0)
      return -1;
    return ntohs(address.sin_port);
  }
  void send(const std::string& bytes) const {
    ::send(file_, bytes.data(), bytes.size(), kSendFlags);
  }
  // Returns what comes until the other side closes.
  [[nodiscard]] std::string rest() const {
    std::string text;
    char bytes[4096];
    ssize_t count = 0;
    while ((count = ::recv(file_, bytes, sizeof bytes, 0)) > 0)
      text.append(bytes, static_cast<std::size_t>(count));
    return text;
  }

 private:
  static sockaddr_in of(int port, in_addr_t host) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(host);
    return address;
  }
  int file_;
};

struct UiReply {
  int status = 0;  // 0: no connection
  std::string head, body;
};

UiReply reply_to(int port, const std::string& request) {
  const LoopbackSocket socket;
  if (!socket.connect(port)) return {};
  socket.send(request);
  const std::string text = socket.rest();
  const std::size_t end = text.find("\r\n\r\n");
  UiReply reply;
  if (text.size() > 12) reply.status = static_cast<int>(std::strtol(text.c_str() + 9, nullptr, 10));
  reply.head = text.substr(0, end);
  if (end != std::string::npos) reply.body = text.substr(end + 4);
  return reply;
}

// A run with a page. `option` is the --ui option, `arguments` are the others.
class UiRun {
 public:
  UiRun(std::vector<std::string> arguments, const TestFolder& folder,
        const std::string& option = "--ui")
      : tool_(with_ui(std::move(arguments), option), folder.path()) {
    const std::regex address(R"(http://127\.0\.0\.1:(\d+)/\?token=([0-9a-f]{32})\n)");
    eventually([&] {
      for (const auto& each : fs::directory_iterator(folder.path())) {
        const std::string text = read_text(each.path());
        std::smatch match;
        if (!each.path().filename().string().starts_with(".out")) continue;
        if (!std::regex_search(text, match, address)) continue;
        port = std::stoi(match[1]);
        token = match[2];
        return true;
      }
      return false;
    });
  }

  [[nodiscard]] UiReply get(const std::string& path, const std::string& query = "") const {
    return request("GET", path, query);
  }
  [[nodiscard]] int press(const std::string& button) const {
    return request("POST", "/" + button, "").status;
  }
  [[nodiscard]] UiReply request(const std::string& method, const std::string& path,
                                const std::string& query) const {
    return reply_to(port, method + " " + path + "?token=" + token + query +
                              " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) + "\r\n\r\n");
  }
  // Returns the whole state; null if there is no answer.
  [[nodiscard]] UiJson state(const std::string& query = "") const {
    const UiReply reply = get("/state", query);
    return UiJson::parse(reply.body, nullptr, false);
  }
  // Waits until `is` accepts the state, and returns that.
  template <typename Is>
  UiJson wait_for(const Is& is) const {
    UiJson last;
    EXPECT_TRUE(eventually([&] {
      last = state();
      return last.is_object() && is(last);
    })) << last;
    return last;
  }
  void signal(int number) const { tool_.signal(number); }
  ToolResult wait() { return tool_.wait(); }

  template <typename Is>
  static bool eventually(const Is& is) {
    for (int i = 0; i < 1200; ++i) {
      if (is()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(25));
    }
    return false;
  }

  int port = 0;
  std::string token;

 private:
  static std::vector<std::string> with_ui(std::vector<std::string> arguments,
                                          const std::string& option) {
    arguments.push_back(option);
    return arguments;
  }

  ToolProcess tool_;
};

// Words for a run that only ends if it is stopped.
std::vector<std::string> long_training() {
  return {"train", "--data",   "images",  "--out",    "run", "--device",
          "cpu",   "--epochs", "1000000", "--hidden", "8",   "--batch",
          "8",     "--lr",     "0.001",   "--seed",   "5"};
}

std::vector<std::string> ui_language(const std::string& steps) {
  return {"lm",  "train",    "text.txt", "--out",   "run", "--device",     "cpu", "--arch",
          "gpt", "--layers", "1",        "--width", "16",  "--heads",      "2",   "--length",
          "16",  "--batch",  "4",        "--steps", steps, "--eval-every", "20",  "--sample-tokens",
          "12"};
}

void write_ui_text(const TestFolder& folder) {
  std::string text;
  for (int i = 0; i < 600; ++i) text += i % 7 == 0 ? "ab\n" : i % 3 == 0 ? "ca " : "bca";
  write_text(folder / "text.txt", text);
}

std::vector<UiJson> lines_of_run(const TestFolder& folder) {
  std::vector<UiJson> lines;
  std::istringstream in(read_text(folder.path() / "run/metrics.jsonl"));
  for (std::string text; std::getline(in, text);) lines.push_back(UiJson::parse(text));
  return lines;
}

TEST(TgUi, shows_a_run_and_stops_it_as_ctrl_c_does) {
  const TestFolder folder;
  write_image_folder(folder.path() / "images");
  UiRun run(long_training(), folder);
  ASSERT_NE(run.port, 0);
  const UiReply page = run.get("/");
  EXPECT_EQ(page.status, 200);
  EXPECT_NE(page.head.find("Content-Type: text/html; charset=utf-8"), std::string::npos);
  EXPECT_TRUE(page.body.starts_with("<!doctype html>"));
  EXPECT_NE(page.head.find("default-src 'none'"), std::string::npos);
  const UiJson state = run.wait_for(
      [](const UiJson& s) { return s["now"]["epoch"] >= 3 && s["now"]["pictures"] >= 1; });
  EXPECT_EQ(state["head"]["folder"], "run");
  EXPECT_EQ(state["head"]["units_per_step"], 8);
  EXPECT_EQ(state["head"]["steps"], 7'000'000);
  EXPECT_GT(state["head"]["launches"], 0);
  EXPECT_EQ(state["head"]["device"].get<std::string>().substr(0, 3), "cpu");
  EXPECT_EQ(state["lines"][0]["kind"], "step");
  EXPECT_EQ(state["lines"][0]["step"], 1);
  EXPECT_EQ(state["predictions"].size(), 25U);  // all test images
  EXPECT_EQ(state["head"]["height"], 5);
  EXPECT_EQ(run.get("/pixels").body,
            read_text(folder.path() / "images/test-images-idx3-ubyte").substr(16));
  EXPECT_EQ(run.get("/nothing").status, 404);

  EXPECT_EQ(run.press("stop"), 200);
  const UiJson end = run.wait_for(has_ended);
  ASSERT_EQ(end["now"]["how"], "stopped");
  const ToolResult result = run.wait();
  EXPECT_EQ(result.code, 130) << result.err;
  EXPECT_EQ(result.err, "");
  const std::string why = end["now"]["why"];
  EXPECT_TRUE(why.ends_with("resume with: tg train --resume run")) << why;
  EXPECT_NE(result.out.find(why + "\n"), std::string::npos) << result.out;
  EXPECT_EQ(run.get("/").status, 0) << "the port is still open";

  // The page had lines of metrics.jsonl, in their order: all, or every second, fourth ... of them.
  const std::vector<UiJson> lines = lines_of_run(folder);
  const UiJson& shown = end["lines"];
  std::size_t found = 0;
  for (const UiJson& line : lines) found += found < shown.size() && line == shown[found] ? 1 : 0;
  EXPECT_EQ(found, shown.size());
  EXPECT_LE(shown.size(), 8192U);
  EXPECT_GT(shown.size(), std::min<std::size_t>(lines.size() - 2, 4000));
  EXPECT_EQ(end["now"]["saved"], end["now"]["step"]);
  const ToolResult resumed =
      folder.tg({"train", "--resume", "run", "--device", "cpu", "--stop-after",
                 std::to_string(end["now"]["step"].get<int>() + 9)});
  EXPECT_EQ(resumed.code, 130) << resumed.err;
}

TEST(TgUi, pauses_saves_and_resumes) {
  const TestFolder folder;
  write_image_folder(folder.path() / "images");
  UiRun run(long_training(), folder);
  run.wait_for([](const UiJson& s) { return s["now"]["step"] > 20; });
  EXPECT_EQ(run.press("pause"), 200);
  const UiJson paused =
      run.wait_for([](const UiJson& s) { return s["now"]["activity"] == "paused"; });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const std::int64_t step = run.state()["now"]["step"];
  EXPECT_EQ(step, paused["now"]["step"]);
  EXPECT_EQ(run.press("save"), 200);
  run.wait_for([&](const UiJson& s) { return s["now"]["saved"] == step; });
  EXPECT_EQ(run.state()["now"]["activity"], "paused");
  EXPECT_EQ(run.press("resume"), 200);
  run.wait_for([&](const UiJson& s) { return s["now"]["step"] > step; });
  // Ctrl-C ends a paused run too.
  EXPECT_EQ(run.press("pause"), 200);
  run.wait_for([](const UiJson& s) { return s["now"]["activity"] == "paused"; });
  run.signal(SIGINT);
  const ToolResult result = run.wait();
  EXPECT_EQ(result.code, 130) << result.err;
  EXPECT_NE(result.out.find("paused by the page\nresumed by the page\n"), std::string::npos)
      << result.out;
  EXPECT_NE(result.out.find("saved; resume with: tg train --resume run"), std::string::npos);
}

// Runs `words` with a page, times launches, and compares `file` of the run with that of a run
// without a page. words[4] is the folder.
void expect_timing_changes_nothing(const TestFolder& folder, std::vector<std::string> words,
                                   const std::string& file) {
  UiRun run(words, folder);
  // Asked for until a profile is there, or the run has ended.
  UiJson timed;
  UiRun::eventually([&] {
    (void)run.press("profile");
    const UiJson state = run.state("&profiles=-1");
    if (!state.is_object()) return true;
    timed = state["profile"];
    return !timed.is_null();
  });
  const ToolResult result = run.wait();
  EXPECT_EQ(result.code, 130) << result.err;
  ASSERT_TRUE(timed.is_object()) << timed;
  EXPECT_GT(timed["microseconds"], 0);
  EXPECT_GT(timed["launches"].size(), 2U);
  EXPECT_NE(timed["launches"][0]["ops"], "");
  words[4] = "plain";
  ASSERT_EQ(folder.tg(words).code, 130);
  EXPECT_EQ(read_text(folder.path() / "run" / file), read_text(folder.path() / "plain" / file));
}

TEST(TgUi, times_launches_without_a_change_of_the_results) {
  const TestFolder folder;
  write_image_folder(folder.path() / "images");
  std::vector<std::string> words = long_training();
  words.insert(words.end(), {"--stop-after", "2000"});
  expect_timing_changes_nothing(folder, words, "model.safetensors");
}

TEST(TgUi, times_launches_of_a_language_model) {
  const TestFolder folder;
  write_ui_text(folder);
  std::vector<std::string> words = ui_language("1000000");
  words.insert(words.end(), {"--stop-after", "600", "--accumulate", "2"});
  expect_timing_changes_nothing(folder, words, "checkpoint.safetensors");
}

TEST(TgUi, refuses_requests_without_the_token_or_of_other_sites) {
  const TestFolder folder;
  write_image_folder(folder.path() / "images");
  UiRun run(long_training(), folder);
  ASSERT_NE(run.port, 0);
  const std::string host = "127.0.0.1:" + std::to_string(run.port);
  const auto status = [&](const std::string& line, const std::string& headers) {
    return reply_to(run.port, line + "\r\n" + headers + "\r\n\r\n").status;
  };
  const std::string good = "GET /state?token=" + run.token + " HTTP/1.1";
  const std::string stop = "POST /stop?token=" + run.token + " HTTP/1.1";
  EXPECT_EQ(status(good, "Host: " + host), 200);
  EXPECT_EQ(status(good, "hOST:  localhost:" + std::to_string(run.port) + " "), 200);
  for (const char* const path : {"/", "/state", "/pixels", "/nothing"}) {
    EXPECT_EQ(status("GET " + std::string(path) + " HTTP/1.1", "Host: " + host), 403) << path;
    EXPECT_EQ(status("GET " + std::string(path) + "?token=" + std::string(32, '0') + " HTTP/1.1",
                     "Host: " + host),
              403)
        << path;
  }
  EXPECT_EQ(status("GET /?token= HTTP/1.1", "Host: " + host), 403);
  EXPECT_EQ(status("GET /?token=" + run.token + "0 HTTP/1.1", "Host: " + host), 403);
  EXPECT_EQ(status("POST /stop HTTP/1.1", "Host: " + host), 403);
  // Names that are resolved to 127.0.0.1.
  EXPECT_EQ(status(good, "Host: rebound.example:" + std::to_string(run.port)), 403);
  EXPECT_EQ(status(good, "Host: 127.0.0.1"), 403);
  EXPECT_EQ(status(good, "Accept: */*"), 403);
  EXPECT_EQ(status(good, "Host: " + host + "\r\nHost: other"), 403);
  EXPECT_EQ(status(stop, "Host: " + host + "\r\nOrigin: http://other.example"), 403);
  EXPECT_EQ(status(stop, "Host: " + host + "\r\nOrigin: null"), 403);
  // Buttons are POST, the rest is GET.
  for (const char* const button : {"pause", "resume", "save", "stop", "profile"})
    EXPECT_EQ(run.request("GET", "/" + std::string(button), "").status, 405) << button;
  EXPECT_EQ(run.request("POST", "/state", "").status, 405);
  EXPECT_EQ(run.request("HEAD", "/", "").status, 405);
  // Not HTTP, or more than a page sends.
  EXPECT_EQ(status("hello", ""), 400);
  EXPECT_EQ(status("GET  HTTP/1.1", "Host: " + host), 400);
  EXPECT_EQ(status("GET http://" + host + "/ HTTP/1.1", "Host: " + host), 400);
  EXPECT_EQ(status(stop, "Host: " + host + "\r\nContent-Length: 5"), 413);
  EXPECT_EQ(status(stop, "Host: " + host + "\r\nTransfer-Encoding: chunked"), 413);
  EXPECT_EQ(reply_to(run.port, "GET /" + std::string(20'000, 'a')).status, 431);
  EXPECT_NE(run.get("/state", "&version=x&since=-7&profiles=99999999999999999999").status, 0);
  // Connections that say nothing hold nobody up.
  {
    std::vector<std::unique_ptr<LoopbackSocket>> silent;
    for (int i = 0; i < 40; ++i) {
      silent.push_back(std::make_unique<LoopbackSocket>());
      ASSERT_TRUE(silent.back()->connect(run.port));
      silent.back()->send("GET /sta");
    }
    const auto began = std::chrono::steady_clock::now();
    EXPECT_EQ(run.get("/state").status, 200);
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
  }
  const UiJson state = run.state();
  EXPECT_EQ(state["now"]["stopping"], false);
  EXPECT_EQ(state["now"]["pausing"], false);
  EXPECT_EQ(run.press("stop"), 200);
  EXPECT_EQ(run.press("stop"), 200);  // once more does no more
  EXPECT_EQ(run.wait().code, 130);
}

TEST(TgUi, says_that_a_port_is_in_use_before_it_trains) {
  const TestFolder folder;
  write_image_folder(folder.path() / "images");
  write_ui_text(folder);
  const LoopbackSocket other;
  const std::string port = std::to_string(other.listen());
  for (std::vector<std::string> words : {long_training(), ui_language("40")}) {
    words.push_back("--ui=" + port);
    const ToolResult result = folder.tg(words);
    EXPECT_EQ(result.code, 1);
    EXPECT_EQ(result.err, "error: --ui: port " + port +
                              " of 127.0.0.1 is in use by another program; --ui without a port "
                              "selects a free one\n");
    EXPECT_EQ(result.out, "");
    EXPECT_FALSE(fs::exists(folder.path() / "run"));
  }
  for (const char* const value :
       {"x", "65536", "-1", "80x", "webs", "TUI", "0.0.0.0:8080", "example.com:80"}) {
    std::vector<std::string> words = long_training();
    words.push_back(std::string("--ui=") + value);
    const ToolResult result = folder.tg(words);
    EXPECT_EQ(result.code, 2) << value;
    EXPECT_NE(result.err.find("--ui: expected web, tui or a port from 0 to 65535, got " +
                              std::string(value)),
              std::string::npos)
        << result.err;
    EXPECT_EQ(result.err.find("127.0.0.1 only") != std::string::npos,
              std::string(value).find('.') != std::string::npos)
        << result.err;
    EXPECT_FALSE(fs::exists(folder.path() / "run"));
  }
}

TEST(TgUi, shows_a_language_model_to_its_end) {
  const TestFolder folder;
  write_ui_text(folder);
  UiRun run(ui_language("600"), folder, "--ui=web");
  ASSERT_NE(run.port, 0);
  // A page that asks gets the end; the process waits for it.
  const UiJson end = run.wait_for(has_ended);
  ASSERT_EQ(end["now"]["how"], "done");
  EXPECT_EQ(end["head"]["loss_unit"], "nats per token");
  EXPECT_EQ(end["head"]["units_per_step"], 64);
  EXPECT_EQ(end["now"]["step"], 600);
  const ToolResult result = run.wait();
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find(end["now"]["why"].get<std::string>()), std::string::npos);
  const std::vector<UiJson> lines = lines_of_run(folder);
  EXPECT_EQ(end["lines"], UiJson(lines));
  EXPECT_EQ(
      std::count_if(lines.begin(), lines.end(), [](auto& l) { return l["kind"] == "sample"; }), 30);
}

TEST(TgUi, shows_the_earlier_part_of_a_resumed_run) {
  const TestFolder folder;
  write_ui_text(folder);
  std::vector<std::string> words = ui_language("1000000");
  words.insert(words.end(), {"--stop-after", "45"});
  ASSERT_EQ(folder.tg(words).code, 130);
  UiRun run({"lm", "train", "--resume", "run", "--device", "cpu"}, folder);
  const UiJson first = run.wait_for([](const UiJson& s) { return s["now"]["step"] > 45; });
  EXPECT_EQ(first["lines"][0]["step"], 20);
  EXPECT_EQ(first["lines"][0]["kind"], "validation");
  EXPECT_EQ(first["lines"][1]["kind"], "sample");
  // Asks for what is new only.
  const std::string query = "&version=" + first["version"].dump() + "&since=2";
  const UiJson rest = run.state(query);
  EXPECT_EQ(rest["whole"], false);
  EXPECT_TRUE(rest["head"].is_null());
  EXPECT_GE(rest["next"].get<std::size_t>(), 2U);
  EXPECT_EQ(rest["lines"].size(), rest["next"].get<std::size_t>() - 2);
  EXPECT_EQ(run.press("stop"), 200);
  EXPECT_EQ(run.wait().code, 130);
}

TEST(TgUi, shows_why_a_run_failed) {
  const TestFolder folder;
  write_image_folder(folder.path() / "images");
  UiRun run(long_training(), folder);
  run.wait_for([](const UiJson& s) { return s["now"]["step"] > 20; });
  EXPECT_EQ(run.press("pause"), 200);
  run.wait_for([](const UiJson& s) { return s["now"]["activity"] == "paused"; });
  fs::rename(folder.path() / "run", folder.path() / "moved");
  write_text(folder / "run", "no folder");
  EXPECT_EQ(run.press("resume"), 200);  // the end of the next epoch is to be saved
  const UiJson end = run.wait_for(has_ended);
  ASSERT_EQ(end["now"]["how"], "failed");
  const ToolResult result = run.wait();
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.err, "error: " + end["now"]["why"].get<std::string>() + "\n");
  EXPECT_NE(result.err.find("run/model.safetensors"), std::string::npos);
}

}  // namespace
}  // namespace tensorgrad::test
