// SPDX-License-Identifier: MIT
#include "train/data_loader.h"

#include <algorithm>
#include <array>
#include <limits>
#include <system_error>
#include <utility>

#include "compile/runtime/host_random.h"
#include "trace/source_location.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace detail {
namespace {

constexpr int kMaxWorkers = 256;

std::int64_t checked_batches(std::int64_t size, const LoaderOptions& options) {
  const auto refuse = [](const std::string& what) { throw UserError("data loader: " + what); };
  if (size < 1 || size > std::numeric_limits<std::int32_t>::max())
    refuse("expected 1 to 2^31 - 1 samples, got " + std::to_string(size));
  if (options.batch < 1)
    refuse("expected a batch of at least 1, got " + std::to_string(options.batch));
  if (options.num_shards < 1 || options.shard < 0 || options.shard >= options.num_shards) {
    refuse("expected shard < num_shards, got shard " + std::to_string(options.shard) + " of " +
           std::to_string(options.num_shards));
  }
  if (options.num_shards > 1 && !options.drop_last)
    refuse("drop_last must be set with several shards");
  if (options.num_shards > 1 && options.batch > size / options.num_shards) {
    refuse(std::to_string(options.num_shards) + " batches of " + std::to_string(options.batch) +
           " are more than the " + std::to_string(size) + " samples");
  }
  if (options.drop_last && options.batch > size) {
    refuse("a batch of " + std::to_string(options.batch) + " is larger than the " +
           std::to_string(size) + " samples");
  }
  if (options.workers < 0 || options.workers > kMaxWorkers) {
    refuse("expected 0 to " + std::to_string(kMaxWorkers) + " workers, got " +
           std::to_string(options.workers));
  }
  if (options.workers > 0 && options.prefetch < 1)
    refuse("prefetch must be at least 1 with workers, got " + std::to_string(options.prefetch));
  if (options.num_shards > 1) return size / (options.batch * options.num_shards);
  return size / options.batch + (!options.drop_last && size % options.batch != 0 ? 1 : 0);
}

std::string type_text(const HostTensor& tensor) {
  return std::string(to_string(tensor.dtype)) + to_string(tensor.shape);
}

// Appends a sample to a batch of `batch.samples` samples.
void append(Batch& batch, const NamedTensors& sample, std::int64_t index, bool first) {
  const std::string which = "data loader: sample " + std::to_string(index);
  for (const auto& [name, field] : sample) {
    const auto count = static_cast<std::size_t>(numel(field.shape));
    if (field.bytes.size() != count * element_bytes(field.dtype)) {
      throw ShapeError(which + ": field '" + name + "' is " + type_text(field) + " but has " +
                       std::to_string(field.bytes.size()) + " bytes");
    }
    auto into = batch.fields.find(name);
    Shape shape = field.shape;
    shape.insert(shape.begin(), batch.samples);
    if (first) {
      into = batch.fields.emplace(name, HostTensor{field.dtype, shape, {}}).first;
      into->second.bytes.reserve(field.bytes.size() * static_cast<std::size_t>(batch.samples));
    }
    if (into == batch.fields.end())
      throw UserError(which + " has a field '" + name + "', unlike other samples in the batch");
    if (into->second.dtype != field.dtype)
      throw DtypeError(which + ": field '" + name + "' is " + type_text(field) +
                       ", other samples in the batch have " +
                       std::string(to_string(into->second.dtype)));
    if (into->second.shape != shape) {
      const Shape& whole = into->second.shape;
      throw ShapeError(which + ": field '" + name + "' is " + type_text(field) +
                       ", other samples in the batch have " +
                       type_text({field.dtype, Shape(whole.begin() + 1, whole.end()), {}}));
    }
    into->second.bytes.insert(into->second.bytes.end(), field.bytes.begin(), field.bytes.end());
  }
  for (const auto& [name, field] : batch.fields) {
    if (!sample.contains(name))
      throw UserError(which + " has no field '" + name + "', unlike other samples in the batch");
  }
}

}  // namespace

LoaderImpl::LoaderImpl(DataLoader::Get get, std::int64_t size, const LoaderOptions& options)
    : get_(std::move(get)),
      size_(size),
      options_(options),
      batches_(checked_batches(size, options)),
      given_{0, 0, options.seed},
      begun_(given_) {}

LoaderImpl::~LoaderImpl() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
  }
  room_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

LoaderState LoaderImpl::after(LoaderState place) const {
  if (++place.position == batches_) place = {place.epoch + 1, 0, place.seed};
  return place;
}

void LoaderImpl::work() {
  Lock lock(mutex_);
  for (;;) {
    room_.wait(lock, [&] {
      return stopping_ || (!failure_ && jobs_.size() < static_cast<std::size_t>(options_.prefetch));
    });
    if (stopping_) return;
    try {
      produce(lock);
    } catch (...) {  // no memory for the job; the lock is held
      failure_ = std::current_exception();
      finished_.notify_all();
    }
  }
}

void LoaderImpl::produce(Lock& lock) {
  const auto job = std::make_shared<Job>();
  job->place = begun_;
  try {
    set_order(*job);
  } catch (...) {
    job->error = std::current_exception();
  }
  jobs_.push_back(job);
  begun_ = after(begun_);
  lock.unlock();
  if (!job->error) make(*job);
  lock.lock();
  job->done = true;
  finished_.notify_all();
}

