// SPDX-License-Identifier: MIT
// An HTTP/1.1 server on the loopback interface, for the live page of a run. It is written here
// because libraries of HTTP servers that distributions have link OpenSSL, which each `tg` would
// then load at its start. Not on Windows yet.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <thread>

namespace tensorgrad::cli {

struct HttpRequest {
  std::string method;                        // "GET"
  std::string path;                          // "/state", without the query
  std::map<std::string, std::string> query;  // of the target; escapes are not decoded
};

struct HttpResponse {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body = {};
  std::string allow = {};  // methods, if the status is 405
};

// Serves requests of this machine in one thread of its own, each on a new connection. Refuses, with
// status 403, requests whose Host or Origin is another than this server: a page of another site can
// have its own name resolved to 127.0.0.1.
class HttpServer {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  // Opens a port of 127.0.0.1; 0 selects a free one. Throws UserError if it cannot be opened, such
  // as one that is in use.
  explicit HttpServer(int port);
  // Sends the responses that are ready, for at most half a second, and closes the port.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] int port() const { return port_; }
  // Starts to answer. `handler` is called in the thread of the server.
  void start(Handler handler);

 private:
  struct Connection;

  void serve();
  // Reads and writes what is possible. Returns false if the connection is to be closed.
  [[nodiscard]] bool proceed(Connection& connection) const;
  [[nodiscard]] HttpResponse respond(const std::string& request) const;

  int listener_ = -1;
  int port_ = 0;
  int wake_[2] = {-1, -1};  // a pipe, which the destructor closes to end the thread
  Handler handler_;
  std::thread thread_;
};

}  // namespace tensorgrad::cli
