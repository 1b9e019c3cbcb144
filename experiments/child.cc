#include "experiments/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "planner/io/files/atomic_file.h"
#include "planner/ir/error.h"

namespace pfeife {
namespace {

/// The child that runs now: a signal handler has no other way to know.
std::atomic<pid_t> running_child{0};

[[noreturn]] void become(const char* program, char* const* words, int log, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(4);
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  execv(program, words);
  constexpr char message[] = "cannot be started\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, message, sizeof message - 1);
  _exit(127);
}

std::string last_line(const std::filesystem::path& file) {
  const std::string text = read_file(file);
  const std::size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return "it said nothing";
  const std::size_t begin = text.find_last_of('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

std::filesystem::path own_folder() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
}

bool can_run(const std::filesystem::path& program) {
  std::error_code error;
  return std::filesystem::is_regular_file(program, error) && access(program.c_str(), X_OK) == 0;
}

}  // namespace

std::filesystem::path find_pfeife_run() {
  const char* named = std::getenv("PFEIFE_RUN");
  if (named != nullptr && *named != '\0') {
    if (can_run(named)) return named;
    throw ConfigError({"PFEIFE_RUN"}, "is \"" + std::string(named) + "\", which cannot be run");
  }
  for (const std::filesystem::path& program :
       {own_folder() / "pfeife-run", own_folder() / "../runtime/pfeife-run",
        own_folder() / "../../runtime/pfeife-run"})
    if (can_run(program)) return program;
  throw ConfigError({},
                    "measuring needs pfeife-run, which was not built with this program. Start "
                    "./pfeife-exp of the repository, which fetches LibTorch and builds it; or "
                    "build with -DPFEIFE_RUNTIME=ON, or name one with PFEIFE_RUN=...; or leave "
                    "\"measure\" out of the config");
}

void run_child(const std::filesystem::path& program, const std::vector<std::string>& arguments,
               const std::filesystem::path& log) {
  std::vector<char*> words{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  make_folder(log.parent_path());
  const int output = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (output < 0) throw RuntimeFault("cannot write " + log.string() + ": " + std::strerror(errno));
  const pid_t parent = getpid(), child = fork();
  if (child == 0) become(program.c_str(), words.data(), output, parent);
  const int error = errno;
  close(output);
  if (child < 0)
    throw RuntimeFault("cannot start " + program.string() + ": " + std::strerror(error));
  running_child = child;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  running_child = 0;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  throw RuntimeFault(WIFSIGNALED(status)
                         ? "pfeife-run was killed by signal " + std::to_string(WTERMSIG(status))
                         : last_line(log) + " (exit code " + std::to_string(WEXITSTATUS(status)) +
                               "; all it said is in " + log.string() + ")");
}

void stop_child() noexcept {
  const pid_t child = running_child;
  if (child <= 0) return;
  kill(child, SIGTERM);
  waitpid(child, nullptr, 0);
}

}  // namespace pfeife
