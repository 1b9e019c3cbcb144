// The verbs of pfeife-run: what each is asked, and the function that does it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/launch/start_ranks.h"
#include "runtime/plan_request.h"

namespace pfeife {

// pfeife-run check: one step against the unsplit model.

struct CheckRequest {
  PlanRequest what;
  LaunchOptions launch;
  std::optional<double> tolerance;  ///< largest |g - g0| / |g0|; empty = by type
};

/// Prints what was compared, and returns the exit code.
int check_verb(CheckRequest request);

// pfeife-run doctor: what a run would find on this machine, on a page of text.

struct DoctorRequest {
  std::string device;  ///< "cpu" or "cuda": what runs are to use; "" = cuda where there is a driver
  LaunchOptions launch;
};

/// Prints driver, libraries, cards with their free memory, and measured links: between cards by
/// NCCL where there are several, between host and card, between two processes by sockets. Returns
/// 0 if runs on `device` can start, 4 if not; the last lines say why and what helps.
int doctor_verb(const DoctorRequest& request);

// pfeife-run evaluate: the model's loss over a folder of samples, forward only.

struct EvaluateRequest {
  PlanRequest what;
  LaunchOptions launch;
  std::string data;    ///< folder of .npy files
  std::string resume;  ///< folder of checkpoints, or one, whose parameters are taken; "" = none
};

/// Evaluates every sample once by the forwards of a plan, of training steps or forward only, prints
/// loss, rate and memory, and returns the exit code.
int evaluate_verb(EvaluateRequest request);

// pfeife-run profile: what a model's nodes cost on this machine, or what the machine's links do.

struct ProfileRequest {
  std::string model;    ///< .pt2
  std::string out;      ///< profile.yaml; "" = none
  std::string samples;  ///< ProfileOptions::samples
  std::string device = "cpu";
  std::string device_kind;  ///< "" = x86_core on a CPU, else an error
  std::string precision = "fp32", optimizer = "adam";
  std::optional<std::int64_t> microbatch_size;  ///< empty = as exported
  int repetitions = 0;                          ///< 0 = as many as fit into some seconds
  int microbatches = 4;                         ///< of each step that is timed
  int beside = 0;                               ///< other processes that do the same meanwhile
  std::uint64_t seed = 0;
  LaunchOptions launch;
};

struct LinksRequest {
  std::string out;  ///< cluster.yaml; "" = it is printed
  std::string device_kind = "x86_core";
  int devices = 2;  ///< of the cluster; two of them are measured
  LaunchOptions launch;
};

/// Measures, writes the file, prints how well it adds up, and returns the exit code.
int profile_verb(const ProfileRequest& request);

/// Measures two ranks of this machine and the link between them, both at once, and writes a cluster
/// file. Returns the exit code.
int links_verb(const LinksRequest& request);

// pfeife-run train: timed steps; or training on data, with checkpoints.

struct TrainRequest {
  PlanRequest what;
  LaunchOptions launch;
  int steps = 10;
  std::string out;     ///< measurement.csv; "" = none
  std::string traces;  ///< folder of a trace of each rank in torch.profiler's format; "" = none
  std::string data;    ///< folder of .npy files; "" = synthetic
  std::string save;    ///< folder of checkpoints; "" = none
  int save_every = 0;  ///< steps; 0 = after the last
  std::string resume;  ///< folder of checkpoints, or one; "" = none
  bool new_data =
      false;             ///< continues on other data than the checkpoint's, from their first sample
  bool shuffle = false;  ///< the samples, each epoch anew
  /// The optimizer's; empty = as the checkpoint to resume has it, or else OptimizerOptions.
  std::optional<double> learning_rate, min_lr, momentum, beta1, beta2, epsilon, weight_decay,
      clip_norm;
  std::optional<std::int64_t> warmup_steps, decay_steps;
  std::optional<std::string> schedule;  ///< "constant", "linear", "cosine"
  bool defer_batch_norm = false;        ///< running statistics of a step's whole batch

  bool trains() const { return !data.empty() || !save.empty() || !resume.empty(); }
};

/// Trains, prints time and losses, and returns the exit code.
int train_verb(TrainRequest request);

}  // namespace pfeife
