// Forged files: whatever is changed in certificate.txt, in plan.yaml or in both, the judge calls
// nothing proven that is not true. PFEIFE_INSTANCES = how many mutations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "planner/io/files/digest.h"
#include "planner/ir/basics/error.h"
#include "planner/schedule_tool/certify.h"
#include "tests/proofs/claims.h"
#include "tests/proofs/small_cases.h"
#include "tests/support/golden_message.h"
#include "tests/support/instances.h"

namespace pfeife {
namespace {

using ::testing::StartsWith;

/// Makes the text of a certificate look sound.
std::string with_digest(const std::string& text) {
  const std::size_t body = text.find('\n') + 1;
  return text.substr(0, text.find("sha256 ") + 7) + sha256(text.substr(body)) + "\n" +
         text.substr(body);
}

/// "proven", "less" (what is proven, or costs that were not checked) or "refused".
std::string judged(const CaseFolder& of, std::string* why = nullptr) {
  try {
    const tool::Judged found =
        tool::certify_files(of.file("plan.yaml"), 1, [](const std::string&) {});
    if (why != nullptr) *why = found.text;
    return found.proven ? "proven" : "less";
  } catch (const ConfigError& error) {
    if (why != nullptr) *why = error.what();
    return "refused";
  }
}

// Mutations.

class Mutations {
 public:
  explicit Mutations(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t end) { return end == 0 ? 0 : random_() % end; }

  std::string number(const std::string& text) {
    const std::string up = std::to_string(std::strtod(text.c_str(), nullptr) * 1.01);
    std::string digit = text;
    digit[below(digit.size())] = static_cast<char>('0' + below(10));
    const auto value = std::strtoll(text.c_str(), nullptr, 10);
    const std::string all[] = {std::to_string(value + 1),
                               std::to_string(value - 1),
                               up.substr(0, up.find('.')),
                               std::to_string(value / 2),
                               std::to_string(value * 3),
                               "0",
                               std::to_string(std::int64_t{1} << 62),
                               digit};
    return all[below(std::size(all))];
  }

  /// A number, a word or a line of `text` becomes another, is left out, doubled, or changes places.
  std::string change(const std::string& text) {
    const std::size_t kind = below(10);
    if (kind < 6) return change_piece(pieces(text, kind < 4 ? Number : Word), text);
    std::vector<std::string> lines = split(text);
    const std::size_t at = 1 + below(lines.size() - 1), other = 1 + below(lines.size() - 1);
    const auto where = lines.begin() + static_cast<std::ptrdiff_t>(at);
    if (kind == 6) lines.erase(where);
    if (kind == 7) lines.insert(where, lines[other]);
    if (kind == 8) std::swap(lines[at], lines[other]);
    if (kind == 9) lines[at] = lines[other];
    std::string joined;
    for (const std::string& line : lines) joined += line + "\n";
    return joined;
  }
  /// A number that both texts have, after the first line, becomes another in both.
  void change_both(std::string& one, std::string& two) {
    const auto found = pieces(one, Number);
    for (int tries = 0; tries < 100; ++tries) {
      const auto [at, size] = found[below(found.size())];
      const std::string old = one.substr(at, size);
      const std::size_t there = two.find(" " + old, two.find('\n'));
      if (size < 3 || there == std::string::npos) continue;
      const std::string changed = number(old);
      one.replace(at, size, changed), two.replace(there + 1, old.size(), changed);
      return;
    }
  }

 private:
  enum Kind { Number, Word };
  using Piece = std::pair<std::size_t, std::size_t>;  // begin, size

