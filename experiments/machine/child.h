// Child processes: pfeife-run, as this program itself knows no LibTorch, and pieces of a sweep,
// whose death is theirs alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace pfeife {

/// Where pfeife-run is: what PFEIFE_RUN names, else beside this program, as installed, or where the
/// build has it. Errors: ConfigError with the remedy if there is none.
std::filesystem::path find_pfeife_run();

/// Runs a program and waits for its end; what it prints goes into the file `log`. It and its ranks
/// end with this process, however that ends. Errors: RuntimeFault with the last line that it
/// printed, if it ends with another code than 0.
void run_child(const std::filesystem::path& program, const std::vector<std::string>& arguments,
               const std::filesystem::path& log);

/// What a piece of work says on its way; what the numbers mean is between it and its listener.
struct Said {
  std::uint64_t what = 0, number = 0, amount = 0;
  std::string text = {};
};
/// May be called from any thread.
using Say = std::function<void(const Said&)>;

/// Does `work` in a process of its own, which sees the memory of the caller as it was; `hear` gets
/// here what the work says there. Result: why it came to no end, "" if it did: how its process
/// died, or what it threw. Errors: its ConfigError and RuntimeFault; RuntimeFault if it cannot be
/// started.
std::string run_apart(const std::function<void(const Say&)>& work, const Say& hear);

/// Ends the child that runs now, if there is one, and waits for its end. May be called by a signal
/// handler.
void stop_child() noexcept;

/// Ends the child that runs now and every piece that is started later, without waiting: run_apart()
/// returns soon. May be called by a signal handler.
void end_children() noexcept;
/// end_children() was called.
bool children_have_to_end() noexcept;

/// Called in a piece of work: from now on it comes to its end, whoever asks it to stop.
void finish_this_piece() noexcept;

}  // namespace pfeife
