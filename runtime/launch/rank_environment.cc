#include "runtime/launch/rank_environment.h"

#include <charconv>
#include <cstdlib>
#include <initializer_list>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw ConfigError({"environment"}, message);
}

/// Set, and not to nothing.
bool has(const Variables& variables, const char* name) {
  const char* text = variables(name);
  return text != nullptr && *text != '\0';
}

std::string text_of(const Variables& variables, const char* name) {
  return has(variables, name) ? variables(name) : "";
}

/// Everything in `needed` must be set; `remedy` says how.
void require(const Variables& variables, std::initializer_list<const char*> needed,
             const std::string& remedy) {
  std::string there, missing;
  for (const char* name : needed) {
    std::string& list = has(variables, name) ? there : missing;
    list += (list.empty() ? "" : ", ") + std::string(name);
  }
  if (missing.empty()) return;
  refuse("missing: " + missing + (there.empty() ? "" : "; set: " + there) + ". " + remedy);
}

std::int64_t number(const Variables& variables, const char* name, std::int64_t least,
                    std::int64_t most) {
  const std::string text = text_of(variables, name);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
    refuse(stream_all(name, "='", text, "' must be a number from ", least, " to ", most));
  return value;
}

RankEnvironment seat(const Variables& variables, const char* rank, const char* size,
                     const char* local) {
  const std::int64_t ranks = number(variables, size, 1, 1 << 20);
  return {
      .rank = RankId{number(variables, rank, 0, ranks - 1)},
      .ranks = static_cast<std::size_t>(ranks),
      .local = has(variables, local) ? static_cast<int>(number(variables, local, 0, ranks - 1)) : 0,
      .size_variable = size,
      .shared = {},
      .store = {},
      .secret = text_of(variables, "PFEIFE_SECRET")};
}

std::uint16_t master_port(const Variables& variables) {
  return static_cast<std::uint16_t>(number(variables, "MASTER_PORT", 1, 65535));
}

RankEnvironment of_torchrun(const Variables& variables) {
  require(variables, {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"},
          "torchrun --no-python sets all four; unset RANK and WORLD_SIZE to let pfeife-run start "
          "its ranks itself");
  RankEnvironment found = seat(variables, "RANK", "WORLD_SIZE", "LOCAL_RANK");
  found.store = {text_of(variables, "MASTER_ADDR"), master_port(variables),
                 text_of(variables, "TORCHELASTIC_USE_AGENT_STORE") == "True",
                 text_of(variables, "TORCHELASTIC_RESTART_COUNT")};
  return found;
}

RankEnvironment of_open_mpi(const Variables& variables) {
  require(variables, {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"},
          "Give the host of rank 0 and a free port of it: mpirun -x MASTER_ADDR=HOST -x "
          "MASTER_PORT=29500 ...");
  RankEnvironment found =
      seat(variables, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK");
  found.store = {text_of(variables, "MASTER_ADDR"), master_port(variables), false, ""};
  return found;
}

/// Equal for all tasks of a step, below the ports that systems hand out, most likely another one
/// than that of a job beside it.
std::uint16_t slurm_port(const Variables& variables) {
  const std::int64_t most = std::int64_t{1} << 40;
  const std::int64_t job =
      has(variables, "SLURM_JOB_ID") ? number(variables, "SLURM_JOB_ID", 0, most) : 0;
  return static_cast<std::uint16_t>(
      20000 + (job * 16 + number(variables, "SLURM_STEP_ID", 0, most)) % 10000);
}

std::optional<RankEnvironment> of_slurm(const Variables& variables) {
  require(variables, {"SLURM_STEP_ID", "SLURM_PROCID", "SLURM_NTASKS"}, "srun sets all three");
  if (number(variables, "SLURM_NTASKS", 1, 1 << 20) == 1) return {};  // it starts ranks itself
  RankEnvironment found = seat(variables, "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID");
  const char* list =
      has(variables, "SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST";
  if (!has(variables, "MASTER_ADDR"))
    require(variables, {list}, "srun sets it; or set MASTER_ADDR");
  found.store.host = has(variables, "MASTER_ADDR") ? text_of(variables, "MASTER_ADDR")
                                                   : first_host(text_of(variables, list));
  found.store.port = has(variables, "MASTER_PORT") ? master_port(variables) : slurm_port(variables);
  return found;
}

}  // namespace

std::optional<RankEnvironment> rank_environment(const Variables& variables) {
  if (has(variables, "PFEIFE_MEETING")) {
    require(variables, {"RANK", "WORLD_SIZE"}, "Unset PFEIFE_MEETING, which pfeife-run sets");
    RankEnvironment found = seat(variables, "RANK", "WORLD_SIZE", "LOCAL_RANK");
    found.shared = static_cast<int>(number(variables, "PFEIFE_MEETING", 0, 1 << 30));
    return found;
  }
  if (has(variables, "RANK") || has(variables, "WORLD_SIZE")) return of_torchrun(variables);
  if (has(variables, "OMPI_COMM_WORLD_RANK") || has(variables, "OMPI_COMM_WORLD_SIZE"))
    return of_open_mpi(variables);
  // A batch script itself has SLURM_PROCID, too, but is no step.
  if (has(variables, "SLURM_STEP_ID")) return of_slurm(variables);
  return {};
}

std::optional<RankEnvironment> rank_environment() {
  return rank_environment([](const char* name) { return std::getenv(name); });
}

std::string first_host(const std::string& list) {
  std::string host;
  for (std::size_t i = 0; i < list.size() && list[i] != ','; ++i) {
    if (list[i] != '[') {
      host += list[i];
      continue;
    }
    const std::size_t end = list.find(']', i);
    const std::string numbers = list.substr(i + 1, end - i - 1);
    host += numbers.substr(0, numbers.find_first_of("-,"));
    if (end == std::string::npos) break;
    i = end;
  }
  return host;
}

}  // namespace pfeife
