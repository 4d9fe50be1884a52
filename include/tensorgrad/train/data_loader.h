// SPDX-License-Identifier: MIT
// Batches of samples from a user function, prefetched by worker threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "tensorgrad/train/handle.h"
#include "tensorgrad/train/inputs.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

namespace detail {
class LoaderImpl;
}

/// Options of a DataLoader (compare `torch.utils.data.DataLoader`).
struct LoaderOptions {
  std::int64_t batch = 1;  ///< Samples per batch; at least 1.

  /// Shuffles the samples in each epoch. The order depends only on seed and epoch, and equals that
  /// of a CompileOptions::dataset with the same seed.
  bool shuffle = true;

  /// Drops the incomplete batch at the end of an epoch, since a training program is compiled for
  /// one batch size. If false, the last batch is smaller.
  bool drop_last = true;

  int workers = 1;   ///< Worker threads, 0 to 256. If there are none, next() makes the batch.
  int prefetch = 2;  ///< Batches that workers prepare ahead, at least 1. Unused with 0 workers.
  std::uint32_t seed = 0;  ///< Seed of the order.

  /// Number of loaders, of equal options and different `shard`, among which the samples are
  /// divided, for example one for each rank of distributed training. Batch i of a shard is batch
  /// i * num_shards + shard of a single loader. With several shards, `drop_last` must be set, and
  /// up to `num_shards` * `batch` - 1 samples are skipped in each epoch.
  int num_shards = 1;

  int shard = 0;  ///< Shard that this loader draws, from 0 to `num_shards` - 1.
};

/// Position of a loader: the batch that next() returns next.
struct LoaderState {
  std::int64_t epoch = 0;     ///< Counted from 0.
  std::int64_t position = 0;  ///< Number of batches already returned in the epoch.
  std::uint32_t seed = 0;     ///< Seed of the order.

  bool operator==(const LoaderState&) const = default;
};

/// Batch of samples returned by DataLoader::next().
struct Batch {
  NamedTensors fields;        ///< Fields by name; a sample's [...] becomes [samples, ...].
  std::int64_t epoch = 0;     ///< Counted from 0.
  std::int64_t position = 0;  ///< Index of the batch in its epoch, counted from 0.
  std::int64_t samples = 0;   ///< Number of samples.

  /// Converts to the inputs of a step, as in `trainer.step(loader.next())`. Refers to the memory of
  /// this batch, or takes it if the batch is a temporary.
  operator FeedView() const& TENSORGRAD_LIFETIMEBOUND;  // NOLINT(google-explicit-constructor)
  operator Feed() &&;                                   // NOLINT(google-explicit-constructor)
};

/// Endless sequence of batches, epoch by epoch. The batches and their order depend only on the
/// function and the seed, not on the number of threads. Worker threads start at the first next().
/// The destructor waits for the samples that they are producing. Movable, not copyable.
/// ```cpp
/// tg::DataLoader loader(
///     files.size(), [&](std::int64_t i) -> tg::NamedTensors { return read_sample(files[i]); },
///     {.batch = 64, .workers = 4});
/// trainer.step(loader.next());
/// ```
class DataLoader {
 public:
  /// Function that returns the fields of a sample by its index, for an epoch counted from 0.
  using Get = std::function<NamedTensors(std::int64_t index, std::int64_t epoch)>;

  /// Creates a loader over the samples [0, size). `get(index)` or `get(index, epoch)` returns one
  /// sample; all samples must have the same fields, shapes and dtypes. Several threads call `get`
  /// concurrently. Throws UserError if `size` is not in [1, 2^31 - 1], an option is out of range,
  /// or an epoch has no complete batch and `drop_last` is set.
  template <class Function>
    requires(std::is_invocable_r_v<NamedTensors, const Function&, std::int64_t> ||
             std::is_invocable_r_v<NamedTensors, const Function&, std::int64_t, std::int64_t>)
  DataLoader(std::int64_t size, Function get, const LoaderOptions& options = {},
             Loc loc = Loc::current())
      : DataLoader(with_epoch(std::move(get)), size, options, loc) {}

  DataLoader(DataLoader&&) noexcept = default;
  DataLoader& operator=(DataLoader&&) noexcept = default;
  DataLoader(const DataLoader&) = delete;
  DataLoader& operator=(const DataLoader&) = delete;
  ~DataLoader() = default;

  /// Returns the next batch. Must not be called by two threads at once. Rethrows exceptions of the
  /// function: an Error with the sample's index added as context, any other as UserError with that
  /// index. Throws ShapeError, DtypeError or UserError if a sample's shapes, dtypes or field names
  /// differ from those of the first sample in the batch. After an exception the position is
  /// unchanged, so the next call retries the same batch.
  Batch next(Loc loc = Loc::current());

  /// Returns the number of samples.
  [[nodiscard]] std::int64_t size() const;

  /// Returns the number of batches in an epoch.
  [[nodiscard]] std::int64_t batches_per_epoch() const;

  /// Returns the position of the next batch. TrainerBase::add_loader() stores it in checkpoints.
  [[nodiscard]] LoaderState state() const;

  /// Continues from a position and discards prefetched batches. Throws UserError if the epoch is
  /// negative or has no batch at that position.
  void load_state(const LoaderState& state, Loc loc = Loc::current());

 private:
  friend class TrainerBase;
  DataLoader(Get get, std::int64_t size, const LoaderOptions& options, Loc loc);
  template <class Function>
  static Get with_epoch(Function get) {
    if constexpr (std::is_invocable_r_v<NamedTensors, const Function&, std::int64_t,
                                        std::int64_t>) {
      return get;
    } else {
      return [get = std::move(get)](std::int64_t index, std::int64_t) { return get(index); };
    }
  }

  detail::Handle<detail::LoaderImpl> impl_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
