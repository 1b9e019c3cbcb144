#include "experiments/show/known_errors.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "experiments/show/known_errors_data.h"
#include "planner/io/files/csv_table.h"
#include "planner/ir/basics/decimals.h"

namespace pfeife {
namespace {

constexpr double kAlike = 1.25;

/// Devices of published meshes, by how their names begin.
struct Family {
  std::vector<std::string> names;
  double peak = 0;  ///< FLOP/s in half precision, data sheets; of Blackwell 2,250 to 2,500
  std::string text;
};
const std::vector<Family>& families() {
  static const std::vector<Family> all = {
      {{"a100"}, 312e12, "A100"},
      {{"h100", "h200"}, 989e12, "H100 and H200"},
      {{"b200", "b300", "gb200", "gb300"}, 2372e12, "B200, B300, GB200 and GB300"}};
  return all;
}

/// Runs whose products were measured on their own host; their devices are named so.
const Family& measured_family() {
  static const Family family = {{"measured_"}, 0, "devices whose products were measured"};
  return family;
}

/// nullptr = a device unlike any.
const Family* family_of(const DeviceKind& kind) {
  if (!kind.measured_products.rows.empty()) return &measured_family();
  const auto peak = kind.peak.find("fp16");
  if (peak == kind.peak.end()) return nullptr;
  const auto found = std::ranges::find_if(families(), [&](const Family& family) {
    return std::abs(std::log(peak->second.value / family.peak)) < std::log(kAlike);
  });
  return found == families().end() ? nullptr : &*found;
}

double number(const CsvTable& table, std::size_t row, const std::string& column) {
  return number_of(table.at(row, column), column);
}

std::size_t left_out(std::size_t runs) { return runs / 20; }  ///< at either end

KnownError error_of(std::vector<double> measured_over_predicted, std::string runs_of) {
  std::ranges::sort(measured_over_predicted);
  const std::size_t left_out = pfeife::left_out(measured_over_predicted.size());
  return {measured_over_predicted.size(), measured_over_predicted[left_out] - 1,
          measured_over_predicted[measured_over_predicted.size() - 1 - left_out] - 1,
          std::move(runs_of)};
}

/// The words that are not empty, a blank between them.
std::string joined(const std::string& a, const std::string& b) {
  return a + (a.empty() || b.empty() ? "" : " ") + b;
}

std::string on_cpus(DeviceType type) { return type == DeviceType::Cpu ? "on CPUs" : ""; }

}  // namespace

KnownError error_of_meshes(const DeviceKind& kind, bool experts) {
  const Family* const family = family_of(kind);
  std::vector<double> dense, routed;
  const CsvTable predictions = CsvTable::parse({"predictions.csv", kPredictions});
  for (std::size_t row = 0; row < predictions.rows(); ++row) {
    const std::string& device = predictions.at(row, "device").text;
    const bool alike = !family || std::ranges::any_of(family->names, [&](const auto& name) {
      return device.starts_with(name);
    });
    if (!alike) continue;
    (number(predictions, row, "experts") > 0 ? routed : dense)
        .push_back(number(predictions, row, "measured_s") /
                   number(predictions, row, "predicted_s"));
  }
  const bool known = !experts || !routed.empty();
  const std::string text = "meshes" + std::string(experts && known ? " with experts" : "") +
                           " of " + (family ? family->text : "A100 and later");
  KnownError error = error_of(experts && known ? routed : dense, text);
  error.unlike = joined(known ? "" : "with experts", family ? "" : "on such devices");
  return error;
}

KnownError error_of_pipelines(Precision precision, DeviceType type) {
  const std::set<std::string> systems{"DeepSpeed", "Pfeife", "Pfeife measured"};
  std::vector<double> tf32, half, all;
  const CsvTable cells = CsvTable::parse({"tables.csv", kCells});
  for (std::size_t row = 0; row < cells.rows(); ++row) {
    const std::string &system = cells.at(row, "system").text, &unit = cells.at(row, "unit").text;
    if (!cells.at(row, "calibration").text.empty() || cells.at(row, "role").text != "scored" ||
        !systems.contains(system))
      continue;
    const bool times = unit == "ms" && system == "Pfeife measured";
    if (unit != "samples/s" && !times) continue;
    const double ours = number(cells, row, "ours"), paper = number(cells, row, "paper");
    // What the paper calls FP32 is TF32, and so is every cell that names no precision.
    const bool in_half = cells.at(row, "group").text.find("FP16") != std::string::npos;
    (in_half ? half : tf32).push_back(times ? paper / ours : ours / paper);
    all.push_back(times ? paper / ours : ours / paper);
  }
  KnownError error = precision == Precision::Tf32   ? error_of(tf32, "pipelines in TF32")
                     : precision == Precision::Fp32 ? error_of(all, "pipelines in TF32 and FP16")
                                                    : error_of(half, "pipelines in FP16");
  const char* const missing = precision == Precision::Fp32      ? "in FP32"
                              : precision == Precision::Bf16Amp ? "in BF16"
                                                                : "";
  error.unlike = joined(missing, on_cpus(type));
  return error;
}

std::string to_string(const KnownError& error) {
  const auto share = [](double by) {
    return fixed(100 * std::abs(by), 0) + (by < 0 ? " % shorter" : " % longer");
  };
  const std::string runs = std::to_string(error.runs) + " runs";
  return (error.unlike.empty() ? "" : "no published run " + error.unlike + " was predicted; ") +
         "steps of published " + error.runs_of + " were " + share(error.shortest) + " to " +
         share(error.longest) + " than predicted so (" +
         (left_out(error.runs) > 0 ? "nine tenths of " : "all ") + runs + ")";
}

std::string error_of(const Request& request, const Cluster& cluster) {
  if (request.model.format != ModelFormat::Pt2 || request.model.profile ||
      !request.calibration.empty())
    return "";
  if (request.training.mode == Mode::Forward)
    return "no published forward pass was compared with what is predicted so; a profile or a "
           "calibration is surer";
  const bool cpus = std::ranges::any_of(cluster.kind_of_device, [&](std::size_t kind) {
    return cluster.kinds[kind].type == DeviceType::Cpu;
  });
  return to_string(error_of_pipelines(request.training.precision,
                                      cpus ? DeviceType::Cpu : DeviceType::Gpu)) +
         "; a profile or a calibration is surer" +
         (request.plan.slices.empty() ? ""
                                      : "; that kernels reach less of a device's speed on short "
                                        "slices is not modelled, so that slices seem better than "
                                        "they are");
}

}  // namespace pfeife