  static std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }
  static std::vector<Piece> pieces(const std::string& text, Kind kind) {
    const auto part = [&](char c) {
      return kind == Number ? std::isdigit(static_cast<unsigned char>(c)) != 0
                            : std::isspace(static_cast<unsigned char>(c)) == 0;
    };
    std::vector<Piece> found;
    for (std::size_t at = text.find('\n') + 1; at < text.size(); ++at) {
      if (!part(text[at])) continue;
      const std::size_t begin = at;
      while (at < text.size() && part(text[at])) ++at;
      found.emplace_back(begin, at - begin);
    }
    return found;
  }
  std::string change_piece(const std::vector<Piece>& all, std::string text) {
    const auto [at, size] = all[below(all.size())];
    const auto [other, length] = all[below(all.size())];
    const std::string old = text.substr(at, size);
    static const char* const kWords[] = {"all",    "given",  "true",     "false", "none",
                                         "full",   "choose", "gpipe",    "1f1b",  "zb_h1",
                                         "looped", "fp32",   "bf16_amp", "sgd"};
    std::string letter = old;
    letter[below(size)] = "rfbdslh0123456789 :-"[below(20)];
    const std::size_t kind = below(6);
    const std::string changed = kind < 2 && std::isdigit(static_cast<unsigned char>(old[0])) != 0
                                    ? number(old)
                                : kind < 3  ? letter
                                : kind == 3 ? text.substr(other, length)
                                : kind == 4 ? kWords[below(std::size(kWords))]
                                            : old + " " + old;
    return text.replace(at, size, changed);
  }

  std::mt19937_64 random_;
};

struct Verdicts {
  std::size_t same = 0, proven = 0, less = 0, refused = 0;
};

void mutate(const SmallCase& one, std::size_t count, Verdicts& verdicts) {
  const CaseFolder of(one.of, "forged_" + one.name);
  Claims claims(of);
  std::string text;
  ASSERT_EQ(judged(of, &text), "proven") << one.name << ": " << text;
  ASSERT_EQ(claims.wrong(of.plan), "") << one.name;
  const std::string plan = of.read("plan.yaml"), proof = of.read("certificate.txt");
  Mutations mutations(std::hash<std::string>{}(one.name));
  for (std::size_t round = 0; round < count; ++round) {
    std::string plan_now = plan, proof_now = proof;
    const std::size_t changes = 1 + mutations.below(2);
    for (std::size_t k = 0; k < changes; ++k) {
      const std::size_t what = mutations.below(3);
      if (what == 0) plan_now = mutations.change(plan_now);
      if (what == 1) proof_now = mutations.change(proof_now);
      if (what == 2) mutations.change_both(plan_now, proof_now);
    }
    if (proof_now == proof && plan_now == plan) {
      ++verdicts.same;
      continue;
    }
    of.write("plan.yaml", plan_now), of.write("certificate.txt", with_digest(proof_now));
    std::string why;
    const std::string verdict = judged(of, &why);
    ++(verdict == "proven" ? verdicts.proven
       : verdict == "less" ? verdicts.less
                           : verdicts.refused);
    if (verdict != "proven") continue;
    ASSERT_EQ(claims.wrong(read_plan(of.file("plan.yaml"))), "") << one.name << " " << round << "\n"
                                                                 << why << "\n"
                                                                 << plan_now << proof_now;
  }
  of.write("plan.yaml", plan), of.write("certificate.txt", proof);
}

TEST(ForgedFiles, AreNotProvenUnlessTheyAreTrue) {
  const std::vector<SmallCase> cases = small_cases();
  const std::size_t each = instances(900) / cases.size() + 1;
  Verdicts verdicts;
  for (const SmallCase& one : cases) {
    mutate(one, each, verdicts);
    if (HasFatalFailure()) return;
  }
  std::printf(
      "%zu mutations: %zu refused, %zu prove less or of unchecked costs, %zu still true, "
      "%zu without effect\n",
      each * cases.size(), verdicts.refused, verdicts.less, verdicts.proven, verdicts.same);
  EXPECT_GT(verdicts.refused, each * cases.size() / 2);
  EXPECT_GT(verdicts.proven, 0U);
}

// Weights may prove more than is stated. The highest bound that is accepted, whatever is stated, is
// still one that no plan is below.
TEST(ForgedFiles, TheHighestBoundThatIsAcceptedIsTrue) {
  for (const SmallCase& one : small_cases()) {
    const CaseFolder of(one.of, "highest_" + one.name);
    Certificate certificate = *of.outcome.certificate;
    const std::int64_t stated = certificate.bound;
    const auto accepted = [&](std::int64_t bound) {
      certificate.bound = bound;
      return tool::certify(certificate).refusal.empty();
    };
    ASSERT_TRUE(accepted(stated)) << one.name;
    std::int64_t low = stated, high = 2 * stated;
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (accepted(middle) ? low : high) = middle;
    }
    Bound bound = *of.plan.bound;
    bound.time = Nanoseconds{low};
    Plan plan = of.plan;
    plan.bound = bound;
    std::printf("%s: stated %.3f ms, accepted up to %.3f ms, the plan takes %.3f ms\n",
                one.name.c_str(), static_cast<double>(stated) * 1e-6,
                static_cast<double>(low) * 1e-6, milliseconds(of.plan.estimate));
    EXPECT_EQ(Claims(of).wrong(plan), "") << one.name;
  }
}

