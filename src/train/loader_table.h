// SPDX-License-Identifier: MIT
// The data loaders that a trainer saves and loads with its own state.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "train/checkpoint.h"
#include "train/data_loader.h"

namespace tensorgrad::inline TENSORGRAD_ABI::detail {

class LoaderTable {
 public:
  using States = std::vector<std::pair<std::shared_ptr<LoaderImpl>, LoaderState>>;

  // Throws UserError if another loader has the name.
  void add(const std::string& name, const std::shared_ptr<LoaderImpl>& loader);
  // Throws UserError if a loader was destroyed.
  void check_alive() const;
  void reset() const;

  // Returns the positions of the loaders that still exist, as fields of a checkpoint.
  [[nodiscard]] std::map<std::string, std::string> fields() const;
  // Returns the positions in a checkpoint. Throws UserError if its loaders differ or a position
  // does not fit.
  [[nodiscard]] States read(const Checkpoint& checkpoint, const std::string& path) const;

 private:
  [[nodiscard]] std::shared_ptr<LoaderImpl> find(const std::string& name) const;

  // Weak, so that the threads of a loader end when the user destroys it.
  std::map<std::string, std::weak_ptr<LoaderImpl>> loaders_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::detail
