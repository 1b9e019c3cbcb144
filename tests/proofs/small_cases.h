// Small cases of every kind of certificate: chains and branches, memory that binds, given cuts,
// recomputation, any order.
#pragma once

#include <cstdio>

#include "tests/proofs/case_folder.h"

namespace pfeife {

/// A chain of six layers.
inline CaseOf chain() {
  return {"chain.csv",
          "name,forward_ms,backward_input_ms,backward_weight_ms,output_bytes,parameter_bytes,"
          "saved_bytes,weight_saved_bytes,temporary_bytes\n"
          "a,3,4,2,20000,1000,9000,800,500\nb,5,5,4,10000,2000,12000,900,4000\n"
          "c,2,3,3,30000,1500,7000,300,700\nd,6,6,5,20000,2500,15000,1200,900\n"
          "e,4,4,2,10000,500,8000,700,300\nf,3,2,4,10000,3000,5000,400,600\n",
          ModelFormat::Table,
          {{"gpipe", 2, 3, 1, {}, {}},
           {"1f1b", 2, 3, 1, {}, {}},
           {"zb_h1", 2, 3, 1, {}, {}},
           {"looped", 2, 3, 2, 2, {}}}};
}

/// Two towers of two layers, a join and a tail (forward / backward ms), eight bytes on every edge.
inline CaseOf towers(std::size_t stages_per_rank, std::size_t microbatches) {
  const char* const names[] = {"A1", "A2", "B1", "B2", "C1", "C2"};
  const double times[][2] = {{100, 2}, {1, 2}, {1, 2}, {100, 2}, {1, 2}, {1, 2}};
  std::string text;
  char line[160];
  for (int n = 0; n < 6; ++n) {
    std::snprintf(line, sizeof line,
                  "node%d -- %s -- forward_compute_time=%.3f, backward_compute_time=%.3f, "
                  "activation_size=8.0, parameter_size=4.000\n",
                  n + 1, names[n], times[n][0], times[n][1]);
    text += line;
  }
  for (const auto& [from, to] : {std::pair{1, 2}, {3, 4}, {2, 5}, {4, 5}, {5, 6}})
    text += "\tnode" + std::to_string(from) + " -- node" + std::to_string(to) + "\n";
  return {"towers.txt",
          text,
          ModelFormat::PipeDream,
          {{"zb_greedy", 2, microbatches, stages_per_rank, {}, {}}}};
}

struct SmallCase {
  std::string name;
  CaseOf of;
};
inline std::vector<SmallCase> small_cases() {
  std::vector<SmallCase> cases{{"chain", chain()},       {"tight", chain()},
                               {"choose", chain()},      {"given", chain()},
                               {"towers", towers(1, 4)}, {"any_order", towers(1, 4)}};
  cases[1].of.memory = 0.85;
  cases[2].of.memory = 0.7, cases[2].of.recompute = Recompute::Choose;
  cases[3].of.cuts = Partition{{2}};
  cases[4].of.schedules = {{"gpipe", 2, 4, 1, {}, {}}, {"1f1b", 2, 4, 1, {}, {}}};
  return cases;
}

}  // namespace pfeife
