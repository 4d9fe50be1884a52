// SPDX-License-Identifier: MIT
// Error: message, user's line and contexts joined into one text.
#include "tensorgrad/error.h"

#include <string_view>

#include "tensorgrad/train/handle.h"

namespace tensorgrad {
namespace {

// None for a header of the standard library: std::make_unique() and the like call for the user,
// whose line nobody knows there.
Site of_user(const Site& site) {
  const bool standard = std::string_view(site.file).find("/include/c++/") != std::string_view::npos;
  return standard ? Site() : site;
}

}  // namespace

std::string to_string(const Site& site) {
  if (!site.known()) return "(unknown line)";
  return std::string(site.file) + ":" + std::to_string(site.line);
}

Error::Error(std::string message, Site site)
    : std::runtime_error(message), message_(std::move(message)), site_(of_user(site)) {
  rebuild();
}

void Error::set_site(const Site& site) {
  if (site_.known()) return;
  site_ = of_user(site);
  rebuild();
}

void Error::add_context(const std::string& context) {
  contexts_ += "\n  - " + context;
  rebuild();
}

void Error::rebuild() {
  full_ = message_;
  if (site_.known()) full_ += "\n  at " + to_string(site_);
  full_ += contexts_;
}

void detail::throw_moved_from(const char* what) {
  throw UserError(std::string(what) + ": it was moved from, so that it has nothing any more");
}

}  // namespace tensorgrad