// Aimed forgeries: each changes plan, certificate or both as values, and writes them as honest
// files are written.

class Forgery : public ::testing::Test {
 protected:
  /// The verdict after `change` of both; why_ says more.
  std::string after(const std::function<void(Plan&, Certificate&)>& change) {
    Plan plan = of_.plan;
    Certificate certificate = *of_.outcome.certificate;
    change(plan, certificate);
    of_.write(plan);
    of_.write("certificate.txt", certificate_text(certificate));
    return judged(of_, &why_);
  }
  /// What the verdict does not cover: said in its last line, behind the figures of the search.
  std::string last_line() const { return why_.substr(why_.rfind('\n') + 1); }
  const CaseFolder of_{chain(), "aimed"};
  std::string why_;
};

TEST_F(Forgery, NothingIsProven) {
  EXPECT_EQ(after([](Plan&, Certificate&) {}), "proven") << why_;
}

TEST_F(Forgery, BoundRaisedByOnePercentInBothFiles) {
  EXPECT_EQ(after([](Plan& p, Certificate& c) {
              c.bound += c.bound / 100, p.bound->time = Nanoseconds{c.bound};
              p.estimate = p.bound->time;
            }),
            "refused");
  EXPECT_EQ(after([](Plan& p, Certificate& c) {
              ++c.bound, p.bound->time = p.estimate = Nanoseconds{c.bound};
            }),
            "refused");
  EXPECT_EQ(after([](Plan& p, Certificate& c) { p.bound->time = Nanoseconds{c.bound + 1}; }),
            "refused")
      << "above the plan's own time";
  EXPECT_EQ(after([](Plan&, Certificate& c) { --c.bound; }), "less");
  EXPECT_MESSAGE(last_line());
}

TEST_F(Forgery, EmptyClass) {
  const auto empty = [](Certificate& c) {
    for (CertifiedProof& proof : c.proofs)
      proof.least_load.assign(proof.spec.stages(), std::int64_t{1} << 62);
  };
  EXPECT_EQ(after([&](Plan&, Certificate& c) { empty(c); }), "less");
  EXPECT_MESSAGE(last_line());
  EXPECT_EQ(after([&](Plan& p, Certificate& c) { empty(c), p.bound->least_share = 1; }), "less");
  EXPECT_EQ(after([&](Plan& p, Certificate& c) {
              empty(c), c.bound *= 2, p.bound->time = Nanoseconds{c.bound};
            }),
            "refused");
}

