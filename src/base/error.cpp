// SPDX-License-Identifier: MIT
// Error: joins message, user's location and contexts into one text.
#include "tensorgrad/error.h"

#include <string_view>

#include "tensorgrad/train/handle.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

// Returns an unknown location for headers of the standard library. std::make_unique() and the like
// call constructors for the user, whose location is then unknown.
SourceLocation of_user(const SourceLocation& location) {
  const bool standard =
      std::string_view(location.file).find("/include/c++/") != std::string_view::npos;
  return standard ? SourceLocation() : location;
}

}  // namespace

std::string to_string(const SourceLocation& location) {
  if (!location.known()) return "(unknown line)";
  return std::string(location.file) + ":" + std::to_string(location.line);
}

Error::Error(std::string message, SourceLocation location)
    : std::runtime_error(message), message_(std::move(message)), location_(of_user(location)) {
  rebuild();
}

void Error::set_location(const SourceLocation& location) {
  if (location_.known()) return;
  location_ = of_user(location);
  rebuild();
}

void Error::add_context(const std::string& context) {
  contexts_ += "\n  - " + context;
  rebuild();
}

void Error::rebuild() {
  full_ = message_;
  if (location_.known()) full_ += "\n  at " + to_string(location_);
  full_ += contexts_;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI

namespace tensorgrad::inline TENSORGRAD_ABI::detail {

void throw_moved_from(const char* what) {
  throw UserError(std::string(what) + ": used after it was moved from");
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::detail
