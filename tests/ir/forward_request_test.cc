// training.mode: forward among the wishes: what goes with it, and why the rest does not.
#include <gtest/gtest.h>

#include "planner/ir/request/check.h"
#include "tests/support/golden_message.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

Request forward_request() {
  Request request;
  request.model.format = ModelFormat::Table;
  request.training.mode = Mode::Forward;
  return request;
}
std::string refused(const std::function<void(Request&)>& wish, Request request) {
  wish(request);
  return message_of([&] { check(request); });
}

TEST(ForwardRequest, WhatIsUsualForTrainingBecomesWhatIsLeftOfIt) {
  check(forward_request());
  const Request settled = with_sizes(forward_request(), 4);
  EXPECT_EQ(settled.plan.recompute, Recompute::None);
  ASSERT_EQ(settled.baselines.size(), 2u);
  for (const BaselineSettings& baseline : settled.baselines) EXPECT_EQ(baseline.family, "forward");
  EXPECT_EQ(settled.baselines[1].name(), "interleaved");
  EXPECT_NO_THROW(check(settled));

  Request own = forward_request();
  own.baselines = {{.family = "forward", .loop_batch = 8}};
  EXPECT_EQ(with_sizes(own, 4).baselines, own.baselines);
  EXPECT_EQ(with_sizes(Request{}, 4).baselines, Request{}.baselines) << "trained as ever";
}

TEST(ForwardRequest, WhatIsAboutABackwardIsRefusedWithTheReason) {
  const std::vector<std::function<void(Request&)>> wishes{
      [](Request& r) { r.plan.families = {"gpipe"}; },
      [](Request& r) { r.plan.families = {"interleaved_1f1b"}; },
      [](Request& r) { r.plan.families = {"looped_bfs"}; },
      [](Request& r) { r.baselines = {{.family = "zbv"}}; },
      [](Request& r) { r.baselines = {{.family = "forward", .recompute = Recompute::Full}}; },
      [](Request& r) { r.plan.recompute = Recompute::Choose; },
      [](Request& r) { r.training.clip_norm = 1; },
      [](Request& r) { r.plan.reference = true; },
      [](Request& r) {
        r.model.format = ModelFormat::Pt2;
        r.measure = true;
      }};
  for (const auto& wish : wishes) EXPECT_MESSAGE(refused(wish, forward_request()));
}

TEST(ForwardRequest, TheFamilyOfFAloneIsRefusedWhereTheModelIsTrained) {
  Request request;
  request.model.format = ModelFormat::Table;
  EXPECT_MESSAGE(refused([](Request& r) { r.plan.families = {"forward"}; }, request));
  EXPECT_MESSAGE(refused([](Request& r) { r.baselines = {{.family = "forward"}}; }, request));
}

}  // namespace
}  // namespace pfeife
