#include <torch/csrc/autograd/saved_variable_hooks.h>

#include "runtime/model/stage_program.h"

namespace pfeife {
namespace {

thread_local const std::function<void(const at::Tensor&)>* noting = nullptr;

/// Holds the tensor in the place of the saved variable.
struct Holder : torch::autograd::SavedVariableHooks {
  at::Tensor tensor;
  void call_pack_hook(const at::Tensor& saved) override {
    tensor = saved.tensor_data();
    if (noting) (*noting)(tensor);
  }
  at::Tensor call_unpack_hook() override { return tensor; }
};

/// LibTorch's engine; the hooks of saved tensors are a virtual function of it.
struct NotingEngine : torch::autograd::Engine {
  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    return noting ? std::make_unique<Holder>() : nullptr;
  }
  static torch::autograd::Engine& get() {
    static auto* engine = new NotingEngine;  // its device threads may outlive main
    return *engine;
  }
};

}  // namespace

SavedTensorNotes::SavedTensorNotes(std::function<void(const at::Tensor&)> note)
    : note_(std::move(note)) {
  torch::autograd::set_default_engine_stub(&NotingEngine::get);
  noting = &note_;
}

SavedTensorNotes::~SavedTensorNotes() { noting = nullptr; }

}  // namespace pfeife
