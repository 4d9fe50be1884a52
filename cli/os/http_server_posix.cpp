// SPDX-License-Identifier: MIT
#include "os/http_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <exception>
#include <list>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tensorgrad/error.h"

namespace tensorgrad::cli {
namespace {

using HttpClock = std::chrono::steady_clock;

constexpr std::size_t kMaxRequest = 8192;    // bytes of a request
constexpr std::size_t kMaxConnections = 64;  // at once; further ones wait in the kernel
constexpr std::chrono::seconds kConnectionTime{10};
constexpr std::chrono::milliseconds kEndTime{500};

std::string_view reason_of(int status) {
  switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 413: return "Content Too Large";
    case 431: return "Request Header Fields Too Large";
    default: return "Internal Server Error";
  }
}

std::string http_text(const HttpResponse& response) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}"
      "Cache-Control: no-store\r\nReferrer-Policy: same-origin\r\n"
      "X-Content-Type-Options: nosniff\r\nCross-Origin-Resource-Policy: same-origin\r\n"
      "Content-Security-Policy: default-src 'none'; script-src 'unsafe-inline'; style-src "
      "'unsafe-inline'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; "
      "base-uri 'none'; form-action 'none'\r\nConnection: close\r\n\r\n{}",
      response.status, reason_of(response.status), response.type, response.body.size(),
      response.allow.empty() ? "" : "Allow: " + response.allow + "\r\n", response.body);
}

// Removes the text up to `end` from `rest` and returns it; all of it if there is no `end`.
std::string_view take_until(std::string_view& rest, std::string_view end) {
  const std::size_t at = rest.find(end);
  const std::string_view part = rest.substr(0, at);
  rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + end.size());
  return part;
}

// Returns the values of all headers of this name.
std::vector<std::string> headers_of(std::string_view lines, std::string_view name) {
  std::vector<std::string> found;
  while (!lines.empty()) {
    std::string_view line = take_until(lines, "\r\n");
    const std::string_view key = take_until(line, ":");
    if (key.size() != name.size() || ::strncasecmp(key.data(), name.data(), name.size()) != 0)
      continue;
    const std::size_t first = line.find_first_not_of(" \t");
    const std::size_t last = line.find_last_not_of(" \t");
    found.emplace_back(first == std::string_view::npos ? "" : line.substr(first, last - first + 1));
  }
  return found;
}

[[noreturn]] void fail_to_open(int port, int error) {
  const std::string what = error == EADDRINUSE
                               ? "is in use by another program"
                               : fmt::format("cannot be opened ({})", std::strerror(error));
  throw UserError(fmt::format(
      "--ui: port {} of 127.0.0.1 {}; --ui without a port selects a free one", port, what));
}

void keep_to_itself(int file) {
  ::fcntl(file, F_SETFD, FD_CLOEXEC);
  ::fcntl(file, F_SETFL, ::fcntl(file, F_GETFL) | O_NONBLOCK);
}

// Writing to a closed connection must not raise SIGPIPE. On macOS, a socket option prevents it;
// only recent versions have MSG_NOSIGNAL.
#ifdef SO_NOSIGPIPE
constexpr int kSendFlags = 0;
void send_without_signals(int socket) {
  const int yes = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_NOSIGPIPE, &yes, sizeof yes);
}
#else
constexpr int kSendFlags = MSG_NOSIGNAL;
void send_without_signals(int /*socket*/) {}
#endif

}  // namespace

struct HttpServer::Connection {
  int file = -1;
  HttpClock::time_point until = HttpClock::now() + kConnectionTime;
  std::string in, out;
  std::size_t sent = 0;
};

HttpServer::HttpServer(int port) {
  listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
  if (listener_ < 0) fail_to_open(port, errno);
  const int yes = 1;  // else a port is in use for a minute after a server ended
  ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener_, generic, size) != 0 || ::listen(listener_, 16) != 0 ||
      ::getsockname(listener_, generic, &size) != 0 || ::pipe(wake_) != 0) {
    const int error = errno;
    ::close(listener_);
    fail_to_open(port, error);
  }
  port_ = ntohs(address.sin_port);
  for (const int file : {listener_, wake_[0], wake_[1]}) keep_to_itself(file);
}

HttpServer::~HttpServer() {
  ::close(wake_[1]);
  if (thread_.joinable()) thread_.join();
  ::close(wake_[0]);
  ::close(listener_);
}

