// Whatever text comes in, every verb answers with a result or a ConfigError: nothing else is
// thrown, nothing crashes.
#include <gtest/gtest.h>

#include <random>

#include "planner/io/plan/schedule_csv.h"
#include "planner/ir/basics/error.h"
#include "planner/schedule_tool/verbs.h"
#include "planner/schedules/families.h"

namespace pfeife::tool {
namespace {

/// Valid schedules, compute-only and lowered, of every family.
std::vector<std::string> seeds() {
  std::vector<std::string> texts{"", "0F0", "0F0,0B0\r\n", "0SKIP_SEND_F0>3\n"};
  std::vector<Family> all(families().begin(), families().end());
  for (const Family& known : shared_head_families()) all.push_back(known);
  for (const Family& known : all) {
    const Schedule schedule =
        generate_schedule({.family = known.name, .ranks = 2, .microbatches = 4}, false);
    LowerRequest request;
    request.options.unshard = true;
    texts.push_back(write_schedule(schedule));
    texts.push_back(write_schedule(lower_schedule(schedule, request)));
  }
  return texts;
}

/// The cell (without separators) that byte `at` is in: begin and length.
std::pair<std::size_t, std::size_t> cell_at(const std::string& text, std::size_t at) {
  const std::size_t before = at == 0 ? std::string::npos : text.find_last_of(",\n", at - 1);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  const std::size_t end = std::min(text.find_first_of(",\n", begin), text.size());
  return {begin, end - begin};
}

/// Edits of whole cells, which the reader mostly accepts: dropped, doubled, replaced by another.
void edit_cell(std::string& text, std::mt19937& random) {
  const auto [begin, length] = cell_at(text, random() % text.size());
  const std::string cell = text.substr(begin, length);
  const auto [other, other_length] = cell_at(text, random() % text.size());
  const std::string replacement = text.substr(other, other_length);
  switch (random() % 3) {
    case 0:
      text.erase(begin, length);
      break;
    case 1:
      text.insert(begin, cell + ",");
      break;
    default:
      text.replace(begin, length, replacement);
  }
}

/// Edits of bytes, which the reader mostly refuses.
void edit_bytes(std::string& text, const std::string& other, std::mt19937& random) {
  static const std::string kAlphabet = "0123456789FBIWSENDRCV_>(;),\n\r OVLAPXf\xff";
  const std::size_t at = random() % text.size(), length = random() % 12;
  switch (random() % 4) {
    case 0:
      text.insert(at, 1, kAlphabet[random() % kAlphabet.size()]);
      break;
    case 1:
      text.erase(at, length);
      break;
    case 2:
      text.insert(at, other.substr(0, length));
      break;
    default:
      text[at] = static_cast<char>(random() % 256);
  }
}

std::string mutated(std::string text, const std::vector<std::string>& all, std::mt19937& random) {
  const bool cells = random() % 2 == 0;
  for (std::size_t edits = 1 + random() % 4; edits > 0 && !text.empty(); --edits)
    cells ? edit_cell(text, random) : edit_bytes(text, all[random() % all.size()], random);
  return text;
}

/// Runs one verb; true if it had an answer, false if the input was refused.
template <class Verb>
bool answers(Verb&& verb) {
  try {
    verb();
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

TEST(Fuzz, EveryVerbAnswersOrRefuses) {
  std::mt19937 random(11);
  const auto texts = seeds();
  std::size_t read = 0, timed = 0;
  constexpr std::size_t kCases = 4000;
  for (std::size_t i = 0; i < kCases; ++i) {
    const std::string text = mutated(texts[random() % texts.size()], texts, random);
    const Dialect dialect = random() % 8 == 0 ? Dialect::Old : Dialect::Current;
    Schedule schedule;
    if (!answers([&] { schedule = read_schedule(text, "fuzz", dialect); })) continue;
    ++read;
    EXPECT_EQ(read_schedule(write_schedule(schedule), "again"), schedule) << text;
    LowerRequest request;
    request.options.transfers = random() % 2 ? TransferOrder::Torch : TransferOrder::Ready;
    request.options.unshard = random() % 2 == 0;
    request.merge_backward = random() % 3 == 0;
    request.split_backward = random() % 3 == 0;
    answers([&] { lower_schedule(schedule, request); });
    answers([&] { write_schedule(schedule, Reader::Torch); });
    answers([&] { violations_text(schedule, {Queues::Rank}); });
    answers([&] { info_text(schedule); });
    answers([&] { grid_text(schedule); });
    timed += answers([&] { timing_text(time_schedule(schedule, {}, {Queues::Pair}, {})); });
  }
  EXPECT_GT(read, kCases / 10);  // the mutations are not all nonsense
  EXPECT_GT(timed, kCases / 200);
}

TEST(Fuzz, CostsAnswerOrRefuse) {
  std::mt19937 random(12);
  const std::vector<std::string> texts{"f=1,i=1,w=1,transfer=0.05", "f=15:10,b=30:20",
                                       "overlap=1.5,optimizer=2"};
  constexpr int kCases = 3000;
  int answered = 0;
  for (int i = 0; i < kCases; ++i)
    answered += answers([&] {
      const std::string text = mutated(texts[random() % texts.size()], texts, random);
      const StageCosts costs = stage_costs_of(parse_costs(text), 2);
      for (const StageCost& stage : costs.stages)
        for (const Nanoseconds time :
             {stage.forward, stage.backward_input, stage.backward_weight, stage.optimizer})
          EXPECT_TRUE(time >= Nanoseconds{0} && time <= Nanoseconds{1'000'000'000'000'000}) << text;
    });
  EXPECT_GT(answered, kCases / 50) << "the mutations are not all nonsense";
  EXPECT_LT(answered, kCases * 9 / 10) << "nonsense is refused";
}

TEST(Costs, AKeyIsGivenOnce) {
  const auto message = [](const std::string& text) {
    try {
      parse_costs(text);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message("f=1,i=2,w=1"), "");
  EXPECT_NE(message("f=1,f=2").find("the key is there twice"), std::string::npos);
  EXPECT_NE(message("b=2,i=1").find("b is i and w together"), std::string::npos);
}

}  // namespace
}  // namespace pfeife::tool
