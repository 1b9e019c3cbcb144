// Microbatches that differ, from a request to a plan, a file and back: the table of the best orders
// of 1F1B, and what a slow rank costs.
#include <gmock/gmock.h>

#include "experiments/pfeife.h"
#include "planner/inputs/read_layers.h"
#include "planner/search/orders/microbatch_permutation.h"
#include "tests/experiments/program.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;

class Microbatches : public ProgramTest {};

/// So many layers of 1 ms F, I and W each, in a chain whose values have no bytes.
Layers equal_layers(std::size_t count) {
  const Nanoseconds ms{1'000'000};
  Layers layers{.name = "equal", .digest = std::string(64, '0')};
  for (std::size_t l = 0; l < count; ++l) {
    layers.layers.push_back(
        {.name = "l" + std::to_string(l),
         .times = {{.forward = ms, .backward_input = ms, .backward_weight = ms}},
         .saved = Bytes{100}});
    if (l > 0) layers.values.push_back({.producer = LayerId{l - 1}, .consumers = {LayerId{l}}});
  }
  return layers;
}

Request batch_of(std::size_t ranks, const std::vector<double>& factors, bool ordered) {
  Request request{.devices = ranks,
                  .plan = {.families = {"1f1b"}, .stages_per_rank = {1}},
                  .baselines = {{"1f1b"}},
                  .simulate = false};
  for (const double factor : factors) request.training.microbatch_costs.push_back({factor, factor});
  request.plan.search_microbatch_order = ordered;
  return request;
}

Cluster free_cluster(std::size_t ranks) {
  return uniform_cluster(ranks, {.memory = kGiB}, {1e12}, Nanoseconds{0});
}

TEST_F(Microbatches, OrdersAreThoseOfTheTable) {
  struct Row {
    std::size_t ranks;
    std::vector<double> factors;
    double best;
  };
  for (const Row& row :
       {Row{2, {1, 2, 3, 4}, 37}, Row{4, {1, 2, 3, 4, 5, 6}, 96},
        Row{4, {1, 1, 1, 1, 1, 1, 1, 8}, 111}, Row{4, {4, 4, 4, 4, 1, 1, 1, 1}, 90},
        Row{3, {1, 1, 2, 2, 6}, 63}, Row{8, {1, 1, 1, 1, 1, 1, 1, 9}, 224}}) {
    const Model model = model_of(equal_layers(row.ranks));
    const Cluster cluster = free_cluster(row.ranks);
    const Planned planned = plan(model, cluster, batch_of(row.ranks, row.factors, true));
    const Plan& best = planned.best().plan;
    // The textbook's rows; with forwards ahead of them a step may be shorter.
    const auto textbook = std::ranges::find_if(planned.plans, [](const Priced& found) {
      return std::ranges::all_of(found.spec.prefetch, [](std::size_t ahead) { return ahead == 0; });
    });
    ASSERT_NE(textbook, planned.plans.end());
    EXPECT_EQ(milliseconds(textbook->estimate), row.best);
    EXPECT_LE(milliseconds(best.estimate), row.best);
    EXPECT_EQ(best.spec.microbatches, row.factors.size());
    EXPECT_EQ(best.training.microbatch_costs.size(), row.factors.size());
    ASSERT_TRUE(best.bound.has_value());
    EXPECT_LE(best.bound->time, best.estimate);
    // In the order given it takes longer, or as long; the baseline is in that order.
    const Planned fixed = plan(model, cluster, batch_of(row.ranks, row.factors, false));
    EXPECT_GE(fixed.best().plan.estimate, best.estimate);
    EXPECT_GE(step_time(planned.contestants.back().estimated), textbook->estimate);
    EXPECT_EQ(step_time(planned.contestants.back().estimated),
              step_time(fixed.contestants.back().estimated));
  }
}

TEST_F(Microbatches, APlanIsWrittenAndReadAgainWithThem) {
  write("layers.csv",
        "name,forward_ms,backward_input_ms,backward_weight_ms,output_bytes,parameter_bytes,saved_"
        "bytes,weight_saved_bytes,temporary_bytes\na,1,1,1,8,9,9,0,0\nb,1,1,1,8,9,9,0,0\n"
        "c,1,1,1,8,9,9,0,0\nd,1,1,1,0,9,9,0,0\n");
  const Model model = load_model(folder_ / "layers.csv");
  const Cluster cluster = load_cluster(configs() / "clusters" / "laptop.yaml");
  const Request request = batch_of(2, {1, 2, 3, 4}, true);
  const Planned planned = plan(model, cluster, request);
  const Plan& best = planned.best().plan;
  EXPECT_FALSE(std::ranges::is_sorted(forward_order(best.schedule)));
  save(planned, folder_ / "saved");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "saved" / "certificate.txt"));
  const std::string text = read("saved/plan.yaml");
  EXPECT_THAT(text, HasSubstr("microbatch_costs: [1, 2, 3, 4]"));
  const Planned again =
      plan(model, cluster,
           {.plan = {.file = folder_ / "saved" / "plan.yaml"}, .baselines = {}, .simulate = false});
  EXPECT_EQ(again.best().plan.schedule, best.schedule);
  EXPECT_EQ(again.best().plan.estimate, best.estimate);
  EXPECT_EQ(again.best().plan.peak_memory, best.peak_memory);
  // Another number of them is refused.
  Request fewer{.plan = {.file = folder_ / "saved" / "plan.yaml"}, .baselines = {}};
  fewer.training.microbatch_costs = {{1, 1}, {2, 2}};
  EXPECT_THROW(plan(model, cluster, fewer), ConfigError);
}

