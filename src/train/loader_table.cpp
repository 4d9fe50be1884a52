// SPDX-License-Identifier: MIT
#include "train/loader_table.h"

#include <string_view>

namespace tensorgrad::inline TENSORGRAD_ABI::detail {
namespace {

constexpr std::string_view kLoaderPrefix = "loader.";

}  // namespace

void LoaderTable::add(const std::string& name, const std::shared_ptr<LoaderImpl>& loader) {
  std::weak_ptr<LoaderImpl>& kept = loaders_[name];
  if (!kept.expired() && kept.lock() != loader)
    throw UserError("add_loader: the trainer already has a loader '" + name + "'");
  kept = loader;
}

std::shared_ptr<LoaderImpl> LoaderTable::find(const std::string& name) const {
  if (auto found = loaders_.at(name).lock()) return found;
  throw UserError("the data loader '" + name + "' of this trainer no longer exists");
}

void LoaderTable::check_alive() const {
  for (const auto& [name, weak] : loaders_) static_cast<void>(find(name));
}

void LoaderTable::reset() const {
  for (const auto& [name, weak] : loaders_) {
    if (const auto each = weak.lock()) each->reset();
  }
}

std::map<std::string, std::string> LoaderTable::fields() const {
  std::map<std::string, std::string> fields;
  for (const auto& [name, weak] : loaders_) {
    if (const auto each = weak.lock()) fields[std::string(kLoaderPrefix) + name] = each->text();
  }
  return fields;
}

LoaderTable::States LoaderTable::read(const Checkpoint& checkpoint, const std::string& path) const {
  for (const auto& [name, value] : checkpoint.fields) {
    if (name.starts_with(kLoaderPrefix) && !loaders_.contains(name.substr(kLoaderPrefix.size()))) {
      throw UserError(path + ": the checkpoint has the state of a data loader '" +
                      name.substr(kLoaderPrefix.size()) + "'; call add_loader() first");
    }
  }
  States states;
  for (const auto& [name, weak] : loaders_) {
    const std::string& text = text_field(checkpoint, std::string(kLoaderPrefix) + name, path);
    const std::shared_ptr<LoaderImpl> each = find(name);
    try {
      states.emplace_back(each, each->parse(text));
    } catch (const UserError& error) {
      throw UserError(path + ": data loader '" + name + "': " + error.message());
    }
  }
  return states;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::detail
