// What a folder's files were when they were written: files.sha256, as `sha256sum -c` reads it.
// Files that were damaged or edited since are found by it; one who writes a new list with them is
// not.
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

}  // namespace pfeife
