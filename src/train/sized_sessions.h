// SPDX-License-Identifier: MIT
// The programs of one function or loss, one for each dynamic size.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "train/program_session.h"

namespace tensorgrad::inline TENSORGRAD_ABI::detail {

struct SizedSession {
  std::int64_t size = 0;
  std::unique_ptr<ProgramSession> session, capturing;  // the second one also returns captures
  // Memory of outputs that was handed to the user, by buffer.
  std::map<std::string, std::vector<std::shared_ptr<Memory>>> given_away = {};
};

class SizedSessions {
 public:
  // Compiles for a size. The program shares parameters and states with first().
  using Build = std::function<std::unique_ptr<ProgramSession>(std::int64_t size)>;

  // `options` names the struct with dynamic_size and max_cached_sizes. Throws UserError if these
  // are out of range, and ShapeError if an input has several dynamic sizes.
  SizedSessions(const std::vector<InputSpec>& inputs, std::int64_t dynamic_size,
                int max_cached_sizes, const std::string& options, const SourceLocation& location);

  [[nodiscard]] bool dynamic() const { return dynamic_; }
  // Returns the program that owns the parameters and states. It is never evicted.
  [[nodiscard]] SizedSession& first() { return first_; }
  [[nodiscard]] const SizedSession& first() const { return first_; }
  // The other programs, most recently used first.
  [[nodiscard]] std::list<SizedSession>& others() { return others_; }
  // Returns the program for the size. If there is none, compiles it and evicts the least recently
  // used one.
  SizedSession& of_size(std::int64_t size, const Build& build);
  // Throws if these inputs do not fit a program of their size.
  void check(const FeedView& inputs) const;
  // Returns the program for inputs that were checked.
  SizedSession& of_checked(const FeedView& inputs, const Build& build);
  // Checks the inputs and returns their program.
  SizedSession& of_inputs(const FeedView& inputs, const Build& build) {
    check(inputs);
    return of_checked(inputs, build);
  }
  // Throws UserError if first() has no such state.
  void check_state(const std::string& name, const Type& type, std::int64_t size) const;
  // All compiled sizes, first() first. Empty without a dynamic size.
  [[nodiscard]] std::vector<std::int64_t> sizes() const;

 private:
  std::vector<InputSpec> inputs_;
  SourceLocation location_;
  bool dynamic_;
  std::size_t max_cached_;
  SizedSession first_;
  std::list<SizedSession> others_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::detail
