// SPDX-License-Identifier: MIT
// Batches of samples that a function of the user's makes, prefetched by threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "tensorgrad/train/inputs.h"
#include "tensorgrad/train/handle.h"

namespace tensorgrad {

namespace detail {
class LoaderImpl;
}

struct LoaderOptions {
  std::int64_t batch = 1;  // samples
  // In an order that seed and epoch decide, anew for each epoch; it is the order of a trainer's own
  // dataset with that seed.
  bool shuffle = true;
  // Leave out what remains of an epoch and is no full batch: a program takes one size. Else the
  // last batch is shorter.
  bool drop_last = true;
  int workers = 1;   // threads, at most 256; 0, or none to be had: next() makes the batch itself
  int prefetch = 2;  // with workers: batches that are made or being made before they are asked for
  std::uint32_t seed = 0;
};

// The place of a loader: what comes next.
struct LoaderState {
  std::int64_t epoch = 0;
  std::int64_t position = 0;  // batches of the epoch that have been given out
  std::uint32_t seed = 0;

  bool operator==(const LoaderState&) const = default;
};

struct Batch {
  Outputs fields;             // by name; a sample's [...] becomes [samples, ...]
  std::int64_t epoch = 0;     // from 0
  std::int64_t position = 0;  // in the epoch, from 0
  std::int64_t samples = 0;

  // For Trainer::step(); refers to this batch's memory.
  operator Feed() const;  // NOLINT(google-explicit-constructor)
};

// Gives batches without end, one epoch after another. What they hold and their order depend on
// nothing but the function and the seed: not on the number of threads. Movable. The threads begin
// with the first next() and end with the loader, which waits for the samples they are making.
class DataLoader {
 public:
  using Get = std::function<Outputs(std::int64_t index, std::int64_t epoch)>;

  // Samples 0 .. size - 1: `get(index)`, or `get(index, epoch)`, gives one, the same fields and
  // types each time. It is called by several threads at once. Throws UserError on options out of
  // range, and where there is no batch in an epoch.
  template <class Function>
    requires(std::is_invocable_r_v<Outputs, const Function&, std::int64_t> ||
             std::is_invocable_r_v<Outputs, const Function&, std::int64_t, std::int64_t>)
  DataLoader(std::int64_t size, Function get, const LoaderOptions& options = {},
             Loc loc = Loc::current())
      : DataLoader(with_epoch(std::move(get)), size, options, loc) {}
  DataLoader(DataLoader&&) noexcept = default;
  DataLoader& operator=(DataLoader&&) noexcept = default;
  DataLoader(const DataLoader&) = delete;
  DataLoader& operator=(const DataLoader&) = delete;
  ~DataLoader() = default;

  // The next batch. Rethrows what the function threw, an Error with "while making sample ..." added
  // to it, anything else as a UserError with the sample's index; the place stays where it is, so
  // that the next call tries that batch again. Throws ShapeError or DtypeError where a sample's
  // fields are not those of the batch's first.
  Batch next(Loc loc = Loc::current());

  [[nodiscard]] std::int64_t size() const;
  [[nodiscard]] std::int64_t batches_per_epoch() const;
  [[nodiscard]] LoaderState state() const;
  // Goes on from there; what has been prefetched is dropped. Throws UserError on a place that is
  // not in an epoch.
  void load_state(const LoaderState& state, Loc loc = Loc::current());

 private:
  friend class TrainerBase;
  DataLoader(Get get, std::int64_t size, const LoaderOptions& options, Loc loc);
  template <class Function>
  static Get with_epoch(Function get) {
    if constexpr (std::is_invocable_r_v<Outputs, const Function&, std::int64_t, std::int64_t>) {
      return get;
    } else {
      return [get = std::move(get)](std::int64_t index, std::int64_t) { return get(index); };
    }
  }

  detail::Handle<detail::LoaderImpl> impl_;
};

}  // namespace tensorgrad
