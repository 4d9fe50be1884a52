// SPDX-License-Identifier: MIT
// The live page of a run, served on the loopback interface.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>

#include "os/http_server.h"
#include "ui/live_run.h"

namespace tensorgrad::cli {

class RunPage final : public LiveRun {
 public:
  // Opens the port, before anything of the run is done. Throws UserError as HttpServer().
  explicit RunPage(int port);
  // Lets a page that is open fetch the end of the run, for at most kLastPoll.
  ~RunPage() override;
  RunPage(const RunPage&) = delete;
  RunPage& operator=(const RunPage&) = delete;

 private:
  // Starts to serve, and prints the address with its token.
  void show() override;
  void show_end() override;
  HttpResponse answer(const HttpRequest& request);
  HttpResponse press(const std::string& button);

  std::string token_;
  std::mutex polls_;  // guards the following
  std::condition_variable polled_;
  double polled_at_ = -1e9;
  bool has_ended_ = false, end_was_seen_ = false;
  HttpServer server_;  // last: its thread uses the others
};

}  // namespace tensorgrad::cli
