#include "experiments/config_verbs.h"

#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <filesystem>
#include <iostream>

#include "experiments/inputs/inputs.h"
#include "experiments/plans/plan_case.h"
#include "experiments/verbs.h"
#include "planner/io/cluster/cluster_file.h"
#include "planner/io/experiment/parallel_config.h"
#include "planner/io/files/atomic_file.h"
#include "planner/io/files/command_line.h"
#include "planner/io/files/open_file.h"
#include "planner/io/files/shipped_files.h"
#include "planner/io/model/architecture_reader.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

namespace po = boost::program_options;

constexpr const char* kSchemas[] = {"config", "cluster", "architecture"};

/// "3 cases, of 42 layers" of an experiment whose inputs were all read.
std::string checked_cases(const Experiment& experiment, Inputs& inputs) {
  std::size_t measured = 0, fewest = SIZE_MAX, most = 0;
  for (const CaseConfig& config : experiment.cases) {
    if (config.cluster_measured || config.profile_measured) {
      ++measured;
      continue;
    }
    with_places(config, [&] {
      const CaseInputs of_case{&config, &inputs.layers(config), &inputs.cluster(config)};
      check_case(of_case);
      fewest = std::min(fewest, of_case.layers->size());
      most = std::max(most, of_case.layers->size());
    });
  }
  std::string text =
      std::to_string(experiment.cases.size()) + (experiment.cases.size() == 1 ? " case" : " cases");
  if (most > 0)
    text += fewest == most ? fmt::format(", {} layers", most)
                           : fmt::format(", {} to {} layers", fewest, most);
  if (measured > 0)
    text += fmt::format("; inputs of {} are measured first, and were not checked", measured);
  return text;
}

/// The path of a file as it stands in a config in `folder`.
std::string path_from(const std::filesystem::path& folder, const std::filesystem::path& file) {
  return std::filesystem::relative(file, folder).generic_string();
}

/// The first line, by which editors find the schema; "" if it is not installed.
std::string schema_line(const std::filesystem::path& folder) {
  static constexpr ShippedFolder kFolder[] = {{"schemas", ".json"}};
  const auto file = shipped_file("config", kFolder);
  return file ? "# yaml-language-server: $schema=" + path_from(folder, *file) + "\n" : "";
}

constexpr const char* kPipelineConfig =
    R"({schema}# How to run it: pfeife-exp {name}
# Every key: configs/REFERENCE.md; mistakes: pfeife-exp check {name}
version: 1
model: {model}
cluster: {cluster}
training: {{optimizer: adam}}   # precision: bf16_amp; microbatch_size or global_batch of an archive
# A case for every combination of these lists. Any key may be one: plan.recompute: [none, full].
cases: {{devices: [{devices}], microbatches: [8, 16]}}
# Among what the plan is chosen. families: [1f1b, zb_greedy]; recompute: none; offload: auto.
plan: {{families: [all], recompute: if_needed}}
# What it is compared with, on cuts that other systems would make.
baselines: [{{family: 1f1b, cuts: equal_layers}}]
# Times by the estimate and by a discrete-event simulation; measure runs the plans here.
engines: [estimate, simulate]
)";

constexpr const char* kMeshConfig =
    R"({schema}# How to run it: pfeife-exp {name}
# Every key: configs/reference/meshes.md; mistakes: pfeife-exp check {name}
version: 1
model: {model}
cluster: {cluster}
training: {{global_batch: 256, optimizer: adam}}   # sequences a step; sequence: tokens of each
# Which mesh of devices. A list of devices makes a row of each; any size may be a number: tp: 8.
parallel: {{devices: 16, tp: search, pp: search, dp: search, zero: search, precision: bf16}}
# Among what the plan of one of its pipelines is chosen.
# plan: {{families: [1f1b, looped]}}
)";

}  // namespace

int check_config(const std::vector<std::string>& arguments) {
  po::options_description options("Options");
  options.add_options()("set", po::value<std::vector<std::string>>()->value_name("KEY.PATH=VALUE"),
                        "replace a value of the config; may be repeated")("help",
                                                                          "print this, then stop");
  const auto found = read_arguments(arguments, options, "config", "pfeife-exp check");
  if (found.contains("help")) {
    std::cout << "Usage: pfeife-exp check CONFIG.yaml [OPTION...]\n\n"
                 "Reads the config and all files that it names, and says what is wrong where. "
                 "Plans nothing.\n\n"
              << options;
    return 0;
  }
  if (!found.contains("config"))
    throw ConfigError({}, "which config? Usage: pfeife-exp check CONFIG.yaml");
  const std::filesystem::path file = found["config"].as<std::string>();
  std::vector<std::string> settings;
  if (found.contains("set")) settings = found["set"].as<std::vector<std::string>>();
  Inputs inputs;
  const ExperimentRules rules = rules_of(inputs);
  const std::vector<std::int64_t> counts = listed_devices(file, settings);
  if (!counts.empty()) settings.push_back("parallel.devices=" + std::to_string(counts.front()));
  if (read_parallel(file, settings, rules))
    std::cout << file.string() << ": no mistakes; "
              << (counts.size() > 1
                      ? fmt::format("a mesh of each of {} numbers of devices", counts.size())
                      : "a mesh")
              << "\n";
  else
    std::cout << file.string() << ": no mistakes; "
              << checked_cases(read_experiment(file, settings, rules), inputs) << "\n";
  return 0;
}

