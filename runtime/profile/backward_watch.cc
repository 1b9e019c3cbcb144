#include "runtime/profile/backward_watch.h"

#include <ATen/record_function.h>

namespace pfeife {
namespace {

thread_local const std::function<void(std::int64_t)>* current = nullptr;

std::unique_ptr<at::ObserverContext> note(const at::RecordFunction& function) {
  if (current) (*current)(function.seqNr());
  return nullptr;
}

}  // namespace

BackwardWatch::BackwardWatch(std::function<void(std::int64_t)> begins)
    : begins_(std::move(begins)) {
  current = &begins_;
  callback_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(&note).scopes({at::RecordScope::BACKWARD_FUNCTION}));
}

BackwardWatch::~BackwardWatch() {
  at::removeCallback(callback_);
  current = nullptr;
}

}  // namespace pfeife