void LoaderImpl::set_order(Job& job) {
  if (!options_.shuffle) return;
  const LoaderState of = {job.place.epoch, 0, job.place.seed};
  if (order_ == nullptr || order_of_ != of) {
    order_ = std::make_shared<const std::vector<std::int32_t>>(
        random_order(size_, of.seed, static_cast<std::uint32_t>(of.epoch)));
    order_of_ = of;
  }
  job.order = order_;
}

void LoaderImpl::make(Job& job) const {
  try {
    const std::int64_t first =
        (job.place.position * options_.num_shards + options_.shard) * options_.batch;
    Batch& batch = job.batch;
    batch.epoch = job.place.epoch;
    batch.position = job.place.position;
    batch.samples = std::min(options_.batch, size_ - first);
    for (std::int64_t i = 0; i < batch.samples && !stopping_; ++i) {
      const std::int64_t index =
          job.order ? (*job.order)[static_cast<std::size_t>(first + i)] : first + i;
      append(batch, sample(index, batch.epoch), index, i == 0);
    }
  } catch (...) {
    job.error = std::current_exception();
  }
}

NamedTensors LoaderImpl::sample(std::int64_t index, std::int64_t epoch) const {
  const std::string which = "sample " + std::to_string(index);
  try {
    return get_(index, epoch);
  } catch (Error& error) {
    error.add_context("while loading " + which + " of epoch " + std::to_string(epoch));
    throw;
  } catch (const std::exception& error) {
    throw UserError("data loader: " + which + ": " + error.what());
  } catch (...) {
    throw UserError("data loader: " + which +
                    ": the function threw something other than a std::exception");
  }
}

Batch LoaderImpl::next() {
  Lock lock(mutex_);
  try {
    while (threads_.size() < static_cast<std::size_t>(options_.workers))
      threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    // No more threads are available. Continue with those that exist, or on this thread.
  }
  if (threads_.empty()) produce(lock);
  finished_.wait(lock, [&] { return failure_ || (!jobs_.empty() && jobs_.front()->done); });
  if (failure_) {
    room_.notify_all();
    std::rethrow_exception(std::exchange(failure_, nullptr));
  }
  const std::shared_ptr<Job> job = std::move(jobs_.front());
  if (job->error) {
    restart(job->place);
    std::rethrow_exception(job->error);
  }
  jobs_.pop_front();
  given_ = after(job->place);
  room_.notify_one();
  return std::move(job->batch);
}

// Discards the queue. Jobs in progress finish, but their results are not used.
void LoaderImpl::restart(const LoaderState& from) {
  jobs_.clear();
  given_ = begun_ = from;
  room_.notify_all();
}

LoaderState LoaderImpl::state() const {
  const Lock lock(mutex_);
  return given_;
}

void LoaderImpl::check(const LoaderState& state) const {
  if (state.epoch >= 0 && state.position >= 0 && state.position < batches_) return;
  throw UserError("data loader: batch " + std::to_string(state.position) + " of epoch " +
                  std::to_string(state.epoch) + " is out of range: an epoch has " +
                  std::to_string(batches_) + " batches");
}

void LoaderImpl::load_state(const LoaderState& state) {
  check(state);
  const Lock lock(mutex_);
  restart(state);
}

std::string LoaderImpl::text() const {
  const LoaderState now = state();
  std::string text;
  for (const std::int64_t number :
       {now.epoch, now.position, std::int64_t{now.seed}, size_, all_parts()})
    text += (text.empty() ? "" : " ") + std::to_string(number);
  return text;
}

LoaderState LoaderImpl::parse(const std::string& text) const {
  std::array<std::int64_t, 5> numbers{};
  std::size_t at = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = at > text.size() ? "" : text.substr(at, end - at);
    const bool last = i + 1 == numbers.size();
    if (word.empty() || word.size() > 18 || (end == text.size()) != last ||
        word.find_first_not_of("0123456789") != std::string::npos) {
      throw UserError("invalid data loader state '" + text + "'");
    }
    numbers[i] = std::stoll(word);
    at = end + 1;
  }
  const auto [epoch, position, seed, samples, batch] = numbers;
  if (samples != size_ || batch != all_parts() || seed > 0xffffffffLL) {
    throw UserError("the saved state is for " + std::to_string(samples) +
                    " samples in batches of " + std::to_string(batch) + ", the loader has " +
                    std::to_string(size_) + " samples in batches of " +
                    std::to_string(all_parts()));
  }
  const LoaderState state{epoch, position, static_cast<std::uint32_t>(seed)};
  check(state);
  return state;
}

}  // namespace detail

Batch::operator FeedView() const& { return fields; }
Batch::operator Feed() && { return FeedView(std::move(fields)); }

DataLoader::DataLoader(Get get, std::int64_t size, const LoaderOptions& options, Loc loc)
    : impl_(
          with_source_location(
              loc,
              [&] { return std::make_shared<detail::LoaderImpl>(std::move(get), size, options); }),
          "DataLoader") {}

Batch DataLoader::next(Loc loc) {
  return with_source_location(loc, [&] { return impl_->next(); });
}
std::int64_t DataLoader::size() const { return impl_->size(); }
std::int64_t DataLoader::batches_per_epoch() const { return impl_->batches_per_epoch(); }
LoaderState DataLoader::state() const { return impl_->state(); }
void DataLoader::load_state(const LoaderState& state, Loc loc) {
  with_source_location(loc, [&] { impl_->load_state(state); });
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
