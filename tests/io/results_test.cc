#include "planner/io/results/results.h"

#include <gmock/gmock.h>

#include "planner/io/files/csv_table.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;

CaseRecord example_record() {
  PlanRecord planned;
  planned.row = {.case_name = "devices=2,microbatches=3",
                 .plan = "planned",
                 .family = "looped",
                 .devices = 2,
                 .microbatches = 3,
                 .microbatch_size = 4,
                 .stages_per_rank = 1,
                 .cuts = {1, 5},
                 .knobs = "prefetch=1",
                 .estimate = Nanoseconds{850169338},
                 .simulate = Nanoseconds{850169339},
                 .estimate_p5 = Nanoseconds{800000001},
                 .estimate_p95 = Nanoseconds{900000000},
                 .samples_per_s = 14.115,
                 .bubble = 0.25,
                 .gap = 0.0,
                 .peak_memory = Bytes{1000},
                 .memory_limit = Bytes{2000},
                 .feasible = true,
                 .search_s = 0.25,
                 .candidates = 7};
  planned.figures = {.span = Nanoseconds{840000000},
                     .without_optimizer = Nanoseconds{830000000},
                     .rate = FlopsPerSecond{1.5e12},
                     .utilization = 0.25,
                     .reference_peak = {Bytes{1100}, Bytes{1050}},
                     .memory = {{.parameters = Bytes{1}, .saved = Bytes{2}, .buffers = Bytes{3}},
                                {.parameters = Bytes{4}, .autocast_copies = Bytes{5}}}};
  planned.need.allocated = {Bytes{1000}, Bytes{900}};
  planned.need.limit = {Bytes{2000}, Bytes{2000}};
  planned.attribution = {{.compute = Nanoseconds{800000000}, .launch = Nanoseconds{50169339}}};
  planned.critical_rank = RankId{1};
  planned.stages = {{RankId{1}, Nanoseconds{5}, Nanoseconds{7}}};
  planned.cut_names = {"block.1", "block.5"};
  planned.row.measure = Nanoseconds{850169340};
  planned.measured =
      MeasuredRun{.failure = "",
                  .steps = 10,
                  .others = 0.25,
                  .p5 = Nanoseconds{850169330},
                  .p95 = Nanoseconds{850169350},
                  .peak_memory = {Bytes{990}, Bytes{910}},
                  .furthest = {{RankId{1}, "1F0", Nanoseconds{10}, Nanoseconds{30}}}};
  PlanRecord impossible;
  impossible.row.case_name = planned.row.case_name;
  impossible.row.plan = "interleaved_1f1b";
  impossible.row.family = "interleaved_1f1b";
  impossible.reason = "N = 3 is no multiple; \"nearest\" 4";
  CaseRecord record;
  record.name = "devices=2,microbatches=3";
  record.model = "models/a, b.pt2";
  record.cluster = "box.yaml";
  record.calibration = "compute x 2, 3 ms a stage execution";
  record.named = {{"training.precision", "tf32"}, {"devices", "4"}};
  record.swept = {{"training.precision", "tf32"}, {"plan.stages_per_rank", "[1, 2]"}};
  record.digest = "abc";
  record.resolved = "version: 1\n";
  record.notes = {"a note"};
  record.plans = {planned, impossible};
  record.lost = {
      {"gpipe",
       "gpipe",
       {.why = Why::Slower, .beside_least = true, .slower = Nanoseconds{12}},
       Nanoseconds{900}},
      {"zb_h1",
       "zb_h1",
       {.why = Why::Slower, .slower = Nanoseconds{13}, .by = SelectBy::P95},
       std::nullopt},
      {"1f1b",
       "1f1b",
       {.why = Why::LacksMemory, .rank = RankId{1}, .lacking = Bytes{13}, .may_yet_fit = true},
       std::nullopt},
      {"zbv", "zbv", {.why = Why::Impossible, .words = "odd"}, std::nullopt}};
  record.history = {{10, Nanoseconds{950}, std::nullopt}, {20, Nanoseconds{940}, Nanoseconds{930}}};
  record.choices = {{.by = SelectBy::P95,
                     .number = 3,
                     .schedule = "zb_h1",
                     .estimate = Nanoseconds{940},
                     .p95 = Nanoseconds{990},
                     .used = true}};
  record.front = {{"gpipe", Nanoseconds{940}, Bytes{77}}};
  record.alternatives = {{.choice = "4 of 1", .reason = {.why = Why::RuledOut}}};
  record.tried = {{.change = "4 devices", .reason = "too few"}};
  record.unfinished = {{Unfinished::What::OpenChoices, 3}, {Unfinished::What::SharedLinks}};
  record.orders_left_out = true;
  record.plans[0].row.bound_class = "12 families";
  return record;
}