// Factors of 1 are as if none were given: the same plan, bound and files.
TEST_F(Microbatches, FactorsOfOneGiveTheSameBytes) {
  write("layers.csv",
        "name,forward_ms,backward_ms,output_bytes,parameter_bytes,saved_bytes,weight_saved_bytes,"
        "temporary_bytes\na,1,2,8,9,9,0,0\nb,3,4,8,9,9,0,0\nc,2,4,8,9,9,0,0\nd,1,1,0,9,9,0,0\n");
  const Model model = load_model(folder_ / "layers.csv");
  const Cluster cluster = load_cluster(configs() / "clusters" / "laptop.yaml");
  Request usual{.devices = 2, .microbatches = 4, .plan = {.iterations = 20}};
  Request ones = usual;
  ones.training.microbatch_costs.assign(4, {1, 1});
  ones.plan.search_microbatch_order = true;
  save(plan(model, cluster, usual), folder_ / "usual");
  save(plan(model, cluster, ones), folder_ / "ones");
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "usual")) {
    if (!entry.is_regular_file()) continue;
    const std::string name = entry.path().filename();
    EXPECT_EQ(read("usual/" + name), read("ones/" + name)) << name;
    ++files;
  }
  EXPECT_GE(files, 3u);
}

TEST_F(Microbatches, OfAnotherNumberThanAStepHasAreRefused) {
  const Model model = model_of(equal_layers(2));
  Request request = batch_of(2, {1, 2, 3}, false);
  request.microbatches = 4;
  try {
    plan(model, free_cluster(2), request);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("3 microbatches are listed, and a step has 4"));
  }
}

// Documents of a model whose attention is seen: packing more of shorter ones takes less.
TEST_F(Microbatches, DocumentsCostBySquaresWhereAttentionIsSeen) {
  const Model model = load_model(configs() / "models" / "tiny_gpt.pt2");
  const Cluster cluster = load_cluster(configs() / "clusters" / "laptop.yaml");
  Request request{.devices = 2,
                  .plan = {.families = {"1f1b"}, .stages_per_rank = {1}, .iterations = 20},
                  .baselines = {},
                  .simulate = false};
  const Planned whole = plan(model, cluster, [&] {
    Request usual = request;
    usual.microbatches = 4;
    return usual;
  }());
  const Layers layers = read_layers({configs() / "models" / "tiny_gpt.pt2"}, cluster);
  ASSERT_TRUE(layers.sequence.has_value());
  const std::int64_t tokens = layers.sequence->tokens;
  const auto samples = static_cast<std::size_t>(layers.microbatch_size);
  const std::vector<std::int64_t> full(samples, tokens), halves(2 * samples, tokens / 2);
  request.training.lengths.assign(4, full);
  const Planned as_whole = plan(model, cluster, request);
  EXPECT_EQ(as_whole.best().plan.estimate, whole.best().plan.estimate);
  EXPECT_TRUE(as_whole.best().plan.training.microbatch_costs.empty());
  request.training.lengths = {full, halves, halves, full};
  const Planned packed = plan(model, cluster, request);
  EXPECT_LT(packed.best().plan.estimate, whole.best().plan.estimate);
  ASSERT_EQ(packed.best().plan.training.microbatch_costs.size(), 4u);
  EXPECT_EQ(packed.best().plan.training.microbatch_costs[1], (MicrobatchScale{1, 0.5}));
  request.training.lengths[2].push_back(tokens + 1);
  EXPECT_THROW(plan(model, cluster, request), ConfigError);
}

TEST_F(Microbatches, ASlowRankIsInTheRecord) {
  Request request{.devices = 4,
                  .microbatches = 8,
                  .plan = {.families = {"1f1b"}, .stages_per_rank = {1}},
                  .baselines = {},
                  .simulate = false,
                  .what_if = {.slow = SlowRank{.rank = 3, .factor = 1.1}}};
  const Model model = model_of(equal_layers(4));
  const Planned planned = plan(model, free_cluster(4), request);
  const CaseRecord record = record_of(planned);
  ASSERT_TRUE(record.slow.has_value());
  EXPECT_EQ(record.slow->rank, RankId{3});
  EXPECT_EQ(milliseconds(record.slow->now), 33);
  std::vector<double> steps;
  for (const Nanoseconds step : record.slow->steps) steps.push_back(milliseconds(step));
  EXPECT_THAT(steps, ::testing::ElementsAre(34.5, 34.8, 35.1, 35.4));
  request.what_if.slow->rank = 4;
  EXPECT_THROW(plan(model, free_cluster(4), request), ConfigError);
}

}  // namespace
}  // namespace pfeife
