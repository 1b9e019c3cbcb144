#include "tests/experiments/program.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <sstream>

namespace pfeife {
namespace {

std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// In the child: output to files, then the program.
[[noreturn]] void become(const std::filesystem::path& folder,
                         const std::vector<std::string>& arguments) {
  if (chdir(folder.c_str()) != 0) _exit(126);
  const auto redirect = [](const char* file, int descriptor) {
    dup2(open(file, O_WRONLY | O_CREAT | O_TRUNC, 0644), descriptor);
  };
  dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
  redirect("stdout", STDOUT_FILENO);
  redirect("stderr", STDERR_FILENO);
  std::vector<char*> words{const_cast<char*>(PFEIFE_EXP)};
  for (const std::string& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  execv(PFEIFE_EXP, words.data());
  _exit(127);
}

std::vector<std::string> split_csv(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

/// The text without what stands between each `begin` and the next `end`.
std::string without(const std::string& text, const std::string& begin, const std::string& end) {
  std::string result;
  for (std::size_t at = 0, found; at < text.size(); at = found) {
    found = text.find(begin, at);
    result += text.substr(at, found - at);
    if (found == std::string::npos) break;
    found = std::min(text.find(end, found + begin.size()), text.size());
  }
  return result;
}

/// results.csv without its column search_s.
std::string without_search_s(const std::string& csv) {
  std::istringstream lines(csv);
  std::string line, text;
  std::ptrdiff_t at = 0;
  while (std::getline(lines, line)) {
    std::vector<std::string> fields = split_csv(line);
    if (text.empty()) at = std::ranges::find(fields, "search_s") - fields.begin();
    fields.at(static_cast<std::size_t>(at)).clear();
    for (const std::string& field : fields) text += field + "|";
    text += "\n";
  }
  return text;
}

/// files.sha256 without the files that have a search_s.
std::string without_digests_of_search_s(const std::string& list) {
  std::istringstream lines(list);
  std::string line, text;
  while (std::getline(lines, line))
    if (!line.ends_with("  case.json") && !line.ends_with("  results.json") &&
        !line.ends_with("  results.csv"))
      text += line + "\n";
  return text;
}

}  // namespace

std::filesystem::path configs() { return std::filesystem::path(PFEIFE_SOURCE_DIR) / "configs"; }

ProgramTest::ProgramTest() {
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string(info->test_suite_name()) + "." + info->name();
  std::replace(name.begin(), name.end(), '/', '_');
  folder_ = std::filesystem::path(::testing::TempDir()) /
            ("pfeife." + name + "." + std::to_string(::getpid()));
  std::filesystem::remove_all(folder_);
  std::filesystem::create_directories(folder_);
}

ProgramTest::~ProgramTest() {
  std::error_code error;
  std::filesystem::remove_all(folder_, error);
}

int ProgramTest::start(const std::vector<std::string>& arguments) const {
  const int process = fork();
  if (process == 0) become(folder_, arguments);
  return process;
}

Outcome ProgramTest::wait(int process) {
  int status = 0;
  waitpid(process, &status, 0);
  Outcome outcome;
  if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  return outcome;
}

Outcome ProgramTest::run(const std::vector<std::string>& arguments) const {
  Outcome outcome = wait(start(arguments));
  outcome.out = text_of(folder_ / "stdout");
  outcome.err = text_of(folder_ / "stderr");
  std::filesystem::remove(folder_ / "stdout");
  std::filesystem::remove(folder_ / "stderr");
  return outcome;
}

void ProgramTest::write(const std::string& name, const std::string& text) const {
  std::filesystem::create_directories((folder_ / name).parent_path());
  std::ofstream(folder_ / name, std::ios::binary) << text;
}

std::string ProgramTest::read(const std::filesystem::path& name) const {
  return text_of(folder_ / name);
}

std::map<std::string, std::string> ProgramTest::files(const std::filesystem::path& name) const {
  std::map<std::string, std::string> result;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / name)) {
    if (!entry.is_regular_file()) continue;
    std::string& text = result[entry.path().lexically_relative(folder_ / name).string()];
    text = text_of(entry.path());
    if (entry.path().extension() == ".json") text = without(text, "\"search_s\": ", ",");
    if (entry.path().filename() == "results.csv") text = without_search_s(text);
    if (entry.path().filename() == "files.sha256") text = without_digests_of_search_s(text);
  }
  return result;
}

std::string ProgramTest::result(const std::filesystem::path& out, const std::string& plan,
                                const std::string& column) const {
  std::istringstream lines(read(out / "results.csv"));
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> header = split_csv(line);
  const auto index = [&](const std::string& name) {
    return static_cast<std::size_t>(std::ranges::find(header, name) - header.begin());
  };
  while (std::getline(lines, line))
    if (const std::vector<std::string> fields = split_csv(line); fields.at(index("plan")) == plan)
      return fields.at(index(column));
  return "no such line";
}

}  // namespace pfeife
