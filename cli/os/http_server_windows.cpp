// SPDX-License-Identifier: MIT
#include "os/http_server.h"

#include "tensorgrad/error.h"

namespace tensorgrad::cli {

HttpServer::HttpServer(int) { throw UserError("--ui: not supported on Windows yet"); }
HttpServer::~HttpServer() = default;
void HttpServer::start(Handler) {}

}  // namespace tensorgrad::cli
