#include <ATen/record_function.h>

#include "runtime/profile/node_passes.h"

namespace pfeife {
namespace {

thread_local const std::function<void(std::int64_t)>* watching = nullptr;

std::unique_ptr<at::ObserverContext> note(const at::RecordFunction& function) {
  if (watching) (*watching)(function.seqNr());
  return nullptr;
}

}  // namespace

BackwardWatch::BackwardWatch(std::function<void(std::int64_t)> begins)
    : begins_(std::move(begins)) {
  watching = &begins_;
  callback_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(&note).scopes({at::RecordScope::BACKWARD_FUNCTION}));
}

BackwardWatch::~BackwardWatch() {
  at::removeCallback(callback_);
  watching = nullptr;
}

}  // namespace pfeife
