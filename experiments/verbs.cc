#include "experiments/verbs.h"

#include <algorithm>
#include <boost/program_options.hpp>
#include <filesystem>
#include <iostream>
#include <thread>

#include "experiments/batch_verbs.h"
#include "experiments/config_verbs.h"
#include "experiments/measure/calibrated.h"
#include "experiments/pfeife.h"
#include "experiments/show/figure.h"
#include "experiments/show/fits_table.h"
#include "experiments/show/mesh_table.h"
#include "experiments/show/report.h"
#include "experiments/show/texts.h"
#include "experiments/sweep/fits.h"
#include "experiments/sweep/products.h"
#include "planner/io/experiment/allocator_conf.h"
#include "planner/io/files/atomic_file.h"
#include "planner/io/files/command_line.h"
#include "planner/io/files/open_file.h"
#include "planner/io/files/quantity.h"
#include "planner/io/files/shipped_files.h"
#include "planner/io/files/terminal.h"
#include "planner/io/model/training_yaml.h"
#include "planner/io/plan/plan_export.h"
#include "planner/ir/basics/grid.h"

namespace pfeife {
namespace {

namespace po = boost::program_options;

/// `pfeife-exp compare PLAN TRACES...`
int compare(const std::vector<std::string>& arguments) {
  if (arguments.size() < 2 || std::ranges::any_of(arguments, [](const std::string& word) {
        return word.starts_with("--");
      }))
    throw ConfigError({},
                      "which plan, and which traces? Usage: pfeife-exp compare PLAN TRACES...: "
                      "plan.yaml or its folder, then a trace of each rank or a folder of them");
  const std::vector<std::filesystem::path> traces(arguments.begin() + 1, arguments.end());
  std::cout << comparison_text(compare_with_traces(arguments[0], traces), output_width());
  return 0;
}

/// `pfeife-exp view PLAN [TRACES...] [--out FILE]`
int view(const std::vector<std::string>& arguments) {
  po::options_description options("Options");
  options.add_options()("out,o", po::value<std::string>()->value_name("FILE"),
                        "where to (default: view.html in the plan's folder)")(
      "help", "print this, then stop");
  const auto found = read_arguments(arguments, options, "files", "pfeife-exp view", true);
  const std::vector<std::string> files = found.contains("files")
                                             ? found["files"].as<std::vector<std::string>>()
                                             : std::vector<std::string>{};
  if (found.contains("help") || files.empty()) {
    std::cout
        << "Usage: pfeife-exp view PLAN [TRACES...] [--out FILE]\n\n"
           "The report's page for one plan: plan.yaml or its folder, and the traces of a run, "
           "a file a rank or a folder of\nthem. Prints where it is; open it in a browser.\n\n"
        << options;
    return found.contains("help") ? 0 : 2;
  }
  const std::filesystem::path plan = files.front();
  const std::vector<std::filesystem::path> traces(files.begin() + 1, files.end());
  const std::string page = plan_page(plan, traces);
  const std::filesystem::path out =
      found.contains("out") ? std::filesystem::path(found["out"].as<std::string>())
                            : (is_folder(plan) ? plan : plan.parent_path()) / "view.html";
  write_file(out, page);
  std::cout << out.string() << "\n";
  return 0;
}

/// `pfeife-exp calibrate PLAN TRACES... --out FOLDER`
int calibrate(std::vector<std::string> arguments) {
  std::filesystem::path out;
  if (const auto option = std::ranges::find(arguments, "--out");
      option != arguments.end() && option + 1 != arguments.end()) {
    out = *(option + 1);
    arguments.erase(option, option + 2);
  }
  if (out.empty() || arguments.size() < 2 ||
      std::ranges::any_of(arguments,
                          [](const std::string& word) { return word.starts_with("--"); }))
    throw ConfigError({},
                      "which plan, which traces, and where to? Usage: pfeife-exp calibrate PLAN "
                      "TRACES... --out FOLDER: as compare; FOLDER gets profile.yaml, cluster.yaml");
  const std::vector<std::filesystem::path> traces(arguments.begin() + 1, arguments.end());
  const Calibrated calibrated = calibrate_by_traces(arguments[0], traces);
  make_folder(out);
  if (calibrated.profile) write_file(out / "profile.yaml", calibrated.profile->text);
  if (!calibrated.cluster.empty()) write_file(out / "cluster.yaml", calibrated.cluster);
  std::cout << calibration_text(calibrated, output_width()) << "\nin " << out.string() << ":"
            << (calibrated.profile ? " profile.yaml" : "")
            << (calibrated.cluster.empty() ? "" : " cluster.yaml") << "\n";
  return 0;
}

void make_executable(const std::filesystem::path& file) {
  using enum std::filesystem::perms;
  std::filesystem::permissions(file, owner_exec | group_exec | others_exec,
                               std::filesystem::perm_options::add);
}

/// `pfeife-exp export PLAN --for FRAMEWORK [--out FOLDER]`
int export_plan_folder(const std::vector<std::string>& arguments) {
  po::options_description options("Options");
  options.add_options()("for", po::value<std::string>()->value_name("FRAMEWORK"),
                        listed(export_names()).c_str())(
      "out,o", po::value<std::string>()->value_name("FOLDER"),
      "where to (default: the plan's folder)")("help", "print this, then stop");
  const auto found = read_arguments(arguments, options, "plan", "pfeife-exp export");
  if (found.contains("help")) {
    std::cout << "Usage: pfeife-exp export PLAN --for FRAMEWORK [--out FOLDER]\n\n"
                 "PLAN: plan.yaml or its folder. The files, with a launch.sh where the framework "
                 "trains.\nWhat the framework cannot run of the plan is an error.\n\n"
              << options;
    return 0;
  }
  if (!found.contains("plan") || !found.contains("for"))
    throw ConfigError({}, "which plan, and for what? Usage: pfeife-exp export PLAN --for " +
                              listed(export_names()));
  std::filesystem::path folder = found["plan"].as<std::string>();
  if (!std::filesystem::is_directory(folder)) folder = folder.parent_path();
  const std::filesystem::path out =
      found.contains("out") ? std::filesystem::path(found["out"].as<std::string>()) : folder;
  const Exported exported =
      export_for(found["for"].as<std::string>(), load_plan(folder, {.threads = 1}));
  make_folder(out);
  for (const ExportedFile& file : exported.files) {
    write_file(out / file.name, file.text);
    if (file.name == "launch.sh") make_executable(out / file.name);
    std::cout << (out / file.name).string() << "\n";
  }
  if (!exported.lost.empty()) std::cout << "\nnot carried over\n";
  for (const std::string& sentence : exported.lost)
    std::cout << wrapped(sentence, output_width(), "  ", "    ");
  return 0;
}

/// `pfeife-exp figure RESULTS [OPTION...]`: the options are the keys of `figures` in a config.
int make_figure(const std::vector<std::string>& arguments) {
  po::options_description options("Options");
  const auto option_of = [](std::string key) {
    std::ranges::replace(key, '_', '-');
    return key;
  };
  for (const auto& field : figure_fields().fields()) {
    const std::string name = option_of(field.key), about = field.values + "; " + field.about;
    if (field.values == flag().values)
      options.add_options()(name.c_str(), field.about.c_str());
    else
      options.add_options()(
          name.c_str(), po::value<std::vector<std::string>>()->value_name("VALUE"), about.c_str());
  }
  options.add_options()("out,o", po::value<std::string>()->value_name("FILE.svg"),
                        "where to (default: beside the results)")("help", "print this, then stop");
  const auto found = read_arguments(arguments, options, "results", "pfeife-exp figure");
  if (found.contains("help")) {
    std::cout << "Usage: pfeife-exp figure RESULTS --x NAME --y NAME [OPTION...]\n\n"
                 "RESULTS: results.csv or its folder. Names are columns; of y also step, "
                 "samples_per_s, tokens_per_s, of_1f1b,\nof_bound, bubble, memory. Prints where "
                 "lines change places.\n\n"
              << options;
    return 0;
  }
  if (!found.contains("results"))
    throw ConfigError({},
                      "of which results? Usage: pfeife-exp figure RESULTS --x microbatches --y "
                      "samples_per_s");
  std::vector<YamlEntry> entries;
  for (const auto& field : figure_fields().fields()) {
    const std::string name = option_of(field.key);
    if (!found.contains(name)) continue;
    const SourceLocation flag_place{"--" + name, 0, 0};
    if (field.values == flag().values) {
      entries.push_back({field.key, yaml_scalar("true", flag_place), flag_place});
      continue;
    }
    std::vector<YamlValue> values;
    for (const std::string& text : found[name].as<std::vector<std::string>>())
      values.push_back(yaml_scalar(text, {"--" + name + " " + text, 0, 0}));
    if (values.size() > 1 && !field.takes_list)
      throw ConfigError({"--" + name, 0, 0}, "is said twice");
    const SourceLocation where = values.front().where;
    entries.push_back(
        {field.key, values.size() == 1 ? values.front() : yaml_sequence(values, where), where});
  }
  const YamlValue said = yaml_map(std::move(entries));
  const FigureSettings settings = read_figure(YamlNode(said));
  std::filesystem::path results = found["results"].as<std::string>();
  if (std::filesystem::is_directory(results)) results /= "results.csv";
  const std::filesystem::path svg = found.contains("out")
                                        ? std::filesystem::path(found["out"].as<std::string>())
                                        : results.parent_path() / (settings.file_stem() + ".svg");
  if (svg.extension() != ".svg")
    throw ConfigError({"--out " + svg.string(), 0, 0},
                      "expected a file that ends in .svg; PDF and PGF lie beside it");
  std::cout << write_figure(CsvTable::parse(read_text_file(results)), settings, svg);
  return 0;
}

/// "8,16,64": numbers from 1 on.
std::vector<std::int64_t> read_numbers(const std::string& option, const std::string& text) {
  std::vector<std::int64_t> numbers;
  for (std::size_t begin = 0, end; begin <= text.size(); begin = end + 1) {
    end = std::min(text.find(',', begin), text.size());
    const auto number = parse_integer(text.substr(begin, end - begin));
    if (!number || *number < 1 || *number > 1 << 20)
      throw ConfigError({"--" + option + " " + text, 0, 0},
                        "expected numbers from 1 on, such as 8,16,64");
    numbers.push_back(*number);
  }
  return numbers;
}

std::vector<double> read_prices(const std::string& text) {
  std::vector<double> prices;
  for (std::size_t begin = 0, end; begin <= text.size(); begin = end + 1) {
    end = std::min(text.find(',', begin), text.size());
    const auto price = parse_number(text.substr(begin, end - begin));
    if (!price || !(*price > 0) || !(*price < 1e9))
      throw ConfigError({"--price " + text, 0, 0},
                        "expected prices of a device-hour, such as 2.5 or 2.5,4");
    prices.push_back(*price);
  }
  return prices;
}

/// The names that `fits` takes.
std::string shipped_text(std::size_t width) {
  const auto listing = [&](const std::string& what, std::span<const ShippedFolder> folders) {
    return wrapped(what + ": " + listed(shipped_names(folders)), width, "", "  ");
  };
  return listing("models", kShippedModels) + listing("clusters", kShippedClusters);
}

/// `pfeife-exp fits MODEL CLUSTER... [OPTION...]`
int answer_fits(const std::vector<std::string>& arguments) {
  po::options_description options("Options");
  options.add_options()("devices", po::value<std::string>()->value_name("8,16,64"),
                        "numbers of devices (default: a host's)")(
      "batch", po::value<std::int64_t>()->value_name("N"),
      "sequences a step (default: 4 Mi tokens), or microbatches of an archive or table")(
      "sequence", po::value<std::int64_t>()->value_name("N"),
      "tokens of a sequence, which a config.json does not say")(
      "optimizer", po::value<std::string>()->value_name("NAME")->default_value("adam"),
      "its state is part of the memory")(
      "precision", po::value<std::string>()->value_name("NAME")->default_value("bf16"),
      "bf16, fp16, or the format of linear layers: fp8, fp8_block, mxfp8, nvfp4")(
      "alloc", po::value<std::string>()->value_name("CONF")->default_value(""),
      "settings of PyTorch's allocator, as PYTORCH_ALLOC_CONF has them")(
      "times", po::value<std::string>()->value_name("FILE.csv"),
      "layer times as measured, of an architecture (configs/reference/layer_times.md)")(
      "price", po::value<std::string>()->value_name("2.5,4"),
      "of a device-hour, one or one a cluster")("csv", "the rows for programs")(
      "jobs", po::value<int>()->value_name("N"), "threads (default: the number of cores)")(
      "list", "print the names of shipped models and clusters, then stop")("help",
                                                                           "print this, then stop");
  const auto found = read_arguments(arguments, options, "names", "pfeife-exp fits", true);
  const std::vector<std::string> names = found.contains("names")
                                             ? found["names"].as<std::vector<std::string>>()
                                             : std::vector<std::string>{};
  if (found.contains("help")) {
    std::cout
        << "Usage: pfeife-exp fits MODEL CLUSTER... [OPTION...]\n\n"
           "MODEL: a .pt2 archive, a layer table, an architecture or a config.json of Hugging "
           "Face. CLUSTER: a cluster\nfile. Shipped ones go by their names. A row for each "
           "cluster and number of devices.\n\n"
        << options;
    return 0;
  }
  if (found.contains("list")) {
    std::cout << shipped_text(output_width());
    return 0;
  }
  if (names.size() < 2)
    throw ConfigError({},
                      "which model, which clusters? Usage: pfeife-exp fits MODEL CLUSTER... "
                      "[--devices 8,16,64], for example: fits llama3_8b h100_sxm_hosts");
  FitsQuestion question;
  question.model = named_file(names.front(), "model", kShippedModels);
  for (std::size_t i = 1; i < names.size(); ++i)
    question.clusters.push_back(named_file(names[i], "cluster", kShippedClusters));
  if (found.contains("devices"))
    question.devices = read_numbers("devices", found["devices"].as<std::string>());
  if (found.contains("batch")) question.batch = found["batch"].as<std::int64_t>();
  if (found.contains("sequence")) question.sequence = found["sequence"].as<std::int64_t>();
  if (found.contains("times")) question.times = found["times"].as<std::string>();
  if (found.contains("price")) question.prices = read_prices(found["price"].as<std::string>());
  question.optimizer = optimizer_named(found["optimizer"].as<std::string>());
  question.precision = found["precision"].as<std::string>();
  question.allocator = parse_allocator(found["alloc"].as<std::string>());
  const std::size_t threads = found.contains("jobs")
                                  ? read_jobs(found["jobs"].as<int>())
                                  : std::max(1U, std::thread::hardware_concurrency());
  const FitsAnswer answer = fits(question, threads, [](const FitRow& row) {
    if (output_is_terminal()) std::cerr << row.cluster << ", " << row.devices << " done\n";
  });
  if (found.contains("csv"))
    std::cout << fits_csv(answer.rows, answer.unit);
  else
    std::cout << wrapped(answer.what, output_width(), "", "  ") << "\n"
              << fits_table(answer.rows, answer.unit, output_width())
              << (answer.question
                      ? mesh_limits(*answer.question, output_width())
                      : wrapped("not searched: replicas (dp), ZeRO, sizes of microbatches",
                                output_width()));
  const bool any =
      std::ranges::any_of(answer.rows, [](const FitRow& row) { return row.lack.empty(); });
  return any ? 0 : 3;
}

/// `pfeife-exp products CONFIG [OPTION...]`
int list_products(const std::vector<std::string>& arguments) {
  po::options_description options("Options");
  options.add_options()("set", po::value<std::vector<std::string>>()->value_name("KEY.PATH=VALUE"),
                        "replace a value of the config; may be repeated")(
      "meshes", po::value<std::size_t>()->value_name("N")->default_value(3),
      "of a config that searches for a mesh: products of the N best ones")(
      "missing", "without products that the cluster's file has measured times of")(
      "jobs", po::value<int>()->value_name("N"), "threads (default: the number of cores)")(
      "help", "print this, then stop");
  const auto found = read_arguments(arguments, options, "config", "pfeife-exp products");
  if (found.contains("help")) {
    std::cout << "Usage: pfeife-exp products CONFIG.yaml [OPTION...]\n\n"
                 "The distinct matrix products and fused attentions of the config's cases, or of "
                 "its best meshes, as CSV.\nconfigs/clusters/measure_device.py --products LIST "
                 "measures them; device_kinds.KIND.measured_products of a cluster\nfile takes "
                 "what that prints.\n\n"
              << options;
    return 0;
  }
  if (!found.contains("config"))
    throw ConfigError({}, "of which config? Usage: pfeife-exp products CONFIG.yaml [OPTION...]");
  ProductsQuestion question{.config = found["config"].as<std::string>(),
                            .settings = {},
                            .meshes = found["meshes"].as<std::size_t>(),
                            .missing = found.contains("missing")};
  if (found.contains("set")) question.settings = found["set"].as<std::vector<std::string>>();
  std::cout << products_of(question, found.contains("jobs")
                                         ? read_jobs(found["jobs"].as<int>())
                                         : std::max(1U, std::thread::hardware_concurrency()));
  return 0;
}

}  // namespace

std::filesystem::path named_file(const std::string& name, const std::string& what,
                                 std::span<const ShippedFolder> folders) {
  std::error_code error;
  if (std::filesystem::is_regular_file(name, error)) return name;
  if (const auto shipped = shipped_file(name, folders)) return *shipped;
  const std::vector<std::string> names = shipped_names(folders);
  const std::string nearest = nearest_spelling(name, names);
  throw ConfigError(
      {}, "there is no file \"" + name + "\", and no shipped " + what + " of that name" +
              (nearest.empty() ? "" : "; did you mean " + nearest + "?") +
              (names.empty() ? "; none is found: set PFEIFE_CONFIGS to the folder configs/"
                             : "; shipped ones: pfeife-exp fits --list"));
}

namespace {

using Verb = int (*)(const std::vector<std::string>&);
constexpr std::pair<std::string_view, Verb> kVerbs[] = {
    {"batches", plan_for_batches},
    {"calibrate", [](const std::vector<std::string>& words) { return calibrate(words); }},
    {"check", check_config},
    {"compare", compare},
    {"completion", print_completion},
    {"export", export_plan_folder},
    {"failures", plan_failures},
    {"figure", make_figure},
    {"fits", answer_fits},
    {"init", init_config},
    {"pack", pack_batch},
    {"products", list_products},
    {"schema", print_schema},
    {"view", view}};

}  // namespace

std::vector<std::string> verb_names() {
  std::vector<std::string> names;
  for (const auto& [name, run] : kVerbs) names.emplace_back(name);
  return names;
}

std::optional<int> run_verb(const std::vector<std::string>& arguments) {
  if (arguments.empty()) return std::nullopt;
  const auto* verb =
      std::ranges::find(kVerbs, arguments.front(), [](const auto& v) { return v.first; });
  if (verb == std::end(kVerbs)) return std::nullopt;
  return verb->second({arguments.begin() + 1, arguments.end()});
}

}  // namespace pfeife