TEST_F(Forgery, CostsTimesThreeWithTheDigestsKept) {
  const auto thrice = [&](Plan& p, Certificate& c) {
    for (Layer& layer : c.layers.layers)
      for (LayerTimes& t : layer.times)
        t.forward *= 3, t.backward_input *= 3, t.backward_weight *= 3, t.optimizer *= 3;
    for (Path& path : c.cluster.paths) {
      path.latency *= 3;
      for (auto& point : path.bandwidth.points) point.rate.value /= 3;
    }
    for (LayerParameter& parameter : c.layers.parameters)
      for (Nanoseconds& time : parameter.optimizer) time *= 3;
    c.bound *= 3;
    p.bound->time *= 3, p.estimate *= 3;
  };
  EXPECT_EQ(after(thrice), "refused");
  EXPECT_MESSAGE(last_line());
  EXPECT_EQ(after([](Plan&, Certificate& c) { c.layers.layers[0].times[0].forward *= 3; }),
            "refused");
  EXPECT_MESSAGE(last_line());
  EXPECT_EQ(after([](Plan&, Certificate& c) { c.cluster.paths[1].latency *= 3; }), "refused");
  EXPECT_EQ(after([](Plan&, Certificate& c) { c.layers.layers[1].saved.value *= 3; }), "refused");
  // Where the files are others, or not there, that is said first.
  EXPECT_EQ(after([&](Plan& p, Certificate& c) { thrice(p, c), p.files->model.file = "gone.csv"; }),
            "less");
  EXPECT_THAT(why_, StartsWith("costs not checked: "));
  EXPECT_EQ(after([&](Plan& p, Certificate& c) { thrice(p, c), p.files.reset(); }), "less");
  EXPECT_THAT(why_, StartsWith("costs not checked: plan.yaml names no files"));
}

TEST_F(Forgery, FilesThatAreOthersOrNotThere) {
  EXPECT_EQ(after([](Plan& p, Certificate&) { p.files->cluster = "../gone.yaml"; }), "less");
  EXPECT_THAT(why_, StartsWith("costs not checked: "));
  of_.write("other.csv", chain().text + "g,1,1,1,1,1,1,1,1\n");
  EXPECT_EQ(after([](Plan& p, Certificate&) { p.files->model.file = "other.csv"; }), "less");
  EXPECT_MESSAGE(why_.substr(0, why_.find('\n')));
  EXPECT_EQ(after([](Plan& p, Certificate&) { p.files->model.format = ModelFormat::PipeDream; }),
            "less");
  EXPECT_EQ(after([](Plan& p, Certificate& c) { p.linear_order = c.layers.order = "any"; }),
            "refused");
  EXPECT_EQ(after([](Plan& p, Certificate& c) { p.linear_order = c.layers.order = "depth_first"; }),
            "refused");
  EXPECT_EQ(after([](Plan& p, Certificate&) { p.training.optimizer = Optimizer::Sgd; }), "refused");
}

TEST_F(Forgery, OneCertificateAloneHasNoFiles) {
  const tool::Judged found =
      tool::certify_files(of_.file("certificate.txt"), 1, [](const std::string&) {});
  EXPECT_FALSE(found.proven);
  EXPECT_THAT(found.text, StartsWith("costs not checked: "));
}

TEST_F(Forgery, FewerLegalCuts) {
  EXPECT_EQ(after([](Plan& p, Certificate& c) { c.layers = cut_only_at(p.partition, c.layers); }),
            "refused");
  EXPECT_EQ(after([](Plan& p, Certificate&) { p.bound->given_cuts = true; }), "refused");
  EXPECT_EQ(after([](Plan& p, Certificate& c) {
              p.bound->given_cuts = true, c.layers = cut_only_at(p.partition, c.layers);
              for (Layer& layer : c.layers.layers)
                if (!layer.no_cut_after.empty()) layer.no_cut_after = "no cut";
            }),
            "proven")
      << "a smaller claim is true: " << why_;
}

TEST(ForgedFiles, AProofOfGivenCutsIsNotOneOfAllCuts) {
  CaseOf given = chain();
  given.cuts = Partition{{2}};
  const CaseFolder of(given, "relabelled");
  ASSERT_EQ(judged(of), "proven");
  Plan plan = of.plan;
  plan.bound->given_cuts = false;
  of.write(plan);
  std::string why;
  EXPECT_EQ(judged(of, &why), "refused");
  EXPECT_MESSAGE(why);
}

