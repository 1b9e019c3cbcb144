// The verb `certify`: reads the files, has them judged, and says what came of it.
#include "planner/io/files/atomic_file.h"
#include "planner/io/files/open_file.h"
#include "planner/io/plan/certificate_file.h"
#include "planner/io/plan/plan_file.h"
#include "planner/ir/basics/error.h"
#include "planner/schedule_tool/certify.h"

namespace pfeife::tool {
namespace {

/// A folder stands for its plan, or for its certificate: where nothing fits there is a proof alone.
std::filesystem::path file_meant(std::filesystem::path file) {
  if (!is_there(file)) throw ConfigError({file.string()}, "there is no such file");
  if (!is_folder(file)) return file;
  const bool planned = is_there(file / "plan.yaml");
  if (!planned && !is_there(file / "certificate.txt"))
    throw ConfigError({file.string()}, "there is neither a plan.yaml nor a certificate.txt");
  return file / (planned ? "plan.yaml" : "certificate.txt");
}

void check_memory(const Certificate& certificate, std::size_t threads, const Announce& announce) {
  constexpr Bytes kAnnounced{std::int64_t{256} << 20}, kMost{std::int64_t{4} << 30};
  const Bytes needed = certify_memory(certificate, threads);
  if (needed > kMost)
    throw ConfigError({}, "checking this proof takes about " + to_string(needed) +
                              ", more than the 4 GiB that are allowed: plan a model of fewer "
                              "layers or legal cuts, or fewer schedules");
  if (needed > kAnnounced) announce("checking this proof takes about " + to_string(needed));
}

}  // namespace

Judged certify_files(const std::filesystem::path& named, std::size_t threads,
                     const Announce& announce) {
  const std::filesystem::path file = file_meant(named);
  const bool of_plan = file.extension() == ".yaml";
  const std::filesystem::path proof = of_plan ? file.parent_path() / "certificate.txt" : file;
  if (of_plan && !is_there(proof))
    throw ConfigError({proof.string()},
                      "is not there: none is written for baselines, given plans or schedules, for "
                      "the reference search, and "
                      "where nothing that can be checked is known of some schedule");
  const Certificate certificate = read_certificate(proof);
  std::optional<Plan> plan;
  FromFiles files{"only a plan.yaml names the files that they are made of", ""};
  if (of_plan) {
    plan = read_plan(file);
    files = compare_with_files(certificate, *plan, file.parent_path());
    if (!files.refusal.empty())
      throw ConfigError({proof.string()}, "the certificate is refused: " + files.refusal);
    if (const std::string reason = disagreement(certificate, *plan); !reason.empty())
      throw ConfigError({proof.string()}, "the certificate is not of this plan: " + reason);
  }
  check_memory(certificate, threads, announce);
  const Verdict verdict = certify(certificate, threads);
  if (!verdict.refusal.empty())
    throw ConfigError({proof.string()}, "the certificate is refused: " + verdict.refusal);
  Judged judged{summary(certificate, verdict, plan ? &*plan : nullptr), files.missing.empty()};
  if (!files.missing.empty())
    judged.text = "costs not checked: " + files.missing + "\n" + judged.text;
  if (plan && !unproven(certificate, *plan).empty()) judged.proven = false;
  return judged;
}

}  // namespace pfeife::tool
