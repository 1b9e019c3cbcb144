// What tests run on ranks that are processes with a stand-in card each and a stand-in for NCCL
// between them (PFEIFE_NCCL names it, PFEIFE_FAKE_NCCL says how it behaves). It starts and ends
// ranks just as pfeife-run does.
//   nccl_ranks runs RANKS FIRST COUNT   random pipelines, each compared with the unsplit model; a
//                                       run's number is its seed
//   nccl_ranks step RANKS [KILLED CELL] steps of 1f1b with ties; rank KILLED kills itself when it
//                                       enters its cell number CELL of the second step
//   nccl_ranks one_card RANKS           all ranks say that they have one card
//   nccl_ranks scaled RANKS             steps in fp16 with clipping, compared with ranks as threads
//   nccl_ranks host RANKS               what an entry of a row costs the host, of stages that do
//                                       nothing
//   nccl_ranks forms 2                  tensors in every form and type, sent and added up
//   nccl_ranks mutations RANKS          steps of 1f1b with ties; in each a rank leaves out one wait
//                                       for an event, or lets go of one exchange's tensors too
//                                       early. Prints what the race detector says
// In all but the last the race detector of the stand-in card must find nothing.
#include <ATen/Parallel.h>
#include <signal.h>

#include <cstdlib>
#include <iostream>
#include <random>

#include "planner/ir/schedule/lower.h"
#include "runtime/device/tensor_bytes.h"
#include "runtime/execute/check.h"
#include "runtime/execute/executor_overhead.h"
#include "runtime/launch/start_ranks.h"
#include "tests/gpu/fake_card.h"
#include "tests/runtime/pipelines.h"
#include "tests/runtime/tensor_forms.h"

namespace pfeife {
namespace {

using namespace testing;

/// A pipeline, drawn by chance: model (long skips, ties), schedule, what is recomputed, and in what
/// manner the stand-in for NCCL works.
struct Draw {
  std::string model, nccl;
  ScheduleSpec spec;
  std::vector<bool> recompute;
  bool queue_a_pair = false;
  ReplicaRanks replicas = {};

  std::string name() const {
    std::string text = model + " " + name_of(spec) + ", NCCL " + nccl + ", recomputes ";
    for (const bool again : recompute) text += again ? '1' : '0';
    return text + (queue_a_pair ? ", a queue for each pair" : "") +
           stream_all(", replicas ", replicas.count);
  }
};

class Draws {
 public:
  explicit Draws(std::size_t ranks)
      : points_(accepted_points({ranks}, {1, 2, 3, 4, 8}, {1, 2, 3})) {
    if (ranks % 2 == 0) halves_ = accepted_points({ranks / 2}, {1, 2, 4}, {1, 2, 3});
  }

  void start(unsigned run) {
    random_.seed(run);
    run_ = run;
  }
  Draw next() {
    const bool twice = !halves_.empty() && random_() % 3 == 0;
    Draw draw{pick(tiny_models()),
              pick(modes_),
              pick(twice ? halves_ : points_),
              {},
              false,
              {twice ? 2u : 1u, random_() % 2 == 0}};
    draw.nccl += stream_all(" seed=", run_);
    const std::size_t stages = placement_for(draw.spec).stages();
    const auto how = random_() % 3;  // none, all, some
    for (std::size_t s = 0; s < stages; ++s)
      draw.recompute.push_back(how == 1 || (how == 2 && random_() % 2 == 0));
    draw.queue_a_pair = random_() % 2 == 0;
    return draw;
  }

