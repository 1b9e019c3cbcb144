// pfeife-run as a child: this program itself knows no LibTorch.
#pragma once

#include <filesystem>
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

/// Ends the child that runs now, if there is one, and waits for its end. May be called by a signal
/// handler.
void stop_child() noexcept;

}  // namespace pfeife
