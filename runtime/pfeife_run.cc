// pfeife-run: executes plans. Reads the command line; a verb is a file of its own. See README.md.
#include <algorithm>
#include <boost/program_options.hpp>
#include <iostream>
#include <sstream>
#include <thread>

#include "planner/io/files/command_line.h"
#include "planner/io/plan/plan_file.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/basics/run_main.h"
#include "runtime/device/machine.h"
#include "runtime/verbs.h"

namespace pfeife {
namespace {

namespace options = boost::program_options;
constexpr int kMostBeside = 1023;

using Options = options::options_description;
using Given = options::variables_map;

template <class T>
options::typed_value<T>* value() {
  return options::value<T>();
}

template <class T>
T get(const Given& given, const char* name, T otherwise) {
  return given.count(name) ? given[name].as<T>() : otherwise;
}

template <class T>
std::optional<T> find(const Given& given, const char* name) {
  return given.count(name) ? std::optional(given[name].as<T>()) : std::nullopt;
}

int at_least_one(const Given& given, const char* name, int otherwise) {
  const int number = get(given, name, otherwise);
  if (number < 1) throw ConfigError({}, stream_all("--", name, " must be at least 1"));
  return number;
}

int at_most(const char* name, int number, int most, const char* why) {
  if (number > most)
    throw ConfigError({}, stream_all("--", name, " is ", number, "; at most ", most, why));
  return number;
}

int kernel_threads(const Given& given) {
  return at_most("kernel-threads", at_least_one(given, "kernel-threads", 1),
                 std::max(static_cast<int>(std::thread::hardware_concurrency()), 1),
                 ", the processors of this machine");
}

std::uint64_t seed(const Given& given) {
  const auto number = get<std::int64_t>(given, "seed", 0);
  if (number < 0) throw ConfigError({}, "--seed must not be negative");
  return static_cast<std::uint64_t>(number);
}

void describe_joining(Options& known) {
  known.add_options()("tcp", "TCP also between ranks of one host")(
      "meet-within", value<int>(), "seconds for all ranks to be there; default 60");
}

void describe_plan(Options& known) {
  known.add_options()("model", value<std::string>(), "M.pt2, instead of a plan, or of the plan's")(
      "schedule", value<std::string>(), "S.csv, instead of a plan's")(
      "cuts", value<std::string>(), "\"NODE NODE ...\": graph nodes after which the model is cut")(
      "microbatch-size", value<std::int64_t>(), "without a plan: samples of a microbatch")(
      "fp64", "float32 and 16-bit types become float64")(
      "seed", value<std::int64_t>(), "of initialisation, data and dropout; default 0")(
      "dp", value<int>(),
      "replicas, each with the plan's ranks and batch: a step has dp times the plan's samples")(
      "zero", value<int>(), "1: the replicas divide the optimizer's state (ZeRO 1); default 0")(
      "order", value<std::string>(),
      "dp,pp (default): ranks of the same stages have neighbouring numbers; pp,dp: those of a "
      "replica")("global-batch", value<std::int64_t>(),
                 "samples a step of all replicas, to be told if they are others")(
      "threads", "ranks as threads of this process instead of processes")(
      "kernel-threads", value<int>(),
      "threads of each rank's kernels, at most the machine's processors; default 1")(
      "device", value<std::string>(),
      "cpu (default); cuda: a card for each rank, with NCCL between them, or the only card for "
      "all; "
      "cuda:N, or cuda with --threads: one card for all ranks, which are threads")(
      "queues", value<std::string>(),
      "of a card for each rank: rank (default), all messages of a rank in one line; edge, a line "
      "for each pair of ranks and direction")(
      "hang-after", value<int>(),
      "of a card for each rank: seconds after which an exchange counts as hung, from the second "
      "step on; default: 20 estimated steps, at least 120, or 600 without a plan");
  describe_joining(known);
}

std::string device_of(const Given& given) {
  const auto device = get<std::string>(given, "device", "cpu");
  return device == "cuda" && given.count("threads") ? "cuda:0" : device;  // that they share
}

ReplicaRanks replicas(const Given& given) {
  const int count = at_most("dp", at_least_one(given, "dp", 1), 65536, " replicas");
  const int zero = get(given, "zero", 0);
  if (zero < 0 || zero > 1)
    throw ConfigError({},
                      "--zero must be 0 or 1: dividing gradients and parameters "
                      "(ZeRO 2 and 3) is planned, not executed");
  const auto order = get<std::string>(given, "order", "dp,pp");
  if (order != "dp,pp" && order != "pp,dp")
    throw ConfigError({}, "--order is dp,pp or pp,dp, not '" + order + "'");
  return {static_cast<std::size_t>(count), order == "dp,pp", zero};
}

PlanRequest plan_request(const Given& given) {
  return {
      .plan = plan_file(get<std::string>(given, "plan", "")).string(),
      .model = get<std::string>(given, "model", ""),
      .schedule = get<std::string>(given, "schedule", ""),
      .cuts = get<std::string>(given, "cuts", ""),
      .microbatch_size = find<std::int64_t>(given, "microbatch-size"),
      .device = device_of(given),
      .double_precision = given.count("fp64") > 0,
      .seed = seed(given),
      .hang_after = given.count("hang-after")
                        ? std::optional(std::chrono::seconds(at_least_one(given, "hang-after", 1)))
                        : std::nullopt,
      .replicas = replicas(given),
      .global_batch = find<std::int64_t>(given, "global-batch")};
}

NcclOptions nccl_options(const Given& given) {
  const auto queues = get<std::string>(given, "queues", "rank");
  if (queues != "rank" && queues != "edge")
    throw ConfigError({"--queues"}, "unknown queue '" + queues + "'; use rank or edge");
  return {.queue_a_pair = queues == "edge"};
}

LaunchOptions launch_options(const Given& given, const std::vector<std::string>& arguments) {
  return {.arguments = arguments,
          .threads = given.count("threads") > 0,
          .kernel_threads = kernel_threads(given),
          .nccl = nccl_options(given),
          .tcp = given.count("tcp") > 0,
          .patience = std::chrono::seconds(at_least_one(given, "meet-within", 60)),
          .clean_up = {}};
}

void describe_check(Options& known) {
  describe_plan(known);
  known.add_options()("tolerance", value<double>(),
                      "largest difference, as a share of a tensor's norm; default: what rounding "
                      "explains, by type");
}

int run_check(const Given& given, const std::vector<std::string>& arguments) {
  return check_verb(
      {plan_request(given), launch_options(given, arguments), find<double>(given, "tolerance")});
}

void describe_train(Options& known) {
  describe_plan(known);
  known.add_options()("steps", value<int>(), "default 10")(
      "out", value<std::string>(),
      "measurement.csv: time and loss of each step, and a trace; on data also the learning rate")(
      "traces", value<std::string>(),
      "folder for rank0.json, ...: the steps that count in torch.profiler's format, for "
      "`pfeife-exp compare` and tools that read it")(
      "data", value<std::string>(),
      "folder of .npy files named after the model's inputs; first dimension = samples")(
      "save", value<std::string>(), "folder of checkpoints; the last complete one is kept")(
      "save-every", value<int>(), "steps between checkpoints; default: only after the last")(
      "resume", value<std::string>(), "folder of checkpoints, of any plan of the same model")(
      "new-data", "with --resume: other data than the checkpoint's, from their first sample")(
      "shuffle",
      "the samples of --data, each epoch in the order of torch.randperm with the seed --seed plus "
      "the epoch's number (from 0)")(
      "learning-rate", value<double>(),
      "the largest; default 1e-3. What is not given of the update: as the checkpoint has it that "
      "--resume names")(
      "warmup-steps", value<std::int64_t>(),
      "steps in which the rate rises linearly to --learning-rate, the last of them has it; "
      "default 0")("lr-schedule", value<std::string>(),
                   "after the warm-up: constant (default), or linear or cosine decay to --min-lr")(
      "lr-decay-steps", value<std::int64_t>(),
      "steps from the beginning of training, warm-up and earlier runs included, to the end of the "
      "decay; default: the last step of the run that begins it")(
      "min-lr", value<double>(), "where the decay ends and stays; default 0")(
      "momentum", value<double>(), "of optimizer `momentum`; default 0.9")(
      "beta1", value<double>(), "of adam and adamw; default 0.9")(
      "beta2", value<double>(), "of adam and adamw; default 0.999")(
      "eps", value<double>(), "of adam and adamw; default 1e-8")(
      "weight-decay", value<double>(),
      "decoupled from the gradient with adamw, else added to it; default 0")(
      "clip-norm", value<double>(), "largest norm of all gradients together; default 0: any")(
      "defer-batch-norm", "running statistics of a step's whole batch instead of each microbatch");
}

int run_train(const Given& given, const std::vector<std::string>& arguments) {
  return train_verb(
      {.what = plan_request(given),
       .launch = launch_options(given, arguments),
       .steps = at_least_one(given, "steps", 10),
       .out = get<std::string>(given, "out", ""),
       .traces = get<std::string>(given, "traces", ""),
       .data = get<std::string>(given, "data", ""),
       .save = get<std::string>(given, "save", ""),
       .save_every = given.count("save-every") ? at_least_one(given, "save-every", 1) : 0,
       .resume = get<std::string>(given, "resume", ""),
       .new_data = given.count("new-data") > 0,
       .shuffle = given.count("shuffle") > 0,
       .learning_rate = find<double>(given, "learning-rate"),
       .min_lr = find<double>(given, "min-lr"),
       .momentum = find<double>(given, "momentum"),
       .beta1 = find<double>(given, "beta1"),
       .beta2 = find<double>(given, "beta2"),
       .epsilon = find<double>(given, "eps"),
       .weight_decay = find<double>(given, "weight-decay"),
       .clip_norm = find<double>(given, "clip-norm"),
       .warmup_steps = find<std::int64_t>(given, "warmup-steps"),
       .decay_steps = find<std::int64_t>(given, "lr-decay-steps"),
       .schedule = find<std::string>(given, "lr-schedule"),
       .defer_batch_norm = given.count("defer-batch-norm") > 0});
}

void describe_evaluate(Options& known) {
  describe_plan(known);
  known.add_options()(
      "data", value<std::string>(),
      "folder of .npy files named after the model's inputs; first dimension = samples")(
      "resume", value<std::string>(),
      "folder of checkpoints, of any plan of the same model: the parameters that are evaluated");
}

int run_evaluate(const Given& given, const std::vector<std::string>& arguments) {
  return evaluate_verb({.what = plan_request(given),
                        .launch = launch_options(given, arguments),
                        .data = get<std::string>(given, "data", ""),
                        .resume = get<std::string>(given, "resume", "")});
}

void describe_profile(Options& known) {
  describe_joining(known);
  known.add_options()("out", value<std::string>(),
                      "profile.yaml, for `profile:` of an experiment; with --links: cluster.yaml")(
      "samples", value<std::string>(),
      "what is timed is added to this file, and all that is in it counts: a profile taken in "
      "several calls")("links",
                       "no model: what the links and cores of this machine do, as a cluster file")(
      "devices", value<int>(), "with --links: of the cluster; default 2")(
      "device", value<std::string>(), "cpu (default), cuda, cuda:N")(
      "device-kind", value<std::string>(),
      "what cluster files call this device; for a CPU default x86_core, as clusters/laptop.yaml")(
      "precision", value<std::string>(), "fp32 (default), bf16_amp; tf32 on cuda")(
      "optimizer", value<std::string>(), "sgd, momentum, adam (default), adamw")(
      "microbatch-size", value<std::int64_t>(), "samples; default as exported")(
      "repetitions", value<int>(),
      "steps of each kind that are timed; default: 6 s of them, at least 10, spread over 20 s")(
      "microbatches", value<int>(), "of each of these steps; default 4")(
      "beside", value<int>(),
      "other processes that do the same meanwhile, as the other ranks of a pipeline do; default 0")(
      "kernel-threads", value<int>(), "threads of a kernel; default 1")(
      "seed", value<std::int64_t>(), "of initialisation, data and dropout; default 0");
}

int run_profile(const Given& given, const std::vector<std::string>& arguments) {
  if (given.count("links"))
    return links_verb({.out = get<std::string>(given, "out", ""),
                       .device_kind = get<std::string>(given, "device-kind", "x86_core"),
                       .devices = get(given, "devices", 2),
                       .launch = launch_options(given, arguments)});
  const int beside = get(given, "beside", 0);
  if (beside < 0) throw ConfigError({}, "--beside must not be negative");
  at_most("beside", beside, kMostBeside, " processes");
  return profile_verb(
      {.model = get<std::string>(given, "model", ""),
       .out = get<std::string>(given, "out", ""),
       .samples = get<std::string>(given, "samples", ""),
       .device = get<std::string>(given, "device", "cpu"),
       .device_kind = get<std::string>(given, "device-kind", ""),
       .precision = get<std::string>(given, "precision", "fp32"),
       .optimizer = get<std::string>(given, "optimizer", "adam"),
       .microbatch_size = find<std::int64_t>(given, "microbatch-size"),
       .repetitions = given.count("repetitions") ? at_least_one(given, "repetitions", 1) : 0,
       .microbatches = at_least_one(given, "microbatches", 4),
       .beside = beside,
       .seed = seed(given),
       .launch = launch_options(given, arguments)});
}

void describe_doctor(Options&) {}  // but for the device: cpu, cuda

int run_doctor(const Given& given, const std::vector<std::string>& arguments) {
  return doctor_verb({.device = get<std::string>(given, "device", ""),
                      .launch = {.arguments = arguments, .clean_up = {}}});
}

/// `subject` = the argument without a name, as the verb's options see it.
struct Verb {
  const char* name;
  const char* subject;
  const char* effect;
  void (*describe)(Options&);
  int (*run)(const Given&, const std::vector<std::string>& arguments);
};

constexpr Verb kVerbs[] = {
    {"check", "plan", "one step; losses and every gradient against the unsplit model",
     describe_check, run_check},
    {"train", "plan",
     "steps on data, with checkpoints; without: time, losses and trace on synthetic data",
     describe_train, run_train},
    {"evaluate", "plan",
     "loss over all samples of a folder, forward only: of a plan of training steps, or of one with "
     "training.mode: forward",
     describe_evaluate, run_evaluate},
    {"profile", "model", "what each node of a model costs on this machine", describe_profile,
     run_profile},
    {"doctor", "device",
     "what runs on cpu or cuda would find here: driver, libraries, cards, links; fine or not",
     describe_doctor, run_doctor},
};

std::string usage() {
  std::ostringstream out;
  for (const Verb& verb : kVerbs)
    out << "pfeife-run " << verb.name << " [" << verb.subject << "] [options]: " << verb.effect
        << "\n";
  out << "pfeife-run VERB --help: the options of a verb\n\n"
         "By itself it starts the ranks of a plan on this host. On several hosts, or under "
         "another\n"
         "launcher, every rank is a pfeife-run with the same arguments:\n"
         "  torchrun --no-python --nnodes 2 --nproc-per-node 4 --node-rank N --master-addr HOST0 "
         "pfeife-run ...\n"
         "  srun --nodes 2 --ntasks-per-node 4 pfeife-run ...\n"
         "  mpirun -n 8 -H HOST0:4,HOST1:4 -x MASTER_ADDR=HOST0 -x MASTER_PORT=29500 pfeife-run "
         "...\n";
  return out.str();
}

int run_verb(const Verb& verb, const std::vector<std::string>& arguments) {
  Options known(stream_all("pfeife-run ", verb.name));
  known.add_options()("help", "this text");
  verb.describe(known);
  const Given given = read_arguments({arguments.begin() + 2, arguments.end()}, known, verb.subject,
                                     stream_all("pfeife-run ", verb.name));
  if (given.count("help")) {
    std::cout << verb.effect << "\n" << known;
    return 0;
  }
  return verb.run(given, arguments);
}

int run(const std::vector<std::string>& arguments) {
  const std::string name = arguments.size() > 1 ? arguments[1] : "";
  std::vector<std::string> names;
  for (const Verb& verb : kVerbs) {
    if (name == verb.name) return run_verb(verb, arguments);
    names.emplace_back(verb.name);
  }
  if (name == "--help") {
    std::cout << usage();
    return 0;
  }
  if (name.empty()) throw ConfigError({}, "which verb?\n" + usage());
  const std::string nearest = nearest_spelling(name, names);
  throw ConfigError({}, "unknown verb '" + name + "'" +
                            (nearest.empty() ? "" : ", did you mean " + nearest + "?") + "\n" +
                            usage());
}

}  // namespace
}  // namespace pfeife

int main(int argc, char** argv) {
  pfeife::keep_freed_memory();
  return pfeife::run_main("pfeife-run", [&] { return pfeife::run({argv, argv + argc}); });
}
