#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "planner/ir/basics/error.h"
#include "sim/server/server.h"

namespace pfeife {
namespace {

namespace fs = std::filesystem;

/// Where the dynamic linker looks for the libraries of this one.
std::vector<fs::path> library_folders(link_map* self) {
  Dl_serinfo size{};
  if (dlinfo(self, RTLD_DI_SERINFOSIZE, &size) != 0) return {};
  const auto memory =
      std::make_unique<std::max_align_t[]>(size.dls_size / sizeof(std::max_align_t) + 1);
  auto* const info = reinterpret_cast<Dl_serinfo*>(memory.get());
  if (dlinfo(self, RTLD_DI_SERINFOSIZE, info) != 0 || dlinfo(self, RTLD_DI_SERINFO, info) != 0)
    return {};
  const Dl_serpath* const paths = info->dls_serpath;
  std::vector<fs::path> folders;
  for (unsigned i = 0; i < info->dls_cnt; ++i) folders.emplace_back(paths[i].dls_name);
  return folders;
}

std::vector<fs::path> folders() {
  Dl_info info{};
  link_map* self = nullptr;
  if (dladdr1(reinterpret_cast<void*>(&server_program), &info, reinterpret_cast<void**>(&self),
              RTLD_DL_LINKMAP) == 0 ||
      self == nullptr)
    return {};
  std::error_code error;
  const fs::path file = *self->l_name != '\0' ? fs::absolute(self->l_name, error)
                                              : fs::read_symlink("/proc/self/exe", error);
  const fs::path beside = file.parent_path();
  std::vector<fs::path> found{beside, beside.parent_path() / "lib" / "pfeife"};
  for (fs::path& folder : library_folders(self)) found.push_back(std::move(folder));
  return found;
}

}  // namespace

fs::path server_program() {
  std::string looked;
  for (const fs::path& folder : folders()) {
    const fs::path file = folder / "pfeife_sim_server";
    if (access(file.c_str(), X_OK) == 0) return file;
    looked += (looked.empty() ? "" : ", ") + folder.string();
  }
  throw RuntimeFault("the simulation server, pfeife_sim_server, is in none of " + looked +
                     "; install Pfeife as a whole, or link with -Wl,-rpath,FOLDER of it");
}

}  // namespace pfeife
