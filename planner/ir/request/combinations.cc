#include <algorithm>

#include "planner/ir/request/check.h"

namespace pfeife {
namespace {

using Asked = const Request&;

bool sliced(Asked request) { return !request.plan.slices.empty(); }
bool offloads(Asked request) { return request.plan.offload; }
bool searches_placement(Asked request) { return request.plan.search_placement; }
bool searches_devices(Asked request) { return request.plan.search_devices; }
bool for_framework(Asked request) { return !request.plan.framework.empty(); }
bool forward(Asked request) { return request.training.mode == Mode::Forward; }
bool given(Asked request) { return !request.plan.searched(); }
bool measured(Asked request) { return request.measure; }
bool published(Asked request) { return request.plan_published; }
bool reference(Asked request) { return request.plan.reference && request.plan.searched(); }
bool at_blocks(Asked request) {
  return request.plan.cuts_at == PlanSettings::CutsAt::Blocks && request.plan.searched();
}
bool order(Asked request) { return request.plan.order != "captured"; }
bool traced(Asked request) { return !request.measurement.traces.empty(); }
bool unequal(Asked request) { return request.training.listed_microbatches() > 0; }
bool in_a_mesh(Asked request) { return request.mesh || request.model.format == ModelFormat::Mesh; }
bool shares_head(Asked request) { return request.plan.head != PlanSettings::Head::Last; }
/// Sizes that are given, none of them 1.
bool divides(const std::vector<std::int64_t>& sizes) {
  return !sizes.empty() && std::ranges::find(sizes, 1) == sizes.end();
}
bool recomputes(Asked request) {
  return request.plan.recompute != Recompute::None && request.plan.recompute != Recompute::IfNeeded;
}

/// Whether a key of `plan` is set to something else than what it is without.
template <auto member>
bool set(Asked request) {
  static const PlanSettings usual;
  return !(request.plan.*member == usual.*member);
}

template <bool (*a)(Asked), bool (*b)(Asked)>
bool both(Asked request) {
  return a(request) && b(request);
}

constexpr const char* kOwn =
    "reference mode has its own schedules, cuts and effort; leave this or plan.search out";
constexpr const char* kKeepsNothing =
    "nothing is kept for a backward where training.mode is forward; leave it out";
constexpr const char* kReference = "plan.search: reference";
constexpr const char* kForward = "training.mode: forward";
constexpr const char* kMeasure = "\"measure\" among the engines";

constexpr const char* kUnequal = "training.microbatch_costs, training.lengths";

using Plan = PlanSettings;

constexpr RefusedCombination kRefused[] = {
    {"plan.recompute_except_last", "plan.slices",
     "the slices of the last microbatch are recomputed as those of all others; leave "
     "recompute_except_last or slices out",
     both<set<&Plan::recompute_except_last>, sliced>},
    {"plan.slices", "plan.for",
     "no framework of plan.for takes a plan with slices; leave plan.for or slices out",
     both<sliced, for_framework>},
    {"training.lengths", "training.microbatch_costs",
     "both say what each microbatch costs; leave one of the two out",
     [](Asked request) {
       return !request.training.lengths.empty() && !request.training.microbatch_costs.empty();
     }},
    {"training.lengths", "a mesh",
     "the layers of a mesh do not say what attention costs of a document; give "
     "training.microbatch_costs, or plan an archive",
     [](Asked request) {
       return !request.training.lengths.empty() && in_a_mesh(request) && !request.mesh;
     }},
    {"parallel", kUnequal,
     "the mesh is chosen for microbatches that are alike; leave them out, and set "
     "training.microbatch_costs in the pipeline's own config, results/NAME/NAME.yaml",
     [](Asked request) { return unequal(request) && request.mesh.has_value(); }},
    {"plan.slices", kUnequal,
     "slices are of microbatches that are alike; leave slices out, or what microbatches cost",
     both<sliced, unequal>},
    {"plan.recompute_except_last", kUnequal,
     "it is of microbatches that are alike; leave recompute_except_last out",
     both<set<&Plan::recompute_except_last>, unequal>},
    {"plan.placement", kUnequal,
     "placements are searched for microbatches that are alike; leave plan.placement out",
     both<searches_placement, unequal>, "search"},
    {"plan.devices", kUnequal,
     "devices are searched for microbatches that are alike; name the device of each rank",
     both<searches_devices, unequal>, "search"},
    {"plan.for", kUnequal,
     "no framework of plan.for takes an order of microbatches; leave plan.for out",
     both<for_framework, unequal>},
    {"plan.search", kUnequal,
     "reference mode knows microbatches that are alike; leave plan.search out",
     both<reference, unequal>, "reference"},
    {"engines.measure", kUnequal,
     "pfeife-run, which measures, makes microbatches that are alike; leave \"measure\" and traces "
     "out",
     [](Asked request) { return unequal(request) && (measured(request) || traced(request)); }},
    {"training.global_batch", kUnequal,
     "a microbatch size is chosen for microbatches that are alike; add training.microbatch_size",
     [](Asked request) {
       return unequal(request) && request.microbatch_size_open() && request.microbatches == 0;
     }},
    {"plan.microbatch_order", "microbatches that are alike",
     "no order of microbatches that are alike is faster; say what they cost, as in "
     "training.microbatch_costs: [1, 2, 3], or leave plan.microbatch_order out",
     [](Asked request) {
       return request.plan.search_microbatch_order && !unequal(request) && request.plan.searched();
     },
     "search"},
    {"plan.microbatch_order", "plan.file, plan.schedule",
     "a given plan or schedule has its microbatches where they are; leave plan.microbatch_order "
     "out",
     both<set<&Plan::search_microbatch_order>, given>, "search"},
    {"plan.offload", "plan.for",
     "no framework of plan.for takes a plan that offloads; leave plan.for or offload out",
     both<offloads, for_framework>},
    {"plan.offload", "plan.file, plan.schedule",
     "a given plan says itself what it offloads, and a given schedule by its rows; leave "
     "plan.offload out",
     both<offloads, given>},
    {"plan.placement", "plan.file, plan.schedule",
     "a given plan or schedule has its stages where they are; leave plan.placement out",
     both<searches_placement, given>, "search"},
    {"plan.placement", "plan.families without zb_greedy",
     "only orders that are built for the costs have their stages anywhere; add zb_greedy to "
     "plan.families, or leave plan.placement out",
     [](Asked request) {
       return searches_placement(request) &&
              std::ranges::none_of(request.plan.families, [](const std::string& name) {
                return name == "all" || name == "zb_greedy";
              });
     },
     "search"},
    {"plan.max_bubble", "plan.file, plan.schedule",
     "a given plan is taken as it is; leave plan.max_bubble out",
     both<given, set<&Plan::max_bubble>>},
    {"plan.schedule", "plan.file", "plan.file has a schedule; leave one of the two out",
     [](Asked request) { return request.plan.schedule && request.plan.file; }},
    {"plan.devices", "plan.schedule",
     "devices are searched together with the schedule; name the device of each rank of a given one",
     [](Asked request) { return request.plan.schedule && request.plan.search_devices; }, "search"},
    {"plan.order", "plan.cuts_at: blocks",
     "blocks are those of the captured order; leave plan.order out", both<order, at_blocks>},
    {"plan.head", "parallel: tp, cp, ep, zero",
     "ranks of tp, cp or ep have parts of the output layer already, and ZeRO does not divide the "
     "shares; leave 1 (zero: 0) among the sizes, or leave plan.head out",
     [](Asked request) {
       if (!request.mesh || request.plan.head != PlanSettings::Head::Shared) return false;
       const MeshQuestion& mesh = request.mesh->question;
       return divides(mesh.tp) || divides(mesh.cp) || divides(mesh.ep) ||
              std::ranges::find(mesh.zero, 0) == mesh.zero.end();
     },
     "shared"},
    {"plan.head", "parallel: dp beside a layer table",
     "what replicas reduce of the shares is not priced; leave `parallel` or plan.head out",
     [](Asked request) { return shares_head(request) && request.replicas.count > 1; },
     "shared, auto"},
    {"plan.head", "plan.slices",
     "ranks that share the output layer take whole microbatches; leave slices or plan.head out",
     both<shares_head, sliced>, "shared, auto"},
    {"plan.head", "plan.for",
     "no framework of plan.for shares the output layer; leave plan.for or plan.head out",
     both<shares_head, for_framework>, "shared, auto"},
    {"plan.head", kUnequal,
     "shares of the output layer are of microbatches that are alike; leave plan.head out",
     both<shares_head, unequal>, "shared, auto"},
    {"plan.head", "plan.file, plan.schedule",
     "a given plan or schedule says by its rows where the output layer is; leave plan.head out",
     both<shares_head, given>, "shared, auto"},
    {"plan.head", "plan.offload",
     "stages that offload have the output layer on the last rank; leave offload or plan.head out",
     both<shares_head, offloads>, "shared, auto"},
    {"plan.head", "plan.placement: search",
     "placements are searched with the output layer on the last rank; leave one of the two out",
     both<shares_head, searches_placement>, "shared, auto"},
    {"plan.head", "plan.devices: search",
     "devices are searched with the output layer on the last rank; name the device of each rank",
     both<shares_head, searches_devices>, "shared, auto"},
    {"plan.head", "plan.recompute_except_last",
     "all microbatches are alike where ranks share the output layer; leave one of the two out",
     both<shares_head, set<&Plan::recompute_except_last>>, "shared, auto"},
    {"plan.head", "training.clip_norm",
     "the norm of gradients of a divided output layer is not priced; leave one of the two out",
     [](Asked request) { return shares_head(request) && request.training.clip_norm > 0; },
     "shared, auto"},
    {"plan.head", kMeasure,
     "pfeife-run, which measures, has the output layer on the last rank; leave one of the two out",
     both<shares_head, measured>, "shared, auto"},
    {"plan.head", kForward,
     "the output layer is shared in training steps; leave plan.head or training.mode out",
     both<forward, shares_head>, "shared, auto"},
    {"plan.head", kReference, kOwn, both<reference, shares_head>, "shared, auto"},
    {"plan.families", kReference, kOwn, both<reference, set<&Plan::families>>},
    {"plan.slices", kReference, kOwn, both<reference, sliced>},
    {"plan.cuts", kReference, kOwn, both<reference, set<&Plan::cuts>>},
    {"plan.iterations", kReference, kOwn, both<reference, set<&Plan::iterations>>},
    {"plan.recompute", kReference, kOwn, both<reference, set<&Plan::recompute>>},
    {"plan.recompute_except_last", kReference, kOwn,
     both<reference, set<&Plan::recompute_except_last>>},
    {"plan.offload", kReference, kOwn, both<reference, offloads>},
    {"plan.placement", kReference, kOwn, both<reference, searches_placement>},
    {"plan.receives", kReference, kOwn, both<reference, set<&Plan::receives>>},
    {"plan.order", kReference, kOwn, both<reference, order>},
    {"plan.cuts_at", kReference, kOwn, both<reference, set<&Plan::cuts_at>>},
    {"plan.for", kReference, kOwn, both<reference, for_framework>},
    {"plan.as_fast", kReference, kOwn, both<reference, set<&Plan::as_fast>>},
    {"plan.max_bubble", kReference, kOwn, both<reference, set<&Plan::max_bubble>>},
    {"plan_with", "plan.file, plan.schedule", "a given plan is not made here; leave plan_with out",
     both<published, given>},
    {"plan_with", "select_by",
     "a plan made with published figures is chosen by its estimate; leave select_by out",
     [](Asked request) {
       return published(request) &&
              request.select_by.value_or(SelectBy::Estimate) != SelectBy::Estimate;
     }},
    {"training.mode", "a mesh",
     "the mesh is chosen by training steps; plan a mesh file or another model forward only",
     [](Asked request) { return forward(request) && request.mesh.has_value(); }, "forward"},
    {"plan.recompute", kForward, kKeepsNothing, both<forward, recomputes>},
    {"plan.recompute_except_last", kForward, kKeepsNothing,
     both<forward, set<&Plan::recompute_except_last>>},
    {"plan.offload", kForward, kKeepsNothing, both<forward, offloads>},
    {"plan.slices", kForward,
     "families that cut sequences are of training steps; leave slices out where training.mode is "
     "forward",
     both<forward, sliced>},
    {"plan.placement", kForward,
     "orders are built for training steps; leave plan.placement or training.mode out",
     both<forward, searches_placement>, "search"},
    {"training.clip_norm", kForward,
     "there are no gradients where training.mode is forward; leave it out",
     [](Asked request) { return forward(request) && request.training.clip_norm > 0; }},
    {"plan.search", kForward,
     "reference mode plans training steps; leave plan.search or training.mode out",
     [](Asked request) { return forward(request) && request.plan.reference; }, "reference"},
    {"plan.for", kForward,
     "plans for frameworks are of training steps; leave plan.for or training.mode out",
     both<forward, for_framework>},
    {"engines.measure", kForward,
     "\"measure\" and traces are of training steps; leave them out, and run the plan with "
     "pfeife-run evaluate",
     [](Asked request) { return forward(request) && (measured(request) || traced(request)); }},
    {"measurement.traces", kMeasure,
     "the traces are of a run that has been; leave \"measure\" out of the engines",
     both<measured, traced>},
    {"plan.slices", kMeasure,
     "pfeife-run, which measures, has no slices; leave one of the two out, or run the plan with "
     "pfeife.Pipeline",
     both<measured, sliced>},
    {"engines.measure", "parallel",
     "\"measure\" runs one pipeline; leave it out, or `parallel` (pfeife-run train --dp runs a "
     "plan on replicas)",
     [](Asked request) { return measured(request) && request.replicas.count > 1; }},
    {"training.precision", kMeasure,
     "\"measure\" runs on processors, which have no tf32; take fp32, bf16_amp or fp16_amp",
     [](Asked request) {
       return measured(request) && request.training.precision == Precision::Tf32;
     },
     "tf32"},
};

}  // namespace

std::span<const RefusedCombination> refused_combinations() { return kRefused; }

}  // namespace pfeife
