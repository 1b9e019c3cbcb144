// pfeife-exp as a user sees it: started as a process, with its output, its exit code and the files
// it leaves.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace pfeife {

struct Outcome {
  int code = 0;    ///< exit code
  int signal = 0;  ///< that ended it; 0 = none
  std::string out, err;
};

/// A test with a folder of its own, where pfeife-exp runs.
class ProgramTest : public ::testing::Test {
 protected:
  ProgramTest();
  ~ProgramTest() override;

  /// Starts pfeife-exp in the folder and waits for its end.
  Outcome run(const std::vector<std::string>& arguments) const;
  /// Starts it and returns its process id; its output goes nowhere but standard error to the file
  /// "stderr".
  int start(const std::vector<std::string>& arguments) const;
  static Outcome wait(int process);

  void write(const std::string& name, const std::string& text) const;
  std::string read(const std::filesystem::path& name) const;
  /// Content by relative path of all files below `name`; what may differ between runs (search_s) is
  /// blanked.
  std::map<std::string, std::string> files(const std::filesystem::path& name) const;
  /// Field of the first line of results.csv whose plan is `plan`.
  std::string result(const std::filesystem::path& out, const std::string& plan,
                     const std::string& column) const;

  std::filesystem::path folder_;
};

/// configs/ of this repository.
std::filesystem::path configs();

}  // namespace pfeife
