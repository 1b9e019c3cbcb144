#include "planner/schedule_tool/certify_parallel.h"

#include "planner/ir/parallel.h"

namespace pfeife::tool {

Verdict certify_parallel(const Certificate& certificate, std::size_t threads) {
  if (certificate.proofs.empty()) return certify(certificate);
  Certificate problem = certificate;
  problem.proofs.clear();
  std::vector<Verdict> verdicts(certificate.proofs.size());
  parallel_for(verdicts.size(), threads, [&](std::size_t i) {
    Certificate one = problem;
    one.proofs.push_back(certificate.proofs[i]);
    verdicts[i] = certify(one);
  });
  Verdict all;
  for (const Verdict& one : verdicts) {
    all.cuts += one.cuts;
    all.refusal = one.refusal;
    if (!all.refusal.empty()) break;
  }
  return all;
}

}  // namespace pfeife::tool