 private:
  template <class T>
  const T& pick(const std::vector<T>& of) {
    return of[random_() % of.size()];
  }
  std::vector<std::string> modes_{"strict", "strict", "strict delay=200", "ordered",
                                  "ordered delay=500"};
  std::vector<ScheduleSpec> points_, halves_;  ///< of all ranks, of half of them
  std::mt19937 random_;
  unsigned run_ = 0;
};

void require_no_races(const std::string& where) {
  if (const auto found = take_races(); !found.empty())
    throw RuntimeFault(stream_all(where, ": ", found.size(), " races: ", found.front()));
}

/// On the sockets of the run, and with communicators of its own for each.
int runs(std::size_t ranks, unsigned first, unsigned count, LaunchOptions launch) {
  launch.card_each = false;
  launch.device = at::kCPU;  // so that what is handed to a run is the sockets
  return start_ranks(ranks, launch, [&](const RankSeat& seat) {
    auto& sockets = dynamic_cast<SocketTransport&>(seat.transport);
    const at::Device card = fake_card();
    const DeviceThread place(card);
    std::map<std::string, Model> models;
    Draws draws(ranks);
    RankAnswer answer;
    double largest = 0;
    for (unsigned i = 0; i < count; ++i) {
      draws.start(first + i);
      Draw draw = draws.next();
      const auto model_of_draw = [&]() -> const Model& {
        return models.try_emplace(draw.model, draw.model).first->second;
      };
      while (model_of_draw().legal.size() < placement_for(draw.spec).stages())
        draw = draws.next();  // it was too small for so many stages
      const Model& model = model_of_draw();
      setenv("PFEIFE_FAKE_NCCL", draw.nccl.c_str(), 1);
      NcclTransport nccl(sockets, open_nccl(), card,
                         {.deadline = std::chrono::seconds(60), .queue_a_pair = draw.queue_a_pair});
      const RankOptions options{.placing = {.device = card, .double_precision = true},
                                .recompute = draw.recompute,
                                .seed = 7};
      Pipeline pipeline = model.pipeline(draw.spec);
      pipeline.replicas = draw.replicas;
      const CheckReport report =
          check_pipeline(pipeline, seat.rank, model.source, options, 1e-12, nccl);
      nccl.finish();
      require_no_races(draw.name());
      take_card_log();  // which grows
      largest = std::max(largest, report.largest.value);
      if (!report.right())
        throw RuntimeFault(draw.name() + ": " + to_string(report));  // ends the others, too
    }
    answer.text =
        stream_all(count, " runs of ", ranks, " ranks, largest difference ", largest, "\n");
    return answer;
  });
}

int steps(std::size_t ranks, int killed, int cell, const LaunchOptions& launch) {
  const Model model("tiny_gpt");
  const Pipeline pipeline = model.pipeline({"1f1b", ranks, 2 * ranks, 1, {}, {}});
  return start_ranks(ranks, launch, [&](const RankSeat& seat) {
    const RankOptions options{.placing = {.device = launch.device}, .seed = 7};
    RankPipeline own(pipeline, seat.rank, model.source, options, seat.turns, seat.transport);
    int entered = -1;
    own.on_entering([&](const Cell& c) {
      seat.entering(c);
      if (entered >= 0 && static_cast<int>(seat.rank.value) == killed && entered++ == cell)
        raise(SIGKILL);
    });
    for (int step = 0; step < 3; ++step) {
      if (step == 1) entered = 0;
      own.step(inputs_of(pipeline, static_cast<std::uint64_t>(step), options.placing));
      mean_loss_everywhere(own, seat.rank, seat.transport, static_cast<std::uint64_t>(step));
    }
    require_no_races("three steps");
    return RankAnswer{"three steps\n", ""};
  });
}

/// What is left out in a step by one rank, and what comes of it: "wait reported", "wait idle" (what
/// it waits for was known to be done), "hold of a SEND reported", ...; "" if there is no such one.
std::string outcome_of(const Mutation& mutation) {
  const Mutated seen = mutate({});
  const bool reported = !take_races().empty();
  if (!seen.happened) return "";
  const std::string what = mutation.wait ? "wait" : "hold of a " + seen.of;
  return what + (reported ? " reported" : seen.idle ? " idle" : " unnoticed");
}

/// The same text on all ranks, from rank `from`.
std::string tell_all(const RankSeat& seat, RankId from, std::uint64_t number, std::string text) {
  const Tag tag{number, ~std::uint32_t{0} - 90, 0};
  if (seat.rank != from) return text_of(seat.transport.receive(from, tag).tensors.at(0));
  for (std::size_t r = 0; r < seat.transport.ranks(); ++r)
    if (RankId{r} != from) seat.transport.send(RankId{r}, tag, {tensor_of_text(text)});
  return text;
}

int mutations(std::size_t ranks, const LaunchOptions& launch) {
  const Model model("tiny_gpt");
  const Pipeline pipeline = model.pipeline({"1f1b", ranks, ranks, 1, {}, {}});
  return start_ranks(ranks, launch, [&](const RankSeat& seat) {
    const RankOptions options{
        .placing = {.device = launch.device}, .time_actions = false, .seed = 7};
    RankPipeline own(pipeline, seat.rank, model.source, options, seat.turns, seat.transport);
    std::uint64_t number = 0;
    const auto step = [&] {
      own.step(inputs_of(pipeline, number++, options.placing));
      finish(launch.device);
      mean_loss_everywhere(own, seat.rank, seat.transport, number);
    };
    step();
    require_no_races("the first step");
    std::map<std::string, int> outcomes;
    for (std::size_t r = 0; r < ranks; ++r)
      for (const bool wait : {true, false})
        for (int k = 1;; ++k) {
          const Mutation mutation = wait ? Mutation{.wait = k} : Mutation{.done = k};
          if (seat.rank == RankId{r}) mutate(mutation);
          step();
          const std::string outcome =
              tell_all(seat, RankId{r}, number, seat.rank == RankId{r} ? outcome_of(mutation) : "");
          if (outcome.empty()) break;
          ++outcomes[outcome];
        }
    step();
    require_no_races("the last step");
    std::string text;
    for (const auto& [outcome, times] : outcomes) text += stream_all(times, " ", outcome, "\n");
    return RankAnswer{text, ""};
  });
}

/// Losses of steps in fp16, clipped; some are skipped, by a scale that is too large.
std::vector<double> scaled_losses(const Pipeline& pipeline, RankId rank, const Model& model,
                                  at::Device card, RandomTurns& turns, Transport& transport) {
  RankOptions options{
      .placing = {.device = card}, .autocast = at::kHalf, .time_actions = false, .seed = 7};
  options.loss_scale = LossScaleOptions{.initial = 1 << 24, .growth_interval = 2};
  options.optimizer = {.kind = Optimizer::Sgd, .learning_rate = 0.05, .clip_norm = 0.5};
  RankPipeline own(pipeline, rank, model.source, options, turns, transport);
  std::vector<double> losses;
  for (std::uint64_t step = 0; step < 12; ++step) {
    own.step(synthetic_step(pipeline, step, options.seed, options.placing, own.replica()));
    losses.push_back(mean_loss_everywhere(own, rank, transport, step));
  }
  losses.push_back(static_cast<double>(own.updates()));
  losses.push_back(own.loss_scale()->scale());
  return losses;
}

/// `zero`: of two replicas, whose state is divided from 1 on; -1: one pipeline.
int scaled(std::size_t ranks, int zero, const LaunchOptions& launch) {
  const Model model("tiny_mlp");
  Pipeline pipeline = model.pipeline({"1f1b", ranks, 4, 1, {}, {}});
  add_norm_reduction(pipeline);
  if (zero >= 0) pipeline.replicas = {2, true, zero};
  return start_ranks(pipeline.all_ranks(), launch, [&](const RankSeat& seat) {
    const auto found =
        scaled_losses(pipeline, seat.rank, model, launch.device, seat.turns, seat.transport);
    require_no_races("steps in fp16");
    if (seat.rank != RankId{0}) return RankAnswer{};
    std::vector<double> expected;
    RandomTurns turns;
    run_ranks(pipeline.all_ranks(), launch.device, [&](RankId rank, Transport& transport) {
      const auto losses = scaled_losses(pipeline, rank, model, launch.device, turns, transport);
      if (rank == RankId{0}) expected = losses;
    });
    // Replicas as threads read and write parts of one block, which are not told apart.
    if (zero < 0) require_no_races("ranks as threads");
    const bool equal = found == expected;
    return RankAnswer{
        stream_all(found[found.size() - 2], " of 12 steps update, scale ", found.back(), "\n"),
        equal ? "" : "differs from ranks as threads"};
  });
}

/// The processor's time of the entries from the first computation to the last: median of steps.
int host_time(std::size_t ranks, const LaunchOptions& launch) {
  const ScheduleSpec spec{"1f1b", ranks, 64, 1, {}, {}};
  const StageCosts costs =
      uniform_costs(ranks, Nanoseconds{1}, Nanoseconds{1}, Nanoseconds{1}, Nanoseconds{1});
  const Placement placement = placement_for(spec);
  const Schedule schedule = lower(generate(spec), costs, placement);
  const DependencyGraph tasks = dependencies(schedule, stage_graph(costs), placement, Semantics{});
  Exchanges exchanges;
  for (const Task& task : tasks.tasks)
    if (task.kind == TaskKind::Transfer) exchanges.messages.insert({task.rank, task.peer});
  return start_ranks(ranks, launch, [&](const RankSeat& seat) {
    EmptyStage stage(StageId{seat.rank.index()}, ranks, launch.device);
    RankWork work;
    work.stages[StageId{seat.rank.index()}] = &stage;
    work.row = schedule.rows[seat.rank.index()];
    work.samples = [](MicrobatchId) { return 1; };
    work.optimizer_step = [](StageId) {};
    std::vector<Nanoseconds> entered;
    work.entering = [&](const Cell&) { entered.push_back(host_time_here()); };
    std::uint32_t first = ~std::uint32_t{0}, last = 0;
    for (const Task& task : tasks.tasks)
      if (task.rank == seat.rank && task.kind == TaskKind::Compute)
        first = std::min(first, task.position), last = std::max(last, task.position);
    seat.transport.prepare(exchanges);
    RankExecutor executor(tasks, placement, seat.rank, std::move(work), seat.transport);
    std::vector<Nanoseconds> times;
    for (std::uint64_t step = 1; step <= 30; ++step) {
      entered.clear();
      executor.run(step);
      const std::size_t computed = entered.size() - 2;  // the last is the optimizer's
      times.push_back((entered[computed] - entered.front()) /
                      static_cast<std::int64_t>(last - first));
    }
    std::ranges::sort(times);
    return RankAnswer{
        stream_all("host, of an entry of the row: ", to_string(times[times.size() / 2]), "\n"), ""};
  });
}

constexpr at::ScalarType kSummed[] = {at::kFloat, at::kDouble, at::kComplexFloat,
                                      at::kComplexDouble};

/// Without negated and conjugated forms, which the stand-in for a card cannot copy.
std::vector<TensorForm> forms_on(at::Device card, at::ScalarType type) {
  std::vector<TensorForm> forms = forms_of(type, card);
  std::erase_if(
      forms, [](const TensorForm& form) { return form.tensor.is_neg() || form.tensor.is_conj(); });
  return forms;
}

/// What is wrong with the forms that rank 1 gets of rank 0, and with the sums of both.
std::string wrong_form(const RankSeat& seat, at::Device card, at::ScalarType type,
                       std::uint64_t number) {
  const std::vector<TensorForm> forms = forms_on(card, type);
  Tensors tensors{at::Tensor()};
  for (const TensorForm& form : forms) tensors.push_back(form.tensor);
  const Tag tag{number, 0, 0};
  const Form like{StageId{0}, StageId{1}, true, static_cast<std::int64_t>(number)};
  std::string wrong;
  const auto compare = [&](const TensorForm& sent, const at::Tensor& received) {
    if (wrong.empty()) wrong = difference_in(sent, received);
  };
  if (seat.rank == RankId{0}) {
    seat.transport.send_in_row(RankId{1}, tag, like, tensors);
  } else {
    seat.transport.expect(RankId{0}, tag, like);
    const Tensors received = seat.transport.receive(RankId{0}, tag).tensors;
    finish(card);
    for (std::size_t i = 0; i < forms.size(); ++i) compare(forms[i], received.at(i + 1));
  }
  if (std::ranges::find(kSummed, type) == std::end(kSummed)) return wrong;
  Tensors summands;  // none in the memory of another, for sums may take their place
  for (std::size_t i = 0; i < forms.size(); ++i) summands.push_back(forms_on(card, type)[i].tensor);
  seat.transport.add_up({RankId{0}, RankId{1}}, tag, summands);
  const Tensors sums = seat.transport.sum(tag);
  finish(card);
  for (std::size_t i = 0; i < forms.size(); ++i)  // equal summands: the sum is exactly twice each
    compare({forms[i].name + ", added up", 2 * forms[i].tensor}, sums.at(i));
  return wrong;
}

/// The same between threads that share the card.
std::string wrong_form_of_threads(at::Device card) {
  std::string wrong;
  run_ranks(2, card, [&](RankId rank, Transport& transport) {
    for (const at::ScalarType type : kSummed) {
      const std::vector<TensorForm> forms = forms_on(card, type);
      const Tag tag{static_cast<std::uint64_t>(type), 0, 0};
      Tensors tensors;
      for (const TensorForm& form : forms) tensors.push_back(form.tensor);
      if (rank == RankId{0}) {
        transport.send(RankId{1}, tag, tensors);
        continue;
      }
      const Tensors received = transport.receive(RankId{0}, tag).tensors;
      finish(card);
      for (std::size_t i = 0; i < forms.size() && wrong.empty(); ++i)
        wrong = difference_in(forms[i], received.at(i));
    }
  });
  return wrong;
}

int forms(const LaunchOptions& launch) {
  return start_ranks(2, launch, [&](const RankSeat& seat) {
    seat.transport.prepare({{{RankId{0}, RankId{1}}}, {{RankId{0}, RankId{1}}}, {}});
    std::uint64_t number = 0;
    std::string wrong;
    for (int i = 0; i <= static_cast<int>(DType::Float8E5M2) && wrong.empty(); ++i)
      wrong = wrong_form(seat, launch.device, scalar_type(static_cast<DType>(i)), ++number);
    seat.transport.end_step();
    if (wrong.empty()) wrong = wrong_form_of_threads(launch.device);
    require_no_races("forms");
    return RankAnswer{stream_all(number, " types\n"), wrong};
  });
}

int run(const std::vector<std::string>& arguments) {
  const auto number = [&](std::size_t i) { return std::stoi(arguments.at(i)); };
  const std::string verb = arguments.at(1);
  const auto ranks = static_cast<std::size_t>(number(2));
  const char* rank = std::getenv("RANK");
  const bool queue_a_pair = std::getenv("PFEIFE_TEST_QUEUES") != nullptr;
  const auto deadline = std::chrono::seconds(arguments.size() > 5 ? number(5) : 60);
  const LaunchOptions launch{
      .arguments = arguments,
      .device = fake_card(),
      .card_each = true,
      .card = std::string("card ") + (rank && verb != "one_card" ? rank : "0"),
      .nccl = {.deadline = deadline, .first_deadline = deadline, .queue_a_pair = queue_a_pair},
      .clean_up = {}};
  if (verb == "runs")
    return runs(ranks, static_cast<unsigned>(number(3)), static_cast<unsigned>(number(4)), launch);
  if (verb == "scaled") return scaled(ranks, arguments.size() > 3 ? number(3) : -1, launch);
  if (verb == "host") return host_time(ranks, launch);
  if (verb == "forms") return forms(launch);
  if (verb == "mutations") return mutations(ranks, launch);
  return steps(ranks, arguments.size() > 4 ? number(3) : -1, arguments.size() > 4 ? number(4) : -1,
               launch);
}

}  // namespace
}  // namespace pfeife

int main(int argc, char** argv) {
  try {
    return pfeife::run({argv, argv + argc});
  } catch (const pfeife::ConfigError& error) {
    std::cerr << error.what() << "\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 4;
  }
}
