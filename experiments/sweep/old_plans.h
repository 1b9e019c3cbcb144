// What earlier runs left in the folder of a case: plans that are no longer among its plans would be
// taken for those of the case. And what a folder's files were when they were written: files.sha256,
// as `sha256sum -c` reads it, finds files that were damaged or edited since, unless the list is
// written again with them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace pfeife {

/// Writes the list of those of `files`, paths within `folder`, that exist. Errors: RuntimeFault.
void write_digests(const std::filesystem::path& folder, const std::vector<std::string>& files);

/// The files of the list, as write_digests() was given them; empty without a list that can be read.
std::vector<std::string> digested_files(const std::filesystem::path& folder);

/// There is a list that ends with `last`, and every file of it has the bytes that it had.
bool is_undamaged(const std::filesystem::path& folder, const std::string& last);

/// Readies a case's folder for the plans `kept`: removes case.json, which says that the case is
/// done; of plans that are not kept every file that pfeife-exp writes, and of those that are kept
/// the files that not every plan has, certificate.txt apart. Folders named after no plan, other
/// files and the folder that `input` (may be empty) lies in are left alone. Errors: RuntimeFault.
void remove_old_plans(const std::filesystem::path& folder, const std::vector<std::string>& kept,
                      const std::filesystem::path& input);

/// Names of the files of a plan that decide what it is taken for, whether they all exist or not.
std::vector<const char*> plan_files();

}  // namespace pfeife
