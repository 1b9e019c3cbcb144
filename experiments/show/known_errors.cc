#include "experiments/show/known_errors.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "experiments/show/known_errors_data.h"
#include "planner/io/files/csv_table.h"
#include "planner/ir/basics/decimals.h"

namespace pfeife {
namespace {

constexpr double kA100 = 312e12, kH100 = 989e12;  ///< FLOP/s in half precision, data sheets
constexpr double kAlike = 1.25;

double number(const CsvTable& table, std::size_t row, const std::string& column) {
  return number_of(table.at(row, column), column);
}

KnownError error_of(std::vector<double> measured_over_predicted, std::string of) {
  std::ranges::sort(measured_over_predicted);
  const std::size_t left_out = measured_over_predicted.size() / 20;  // at either end
  return {measured_over_predicted.size(), measured_over_predicted[left_out] - 1,
          measured_over_predicted[measured_over_predicted.size() - 1 - left_out] - 1,
          std::move(of)};
}

}  // namespace

KnownError error_of_meshes(const DeviceKind& kind) {
  const auto peak = kind.peak.find("fp16");
  const auto alike = [&](double other) {
    return peak != kind.peak.end() &&
           std::abs(std::log(peak->second.value / other)) < std::log(kAlike);
  };
  std::vector<double> a100, h100, all;
  const CsvTable predictions = CsvTable::parse({"predictions.csv", kPredictions});
  for (std::size_t row = 0; row < predictions.rows(); ++row) {
    const double ratio =
        number(predictions, row, "measured_s") / number(predictions, row, "predicted_s");
    (predictions.at(row, "source").text == "llama3" ? h100 : a100).push_back(ratio);
    all.push_back(ratio);
  }
  if (alike(kA100)) return error_of(a100, "meshes of A100");
  if (alike(kH100)) return error_of(h100, "meshes of H100");
  return error_of(all, "meshes of A100 and H100");
}

KnownError error_of_pipelines(Precision precision) {
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
  if (precision == Precision::Tf32) return error_of(tf32, "pipelines in TF32");
  if (precision == Precision::Fp32) return error_of(all, "pipelines in TF32 and FP16");
  return error_of(half, "pipelines in FP16");
}

std::string to_string(const KnownError& error) {
  const auto share = [](double by) {
    return fixed(100 * std::abs(by), 0) + (by < 0 ? " % shorter" : " % longer");
  };
  return "steps of published " + error.of + " were " + share(error.shortest) + " to " +
         share(error.longest) + " than predicted so (" + std::to_string(error.runs) +
         " runs, nine tenths)";
}

std::string error_of(const Request& request) {
  if (request.model.format != ModelFormat::Pt2 || request.model.profile ||
      !request.calibration.empty())
    return "";
  if (request.training.mode == Mode::Forward)
    return "no published forward pass was compared with what is predicted so; a profile or a "
           "calibration is surer";
  return to_string(error_of_pipelines(request.training.precision)) +
         "; a profile or a calibration is surer" +
         (request.plan.slices.empty() ? ""
                                      : "; that kernels reach less of a device's speed on short "
                                        "slices is not modelled, so that slices seem better than "
                                        "they are");
}

}  // namespace pfeife
