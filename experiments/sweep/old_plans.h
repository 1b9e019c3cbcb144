// What earlier runs left in the folder of a case: plans that are no longer among its plans would be
// taken for those of the case.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace pfeife {

/// Readies a case's folder for the plans `kept`: removes case.json, which says that the case is
/// done; of plans that are not kept every file that pfeife-exp writes, and of those that are kept
/// the files that not every plan has, certificate.txt apart. Folders named after no plan, other
/// files and the folder that `input` (may be empty) lies in are left alone. Errors: RuntimeFault.
void remove_old_plans(const std::filesystem::path& folder, const std::vector<std::string>& kept,
                      const std::filesystem::path& input);

/// Names of the files of a plan that decide what it is taken for, whether they all exist or not.
std::vector<const char*> plan_files();

}  // namespace pfeife
