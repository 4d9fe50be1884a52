// SPDX-License-Identifier: MIT
// Helpers for the asynchronous calls of trainers and functions.
#pragma once

#include <memory>
#include <utility>

#include "tensorgrad/train/async.h"
#include "tensorgrad/train/handle.h"
#include "trace/source_location.h"
#include "train/call_lock.h"

namespace tensorgrad::inline TENSORGRAD_ABI::detail {

// Returns the handle of an implementation that users get. When its last copy is destroyed, it
// cancels calls that have not begun and waits for the running one.
template <class Impl>
std::shared_ptr<Impl> make_public_handle(std::shared_ptr<Impl> impl) {
  struct Owner {
    explicit Owner(std::shared_ptr<Impl> owned) : impl(std::move(owned)) {}
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;
    ~Owner() {
      CallLock& call_lock = *impl->call_lock();
      call_lock.abort();
      call_lock.calls().wait_for(&call_lock);
    }
    std::shared_ptr<Impl> impl;
  };
  Impl* raw = impl.get();
  return {std::make_shared<Owner>(std::move(impl)), raw};
}

// Queues a call made at `location`. `run` sets the result of the future.
template <class Impl>
void push_call(Impl& impl, std::shared_ptr<FutureBase> state, std::function<void()> run,
               Executor* executor, const SourceLocation& location) {
  const std::shared_ptr<CallLock>& call_lock = impl.call_lock();
  auto queued = [call_lock, made = CallTime(*call_lock), future = state, run = std::move(run),
                 location] {
    if (!made.aborted()) return made.during(run);
    future->set_error(std::make_exception_ptr(AbortedError("the call was aborted", location)));
  };
  call_lock->calls().push({std::move(state), std::move(queued), call_lock.get()}, executor);
}

// Queues `call(impl)` and returns its future. Errors get `location`.
template <class Impl, class Call>
auto queued(const Handle<Impl>& handle, Executor* executor, const SourceLocation& location,
            Call call) {
  using Result = std::invoke_result_t<Call&, Impl&>;
  auto prepared = prepare_call<Result>(
      [weak = handle->weak_from_this(), location, call = std::move(call)]() mutable {
        return with_source_location(location, [&] {
          // If the handle is gone, the call is aborted, unless it is already running and suspended.
          const std::shared_ptr<Impl> impl = weak.lock();
          if (impl == nullptr) throw_aborted();
          return call(*impl);
        });
      });
  push_call(*handle, prepared.state, std::move(prepared.run), executor, location);
  return Future<Result>(std::move(prepared.state));
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::detail
