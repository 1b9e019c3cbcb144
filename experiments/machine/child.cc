#include "experiments/machine/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "planner/io/files/atomic_file.h"
#include "planner/io/files/dependent_process.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

/// The child that runs now: a signal handler has no other way to know.
std::atomic<pid_t> running_child{0};
/// end_children() was called.
std::atomic<bool> children_end{false};

int become_logged(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                  int log) {
  std::vector<std::string> words{program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  const int code = become_program(program.c_str(), std::move(words));
  constexpr char message[] = "cannot be started\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, message, sizeof message - 1);
  return code;
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

/// What a piece sends: in front of so many bytes.
enum class Sent : std::uint64_t { Said, Wrong, Fault, Failure };
struct Header {
  Sent kind = Sent::Said;
  std::uint64_t size = 0;
  std::uint64_t what = 0, number = 0, amount = 0;  ///< of Said
};

void send(int pipe, Sent kind, const Said& message) {
  const std::string& text = message.text;
  const Header header{kind, text.size(), message.what, message.number, message.amount};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes += text;
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t written = write(pipe, bytes.data() + at, bytes.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) _exit(1);  // nobody listens
    at += static_cast<std::size_t>(written);
  }
}

extern "C" void end_with_child(int number) {
  stop_child();
  signal(number, SIG_DFL);
  raise(number);
}
extern "C" void leave_to_parent(int) {}

/// An interrupt from the keyboard reaches all processes; the first of them answers it.
void become_piece() {
  running_child = 0;
  signal(SIGINT, leave_to_parent);
  signal(SIGTERM, end_with_child);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
}

/// The life of a piece; its exit code.
int do_piece(const std::function<void(const Say&)>& work, int pipe) {
  std::mutex mutex;
  try {
    work([&](const Said& message) {
      const std::lock_guard lock(mutex);
      send(pipe, Sent::Said, message);
    });
    return 0;
  } catch (const ConfigError& error) {
    send(pipe, Sent::Wrong, {.text = error.what()});
  } catch (const RuntimeFault& error) {
    send(pipe, Sent::Fault, {.text = error.what()});
  } catch (const std::exception& error) {
    send(pipe, Sent::Failure, {.text = error.what()});
  }
  return 1;
}

/// Everything that a piece sends until it ends; `hear` gets what it says. Returns what it sent last
/// if that was an error.
std::pair<Sent, std::string> listen(int pipe, const Say& hear) {
  std::string received;
  std::pair<Sent, std::string> last{Sent::Said, ""};
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t count = read(pipe, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return last;
    received.append(buffer.data(), static_cast<std::size_t>(count));
    for (Header header; received.size() >= sizeof header;) {
      std::memcpy(&header, received.data(), sizeof header);
      if (received.size() - sizeof header < header.size) break;
      last = {header.kind, received.substr(sizeof header, header.size)};
      received.erase(0, sizeof header + header.size);
      if (last.first == Sent::Said) hear({header.what, header.number, header.amount, last.second});
    }
  }
}

int wait_for_running(pid_t child) {
  const int status = wait_for_end(child);
  running_child = 0;
  return status;
}

}  // namespace

std::string run_apart(const std::function<void(const Say&)>& work, const Say& hear) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    throw RuntimeFault("no pipe to a child process: " + std::string(std::strerror(errno)));
  std::fflush(nullptr);  // or the child would write it again
  pid_t child = 0;
  try {
    child = start_dependent(SIGKILL, [&] {
      become_piece();
      close(ends[0]);
      return do_piece(work, ends[1]);
    });
  } catch (...) {
    for (const int end : ends) close(end);
    throw;
  }
  running_child = child;
  if (children_end) end_children();  // since a moment ago
  close(ends[1]);
  const auto [kind, text] = listen(ends[0], hear);
  close(ends[0]);
  const int status = wait_for_running(child);
  if (status == 0) return "";
  if (kind == Sent::Wrong) throw ConfigError({}, text);
  if (kind == Sent::Fault) throw RuntimeFault(text);
  if (kind == Sent::Failure) return text;
  const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  return "its process " + ending(status) +
         (killed ? ", as by a system that has no memory left" : "");
}

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
  make_folder(log.parent_path());
  const int output = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (output < 0) throw write_failure(log, errno);
  pid_t child = 0;
  try {
    child = start_dependent(SIGTERM, [&] { return become_logged(program, arguments, output); });
  } catch (...) {
    close(output);
    throw;
  }
  close(output);
  running_child = child;
  const int status = wait_for_running(child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  throw RuntimeFault(WIFSIGNALED(status)
                         ? "pfeife-run " + ending(status)
                         : last_line(log) + " (exit code " + std::to_string(WEXITSTATUS(status)) +
                               "; all it said is in " + log.string() + ")");
}

void end_children() noexcept {
  children_end = true;
  if (const pid_t child = running_child; child > 0) kill(child, SIGTERM);
}

bool children_have_to_end() noexcept { return children_end; }

void finish_this_piece() noexcept { signal(SIGTERM, SIG_IGN); }

void stop_child() noexcept {
  const pid_t child = running_child;
  if (child <= 0) return;
  kill(child, SIGTERM);
  waitpid(child, nullptr, 0);
}

}  // namespace pfeife
