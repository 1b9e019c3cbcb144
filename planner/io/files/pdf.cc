#include "planner/io/files/pdf.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <optional>
#include <vector>

#include "planner/io/files/atomic_file.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

/// The exit status of a program; nothing if there is no such program. What it says is dropped.
std::optional<int> status_of(std::vector<std::string> command) {
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&files, stream, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int fault = posix_spawnp(&child, arguments[0], &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (fault != 0) return std::nullopt;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) return std::nullopt;
  return status;
}

/// A page as large as the drawing, which a browser prints; with a profile of its own, removed
/// afterwards.
class PrintedPage {
 public:
  explicit PrintedPage(const std::filesystem::path& svg) {
    std::string name = (std::filesystem::temp_directory_path() / "pfeife_print_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw RuntimeFault("cannot make a folder " + name);
    folder_ = name;
    const std::string drawing = read_file(svg);
    const auto size = [&](const std::string& attribute) {
      const std::size_t from = drawing.find(attribute + "=\"") + attribute.size() + 2;
      return drawing.substr(from, drawing.find('"', from) - from);
    };
    write_file(page(), "<!doctype html><meta charset=\"utf-8\"><style>@page{margin:0;size:" +
                           size(" width") + "px " + size(" height") +
                           "px}body{margin:0}svg{display:block}*{print-color-adjust:exact}"
                           "</style>" +
                           drawing);
  }
  ~PrintedPage() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  PrintedPage(const PrintedPage&) = delete;
  PrintedPage& operator=(const PrintedPage&) = delete;

  std::filesystem::path page() const { return folder_ / "page.html"; }
  std::string profile() const { return (folder_ / "profile").string(); }

 private:
  std::filesystem::path folder_;
};

}  // namespace

std::string write_pdf(const std::filesystem::path& svg, const std::filesystem::path& pdf) {
  const auto made_by = [&](const std::vector<std::string>& command) {
    const std::optional<int> status = status_of(command);
    if (status && *status != 0) throw RuntimeFault(command[0] + " made no PDF of " + svg.string());
    return status.has_value();
  };
  const std::vector<std::vector<std::string>> converters{
      {"rsvg-convert", "--format=pdf", "--output=" + pdf.string(), svg.string()},
      {"inkscape", "--export-filename=" + pdf.string(), svg.string()},
      {"cairosvg", "--output", pdf.string(), svg.string()}};
  for (const std::vector<std::string>& command : converters)
    if (made_by(command)) return command[0];
  const PrintedPage printed(svg);
  for (const char* browser : {"chromium", "chromium-browser", "google-chrome"})
    if (made_by({browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                 "--no-pdf-header-footer", "--user-data-dir=" + printed.profile(),
                 "--print-to-pdf=" + std::filesystem::absolute(pdf).string(),
                 "file://" + printed.page().string()}))
      return browser;
  throw RuntimeFault(
      "no converter to PDF here: install rsvg-convert (Debian package librsvg2-bin), inkscape, "
      "cairosvg or chromium");
}

}  // namespace pfeife
