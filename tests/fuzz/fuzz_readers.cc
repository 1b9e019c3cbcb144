// Mutates valid inputs of every reader, a fixed number of times from a fixed seed, so that a run
// can be repeated exactly. Whatever is read must be accepted or refused with ConfigError.
//
//   fuzz_readers [--iterations FACTOR] [--seed N] [--target NAME] [--save FOLDER] [FILE...]
//
// FACTOR multiplies each target's own number. With FILEs, these are read instead (to repeat a
// finding). An input that brings the program down is left in the folder of --save (default: the
// system's temporary one), with its name printed.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/fuzz/mutator.h"
#include "tests/fuzz/targets.h"
#include "tests/support/zip_bytes.h"

namespace pfeife {
namespace {

// What is being read, for the signal handler.
const std::string* current_input = nullptr;
char finding_path[512] = "fuzz_finding";

void save_current_input() {
  if (current_input == nullptr) return;
  const int file = open(finding_path, O_CREAT | O_TRUNC | O_WRONLY, 0644);
  std::size_t done = 0;
  while (file >= 0 && done < current_input->size()) {
    const ssize_t wrote = write(file, current_input->data() + done, current_input->size() - done);
    if (wrote <= 0) break;
    done += static_cast<std::size_t>(wrote);
  }
  const char text[] = "the input is kept in ";
  (void)!write(2, text, sizeof text - 1);
  (void)!write(2, finding_path, std::strlen(finding_path));
  (void)!write(2, "\n", 1);
  current_input = nullptr;
}

extern "C" void on_fatal_signal(int signal) {
  save_current_input();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

struct Options {
  double factor = 1;
  std::uint64_t seed = 1;
  std::string target;
  std::filesystem::path save = std::filesystem::temp_directory_path();
  std::vector<std::string> files;
};

[[noreturn]] void fail_usage(const std::string& problem) {
  std::fprintf(stderr,
               "%s\nusage: fuzz_readers [--iterations FACTOR] [--seed N] [--target NAME] [--save "
               "FOLDER] [FILE...]\n",
               problem.c_str());
  std::exit(2);
}

Options parsed(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    if (!argument.starts_with("--")) {
      if (!std::filesystem::is_regular_file(argument)) fail_usage("there is no file " + argument);
      options.files.push_back(argument);
      continue;
    }
    if (i + 1 == count) fail_usage(argument + " needs a value");
    const std::string value = arguments[++i];
    if (argument == "--iterations")
      options.factor = std::atof(value.c_str());
    else if (argument == "--seed")
      options.seed = std::strtoull(value.c_str(), nullptr, 10);
    else if (argument == "--target")
      options.target = value;
    else if (argument == "--save")
      options.save = value;
    else
      fail_usage("unknown option " + argument);
  }
  return options;
}

/// Reads the seeds as they are, which must be accepted, then mutations of them.
void fuzz_target(const FuzzTarget& target, const Options& options,
                 const std::filesystem::path& folder) {
  std::vector<std::string> seeds;
  for (const std::string& seed : target.seeds) {
    seeds.push_back(file_bytes(PFEIFE_SOURCE_DIR "/" + seed));
    try {
      target.read(seeds.back(), folder);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s: the seed %s is not accepted: %s\n", target.name.c_str(),
                   seed.c_str(), error.what());
      std::exit(1);
    }
  }
  const int iterations = std::max(1, static_cast<int>(target.iterations * options.factor));
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < iterations; ++i) {
    Mutator mutator(options.seed * 1'000'003 + static_cast<std::uint64_t>(i));
    const std::string input = mutator.mutate(seeds, target.kind);
    current_input = &input;
    fuzz_one(target, input, folder);
    current_input = nullptr;
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("%-12s %6d inputs, %5.1f s\n", target.name.c_str(), iterations, seconds);
  std::fflush(stdout);
}

int run(const Options& options) {
  for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL})
    std::signal(signal, on_fatal_signal);
  char name[] = "/tmp/fuzz_readers_XXXXXX";
  if (mkdtemp(name) == nullptr) fail_usage("cannot make a temporary folder");
  const std::filesystem::path root = name;
  bool found = false;
  for (const FuzzTarget& target : fuzz_targets()) {
    if (!options.target.empty() && target.name != options.target) continue;
    found = true;
    std::filesystem::create_directory(root / target.name);
    std::snprintf(finding_path, sizeof finding_path, "%s/fuzz_finding_%s", options.save.c_str(),
                  target.name.c_str());
    if (options.files.empty()) fuzz_target(target, options, root / target.name);
    for (const std::string& file : options.files)
      fuzz_one(target, file_bytes(file), root / target.name);
  }
  std::filesystem::remove_all(root);
  if (!found) fail_usage("there is no target " + options.target);
  return 0;
}

}  // namespace
}  // namespace pfeife

// Called by AddressSanitizer when it has found something. One allocation of more than 1 GiB counts.
extern "C" void __asan_on_error() { pfeife::save_current_input(); }
extern "C" const char* __asan_default_options() {
  return "max_allocation_size_mb=1024:allocator_may_return_null=0:detect_leaks=1";
}

int main(int argc, char** argv) { return pfeife::run(pfeife::parsed(argc, argv)); }