/// The schedule with each of its fields changed, one at a time.
std::vector<ScheduleSpec> changed_knobs(const ScheduleSpec& spec) {
  // Fails to compile where a schedule has a new field: change that below, too.
  const auto& [family, ranks, microbatches, stages_per_rank, loop_batch, prefetch, slices,
               slice_lengths, rank_of_stage] = spec;
  std::vector<ScheduleSpec> changed(8, spec);
  changed[0].ranks = ranks + 1;
  changed[1].microbatches = microbatches + 1;
  changed[2].stages_per_rank = stages_per_rank + 1;
  changed[3].loop_batch = loop_batch.value_or(1) + 1;
  changed[4].prefetch = {prefetch.empty() ? 1 : prefetch[0] + 1};
  changed[5].slices = slices + 1;
  changed[6].slice_lengths =
      slice_lengths == SliceLengths::Equal ? SliceLengths::EqualTime : SliceLengths::Equal;
  changed[7].rank_of_stage = rank_of_stage;
  for (std::size_t s = 0; s < spec.stages(); ++s)
    changed[7].rank_of_stage.emplace_back(ranks - 1 - s % ranks);
  for (const Mode mode : {Mode::Train, Mode::Forward})
    for (const Family& other : families(mode))
      if (other.name != family) changed.push_back(spec), changed.back().family = other.name;
  return changed;
}

/// Whether one proof, of `proven`, suffices for a bound that also covers `said`.
bool suffices(const ScheduleSpec& proven, bool any_order, const ScheduleSpec& said) {
  Certificate certificate;
  certificate.layers.layers.resize(3);
  certificate.proofs.push_back({.spec = proven, .any_order = any_order});
  Plan plan;
  plan.spec = proven;
  plan.bound = Bound{.schedules = {proven, said}};
  return tool::unproven(certificate, plan).empty();
}

TEST(ForgedSchedules, AProofIsOfItsScheduleWithAllKnobs) {
  const ScheduleSpec looped{"looped", 2, 4, 2, 2, {1}}, sliced{"zb_greedy", 2, 4, 1};
  for (const ScheduleSpec& proven : {looped, sliced}) {
    EXPECT_TRUE(suffices(proven, false, proven));
    for (const ScheduleSpec& said : changed_knobs(proven))
      EXPECT_FALSE(suffices(proven, false, said))
          << said.family << " " << knobs(said) << " by " << proven.family;
  }
}

// Slices have a shorter way in, a forward pass less work, and actions side by side may hide
// collectives: whatever is proven of any order of whole microbatches, one after the other, says
// nothing of them.
TEST(ForgedSchedules, AProofOfAnyOrderFreesTheOrderAlone) {
  const std::vector<std::string> freed{"gpipe", "1f1b",    "looped",   "zb_h1",   "zb_h2",
                                       "zb1p",  "seq1f1b", "terapipe", "slimpipe"};  // whole here
  const ScheduleSpec proven{"zb_greedy", 2, 4, 1};
  for (const ScheduleSpec& said : changed_knobs(proven)) {
    const bool expected = std::ranges::find(freed, said.family) != freed.end() && !refusal(said);
    EXPECT_EQ(suffices(proven, true, said), expected) << said.family << " " << knobs(said);
  }
  EXPECT_TRUE(suffices(proven, true, {"1f1b", 2, 4, 1, {}, {1}}));
  for (const char* family : {"seq1f1b", "terapipe", "slimpipe", "zb_greedy"}) {
    const ScheduleSpec said{family, 2, 4, 1, {}, {}, 2};
    ASSERT_FALSE(refusal(said)) << family;
    EXPECT_FALSE(suffices(proven, true, said)) << family;
  }
  const ScheduleSpec folded{"zbv_greedy", 2, 4, 2}, beside{"dualpipev", 2, 4, 2};
  EXPECT_TRUE(suffices(folded, true, {"zbv", 2, 4, 2}));
  EXPECT_FALSE(suffices(folded, true, beside));
  EXPECT_TRUE(suffices(beside, true, folded));
}

// Four microbatches of one stage a device, two slices each: the first stage hands on half a
// microbatch, so that the second begins sooner than any proof of whole microbatches allows for.
TEST(ForgedFiles, ABoundOfWholeMicrobatchesCoversNoSlices) {
  const CaseFolder of(towers(1, 4), "forged_slices");
  ASSERT_EQ(judged(of), "proven");
  for (const SliceLengths lengths : {SliceLengths::Equal, SliceLengths::EqualTime}) {
    Plan plan = of.plan;
    plan.bound->schedules.push_back({"zb_greedy", 2, 4, 1, {}, {}, 2, lengths});
    of.write(plan);
    std::string why;
    EXPECT_EQ(judged(of, &why), "less");
    EXPECT_MESSAGE(why.substr(why.rfind('\n') + 1));
  }
}