TEST(Results, CsvHasTheColumnsOfTheContractAndEmptyFieldsForWhatIsNotThere) {
  EXPECT_EQ(results_csv({example_record()}),
            "case,plan,model,cluster,calibration,training.precision,plan.stages_per_rank,family,"
            "devices,microbatches,"
            "microbatch_size,"
            "stages_per_rank,cuts,knobs,"
            "estimate_ms,simulate_ms,simulate_p95_ms,measure_ms,samples_per_s,bubble_fraction,"
            "lower_bound_ms,gap_fraction,simulate_gap_fraction,"
            "peak_memory_bytes,reserved_memory_bytes,memory_limit_bytes,feasible,"
            "search_s,candidates,estimate_p5_ms,estimate_median_ms,estimate_p95_ms,bound_class,"
            "span_ms,without_optimizer_ms,latency_ms,flops_per_s_of_device,model_flops_utilization,"
            "reference_peak_bytes_of_rank,parameters_bytes_of_rank,gradients_bytes_of_rank,"
            "optimizer_bytes_of_rank,saved_bytes_of_rank,autocast_copies_bytes_of_rank,"
            "held_for_weights_bytes_of_rank,buffers_bytes_of_rank,temporary_bytes_of_rank,"
            "free_in_segments_bytes_of_rank,context_bytes_of_rank,communicators_bytes_of_rank\n"
            "\"devices=2,microbatches=3\",planned,\"models/a, b.pt2\",box.yaml,"
            "\"compute x 2, 3 ms a stage execution\",tf32,"
            "\"[1, 2]\",looped,2,3,4,1,1 5,prefetch=1,850.169338,"
            "850.169339,,850.169340,14.115000,0.250000,,0.000000,,1000,,2000,1,0.250,7,800.000001,,"
            "900.000000,12 families,840.000000,830.000000,,1500000000000,0.250000,1100 1050,"
            "1 4,0 0,0 0,2 0,0 5,0 0,3 0,0 0,0 0,0 0,0 0\n"
            "\"devices=2,microbatches=3\",interleaved_1f1b,\"models/a, b.pt2\",box.yaml,"
            "\"compute x 2, 3 ms a stage execution\",tf32,"
            "\"[1, 2]\",interleaved_1f1b,0,0,0,0,,,,,,,,,,,,,,0,"
            "0,0.000,0,,,,,,,,,,,,,,,,,,,,,\n");
}

// Spreadsheets run what begins with =, +, - or @; what users name their files is not theirs to run.
TEST(Results, CsvHasNoFormulas) {
  CaseRecord record = example_record();
  for (const char* name : {"=HYPERLINK(\"x\")", "+1+cmd", "-2+3*cmd", "@SUM(1)"}) {
    record.model = record.swept[0].value = name;
    const std::string csv = results_csv({record});
    for (const char before : {',', '"'})
      EXPECT_EQ(csv.find(before + std::string(name).substr(0, 3)), std::string::npos) << csv;
    EXPECT_THAT(csv, HasSubstr("'" + std::string(name).substr(0, 3)));
  }
  record.swept[0].value = "-1.5e3";
  EXPECT_THAT(results_csv({record}), HasSubstr(",-1.5e3,")) << "a number is none";
}

TEST(Results, CsvHasTheMemoryOfHostsWhereAPlanOffloads) {
  CaseRecord record = example_record();
  EXPECT_THAT(results_csv({record}), ::testing::Not(HasSubstr("host_memory")));
  record.plans[0].need.host = {Bytes{70}, Bytes{0}}, record.plans[0].need.host_limit = Bytes{80};
  const std::string csv = results_csv({record});
  EXPECT_THAT(csv, HasSubstr(",communicators_bytes_of_rank,host_memory_bytes_of_host\n"));
  EXPECT_THAT(csv, HasSubstr(",0 0,70 0\n"));
  EXPECT_EQ(case_from_json(to_json(record)), record);
}

TEST(Results, ACaseReadsBackFromItsJsonToTheNanosecond) {
  EXPECT_EQ(case_from_json(to_json(example_record())), example_record());
}

// The kind and the figures are for programs, the sentence for readers.
TEST(Results, ReasonsAreThereAsFieldsAndInWords) {
  const std::string text = to_json(example_record());
  EXPECT_THAT(text, HasSubstr(R"("kind": "slower")"));
  EXPECT_THAT(text, HasSubstr(R"("reason": "12 ns slower than the least estimate")"));
  EXPECT_THAT(text, HasSubstr(R"("kind": "impossible")"));
  EXPECT_THAT(text, HasSubstr(R"("reason": "odd")"));
  EXPECT_THAT(text, HasSubstr(R"("compared_by": "p95")"));
  EXPECT_THAT(text, HasSubstr(R"("kind": "open_choices")"));
  EXPECT_THAT(text, HasSubstr(R"("words": "unfinished: 3 of the choices)"));
}

TEST(Results, WhatIsNoRecordIsNoCase) {
  EXPECT_EQ(case_from_json(""), std::nullopt);
  EXPECT_EQ(case_from_json("{}"), std::nullopt);
  const std::string text = to_json(example_record());
  EXPECT_EQ(case_from_json(text.substr(0, text.size() / 2)), std::nullopt);
  std::string strange = text;
  strange.replace(strange.find("lacks_memory"), 5, "tacks");
  EXPECT_EQ(case_from_json(strange), std::nullopt) << "a reason of an unknown kind";
  std::string endless = text;
  const std::string time = "\"slower_ms\": 1.2e-05";  // twelve nanoseconds
  ASSERT_NE(endless.find(time), std::string::npos);
  endless.replace(endless.find(time), time.size(), "\"slower_ms\": -1e300");
  EXPECT_EQ(case_from_json(endless), std::nullopt) << "a time that no 64 bits hold";
}

// A name that a spreadsheet would run is a text there, and the same name when it is read again;
// numbers stay numbers.
TEST(ResultsCsv, HasNoFormulas) {
  CaseRecord record = example_record();
  record.model = "=HYPERLINK(\"http://example.org\")";
  record.cluster = "@sum";
  record.swept = {{"key", "-1.5"}, {"other", "+a,b"}};
  const std::string csv = results_csv({record});
  EXPECT_THAT(csv, HasSubstr("\"'=HYPERLINK(\"\"http://example.org\"\")\",'@sum,"));
  EXPECT_THAT(csv, HasSubstr(",-1.5,\"'+a,b\","));
  const CsvTable table = CsvTable::parse({"results.csv", csv});
  EXPECT_EQ(table.at(0, "model").text, record.model);
  EXPECT_EQ(table.at(0, "cluster").text, record.cluster);
  EXPECT_EQ(table.at(0, "other").text, "+a,b");
}

}  // namespace
}  // namespace pfeife