void HttpServer::start(Handler handler) {
  handler_ = std::move(handler);
  // Signals are for the thread that trains.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { serve(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void HttpServer::serve() {
  std::list<Connection> connections;
  std::optional<HttpClock::time_point> end;
  std::vector<pollfd> polled;
  for (;;) {
    const bool accepts = !end && connections.size() < kMaxConnections;
    polled = {{.fd = end ? -1 : wake_[0], .events = POLLIN, .revents = 0},
              {.fd = accepts ? listener_ : -1, .events = POLLIN, .revents = 0}};
    for (const Connection& each : connections) {
      const auto events = static_cast<short>(each.sent < each.out.size() ? POLLOUT : POLLIN);
      polled.push_back({.fd = each.file, .events = events, .revents = 0});
    }
    if (::poll(polled.data(), polled.size(), connections.empty() ? -1 : 100) < 0 && errno != EINTR)
      break;
    if (!end && polled[0].revents != 0) end = HttpClock::now() + kEndTime;
    const HttpClock::time_point now = HttpClock::now();
    auto place = polled.begin() + 2;
    for (auto each = connections.begin(); each != connections.end(); ++place) {
      bool keep = now < each->until && (!end || each->sent < each->out.size());
      if (keep && place->revents != 0) keep = proceed(*each);
      if (keep) {
        ++each;
      } else {
        ::close(each->file);
        each = connections.erase(each);
      }
    }
    if (end && (connections.empty() || now >= *end)) break;
    if (polled[1].revents == 0) continue;
    const int file = ::accept(listener_, nullptr, nullptr);
    if (file < 0) {  // such as without a free file number: tries again later
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      continue;
    }
    keep_to_itself(file);
    send_without_signals(file);
    connections.emplace_back().file = file;
  }
  for (const Connection& each : connections) ::close(each.file);
}

bool HttpServer::proceed(Connection& connection) const {
  if (connection.sent < connection.out.size()) {
    const ssize_t count = ::send(connection.file, connection.out.data() + connection.sent,
                                 connection.out.size() - connection.sent, kSendFlags);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    connection.sent += static_cast<std::size_t>(count);
    // A connection that is closed with unread bytes would lose the response.
    if (connection.sent == connection.out.size()) ::shutdown(connection.file, SHUT_WR);
    return true;
  }
  char bytes[4096];
  const ssize_t count = ::recv(connection.file, bytes, sizeof bytes, 0);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  if (count == 0) return false;
  if (!connection.out.empty()) return true;  // after the response, nothing counts
  connection.in.append(bytes, static_cast<std::size_t>(count));
  if (connection.in.find("\r\n\r\n") != std::string::npos) {
    connection.out = http_text(respond(connection.in));
  } else if (connection.in.size() > kMaxRequest) {
    connection.out = http_text({.status = 431, .body = "the request is too long\n"});
  }
  return true;
}

HttpResponse HttpServer::respond(const std::string& request) const {
  std::string_view rest = request;
  std::string_view head = take_until(rest, "\r\n\r\n");
  std::string_view line = take_until(head, "\r\n");
  HttpRequest got;
  got.method = take_until(line, " ");
  std::string_view target = take_until(line, " ");
  if (target.empty() || target.front() != '/' || !line.starts_with("HTTP/1."))
    return {.status = 400, .body = "expected an HTTP/1.1 request\n"};
  const std::vector<std::string> hosts = headers_of(head, "Host");
  const std::string own = fmt::format("127.0.0.1:{}", port_);
  const std::string named = fmt::format("localhost:{}", port_);
  if (hosts.size() != 1 || (hosts[0] != own && hosts[0] != named))
    return {.status = 403, .body = fmt::format("expected the host {} or {}\n", own, named)};
  for (const std::string& origin : headers_of(head, "Origin")) {
    if (origin != "http://" + hosts[0])
      return {.status = 403, .body = "the request comes from another site\n"};
  }
  const std::vector<std::string> lengths = headers_of(head, "Content-Length");
  if (lengths.size() > 1 || (lengths.size() == 1 && lengths[0] != "0") ||
      !headers_of(head, "Transfer-Encoding").empty() || !rest.empty())
    return {.status = 413, .body = "expected a request without a body\n"};
  got.path = take_until(target, "?");
  while (!target.empty()) {
    std::string_view value = take_until(target, "&");
    const std::string_view key = take_until(value, "=");
    got.query[std::string(key)] = value;
  }
  try {
    return handler_(got);
  } catch (const std::exception& error) {
    return {.status = 500, .body = fmt::format("{}\n", error.what())};
  }
}

}  // namespace tensorgrad::cli