int init_config(const std::vector<std::string>& arguments) {
  po::options_description options("Options");
  options.add_options()("out,o", po::value<std::string>()->value_name("FILE.yaml"),
                        "where to (default: MODEL.yaml in this folder)")("help",
                                                                         "print this, then stop");
  const auto found = read_arguments(arguments, options, "names", "pfeife-exp init", true);
  const std::vector<std::string> names = found.contains("names")
                                             ? found["names"].as<std::vector<std::string>>()
                                             : std::vector<std::string>{};
  if (found.contains("help")) {
    std::cout << "Usage: pfeife-exp init MODEL CLUSTER [OPTION...]\n\n"
                 "Writes a commented config to begin with. MODEL and CLUSTER: files, or names of "
                 "shipped ones (pfeife-exp fits --list).\n\n"
              << options;
    return 0;
  }
  if (names.size() != 2)
    throw ConfigError({},
                      "which model and which cluster? Usage: pfeife-exp init MODEL CLUSTER, for "
                      "example: init vit_g14 a100_sxm4_40gb_x8");
  const std::filesystem::path model = named_file(names[0], "model", kShippedModels);
  const std::filesystem::path cluster = named_file(names[1], "cluster", kShippedClusters);
  const std::filesystem::path out = found.contains("out")
                                        ? std::filesystem::path(found["out"].as<std::string>())
                                        : model.stem().concat(".yaml");
  if (is_there(out))
    throw ConfigError({out.string(), 0, 0}, "is there already; name another file with --out");
  const std::filesystem::path folder = std::filesystem::absolute(out).parent_path();
  const bool mesh = is_architecture(model);
  const std::size_t devices = mesh ? 0 : read_cluster(cluster).devices();
  const std::string few =
      devices > 1 ? fmt::format("{}, {}", std::max<std::size_t>(devices / 2, 1), devices) : "1";
  write_file(
      out,
      fmt::format(fmt::runtime(mesh ? kMeshConfig : kPipelineConfig),
                  fmt::arg("schema", schema_line(folder)), fmt::arg("name", out.generic_string()),
                  fmt::arg("model", path_from(folder, model)),
                  fmt::arg("cluster", path_from(folder, cluster)), fmt::arg("devices", few)));
  std::cout << out.string() << "\n";
  return 0;
}

int print_schema(const std::vector<std::string>& arguments) {
  const std::string usage = "Usage: pfeife-exp schema config|cluster|architecture";
  if (arguments.size() != 1 || arguments.front() == "--help") {
    if (arguments.empty() || arguments.size() > 1) throw ConfigError({}, "of which file? " + usage);
    std::cout << usage << "\n\nPrints the JSON Schema of such a file, for editors and checkers.\n";
    return 0;
  }
  Inputs inputs;
  const std::string text = json_schema(arguments.front(), rules_of(inputs));
  if (text.empty())
    throw ConfigError({}, "there is no schema of \"" + arguments.front() + "\". " + usage);
  std::cout << text;
  return 0;
}

int print_completion(const std::vector<std::string>& arguments) {
  const std::string usage = "Usage: pfeife-exp completion bash|zsh";
  if (arguments.size() != 1) throw ConfigError({}, "for which shell? " + usage);
  const std::string& shell = arguments.front();
  if (shell == "--help") {
    std::cout << usage << "\n\nPrints a script: source <(pfeife-exp completion bash)\n";
    return 0;
  }
  if (shell != "bash" && shell != "zsh") throw ConfigError({}, "no such shell. " + usage);
  const auto words = [](const std::vector<std::string>& list) {
    std::string text;
    for (const std::string& word : list) text += (text.empty() ? "" : " ") + word;
    return text;
  };
  std::vector<std::string> keys;
  for (const std::string& key : config_keys()) keys.push_back(key + "=");
  if (shell == "zsh") std::cout << "autoload -U +X bashcompinit && bashcompinit\n";
  std::cout << fmt::format(
      R"(_pfeife_exp() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
  local verbs="{}" options="{}" keys="{}"
  case $before in
    --set) compopt -o nospace 2>/dev/null; COMPREPLY=($(compgen -W "$keys" -- "$word")); return ;;
    fits | init) COMPREPLY=($(compgen -W "{}" -- "$word") $(compgen -f -- "$word")); return ;;
    schema) COMPREPLY=($(compgen -W "{}" -- "$word")); return ;;
    completion) COMPREPLY=($(compgen -W "bash zsh" -- "$word")); return ;;
  esac
  if [[ $word == --* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  elif ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W "$verbs" -- "$word") $(compgen -f -X '!*.yaml' -- "$word") $(compgen -d -- "$word"))
  else
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}}
complete -o filenames -F _pfeife_exp pfeife-exp
)",
      words(verb_names()),
      "--set --out --jobs --shard --list --layers --fit --force --columns --verbose --watch "
      "--quiet "
      "--version --help",
      words(keys), words(shipped_names(kShippedModels)),
      words({std::begin(kSchemas), std::end(kSchemas)}));
  return 0;
}

}  // namespace pfeife