TEST_F(Forgery, SchedulesOrPlacesLeftOut) {
  EXPECT_EQ(after([](Plan& p, Certificate& c) {
              std::erase_if(c.proofs, [&](const auto& proof) { return proof.spec != p.spec; });
            }),
            "less");
  EXPECT_MESSAGE(last_line());
  EXPECT_EQ(after([](Plan& p, Certificate& c) {
              std::erase_if(c.proofs, [&](const auto& proof) { return proof.spec == p.spec; });
            }),
            "less");
  EXPECT_EQ(after([](Plan& p, Certificate&) {
              p.bound->schedules.push_back({"zb1p", 2, 3});
            }),
            "less");
  EXPECT_EQ(after([](Plan& p, Certificate& c) {
              p.bound->schedules.push_back({"zb_greedy", 2, 3});
              c.proofs.push_back({.spec = {"zb_greedy", 2, 3}, .least_load = {0, 0}});
              c.proofs.back().any_order = true;
            }),
            "refused");
  EXPECT_EQ(after([](Plan& p, Certificate& c) {
              std::swap(p.placement.device_of_rank[0], p.placement.device_of_rank[1]);
              std::swap(c.device_of_rank[0], c.device_of_rank[1]);
            }),
            "proven")
      << "both devices are alike: " << why_;
  EXPECT_EQ(after([](Plan& p, Certificate&) {
              std::swap(p.placement.device_of_rank[0], p.placement.device_of_rank[1]);
            }),
            "refused");
}

TEST_F(Forgery, LowerLimitsAndOtherRecomputation) {
  EXPECT_EQ(after([](Plan&, Certificate& c) { --c.memory_limit[0].value; }), "less");
  EXPECT_MESSAGE(last_line());
  EXPECT_EQ(after([](Plan& p, Certificate& c) {
              p.bound->memory_limit[0] = c.memory_limit[0] = Bytes{1};
            }),
            "refused")
      << "the plan does not fit";
  EXPECT_EQ(after([](Plan& p, Certificate&) { p.bound->recompute = Recompute::Choose; }), "less");
  EXPECT_EQ(
      after([](Plan& p, Certificate& c) { p.bound->recompute = c.recompute = Recompute::Full; }),
      "refused");
  EXPECT_EQ(after([](Plan&, Certificate& c) { c.proofs[0].linked = true; }), "less");
}

TEST_F(Forgery, FiguresOfThePlan) {
  EXPECT_EQ(after([](Plan& p, Certificate&) { --p.estimate; }), "refused");
  EXPECT_EQ(after([](Plan& p, Certificate&) { --p.peak_memory[0].value; }), "refused");
  EXPECT_EQ(after([](Plan& p, Certificate&) { p.cut_modules[0] = "other"; }), "refused");
  EXPECT_EQ(after([](Plan& p, Certificate&) { p.activations.stages[0] = true; }), "refused");
  EXPECT_EQ(after([](Plan& p, Certificate&) { p.bound.reset(); }), "refused");
  EXPECT_EQ(after([](Plan& p, Certificate&) { p.bound->schedules.clear(); }), "refused");
  for (const char* family : {"gpipe", "1f1b", "zb_h1"}) {
    if (of_.plan.spec.family == family) continue;
    EXPECT_EQ(after([&](Plan& p, Certificate&) { p.spec.family = family; }), "refused") << family;
  }
}

TEST_F(Forgery, SizesThatDoNotFitInMemory) {
  EXPECT_EQ(after([](Plan&, Certificate& c) { c.proofs[0].spec.microbatches = 50'000'000; }),
            "refused");
  EXPECT_MESSAGE(last_line());
  EXPECT_EQ(
      after([](Plan& p, Certificate&) { p.bound->schedules[0].stages_per_rank = 1'000'000'000; }),
      "less");
}

}  // namespace
}  // namespace pfeife
