// SPDX-License-Identifier: MIT
// Another process that holds a file, for tests of locks.
#pragma once

#include <cstdint>
#include <string>

namespace tensorgrad::test {

// Holds a file, until it is killed. The constructor returns once it does.
class Holder {
 public:
  enum class Kind {
    kAtomicFile,       // that has been written in part
    kTemporaryFolder,  // with a file "model"
    kLock,
  };
  Holder(Kind kind, const std::string& path);
  ~Holder() { kill(); }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  void kill();
  [[nodiscard]] int pid() const { return pid_; }

 private:
  int pid_ = -1;
  std::intptr_t handle_ = -1;  // on Windows
};

}  // namespace tensorgrad::test
