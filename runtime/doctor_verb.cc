#include <c10/core/CachingDeviceAllocator.h>
#include <torch/version.h>

#include <iomanip>
#include <iostream>
#include <sstream>
#include <thread>

#include "planner/ir/basics/error.h"
#include "runtime/device/driver.h"
#include "runtime/device/machine.h"
#include "runtime/launch/rank_environment.h"
#include "runtime/profile/cluster_text.h"
#include "runtime/verbs.h"

namespace pfeife {
namespace {

constexpr int kNeededCuda = 13000;  // of LibTorch 2.11's packages
constexpr double kBusyCard = 0.9;   // less of a card's memory free than this is said
constexpr std::uint32_t kRateTask = ~std::uint32_t{0} - 70;
constexpr std::int64_t kMiB = 1 << 20;

class Page {
 public:
  void line(const std::string& subject, const std::string& text) {
    out_ << std::left << std::setw(12) << subject << text << "\n";
  }
  void problem(const std::string& text) { problems_.push_back(text); }
  bool is_fine() const { return problems_.empty(); }
  std::string text() const { return out_.str(); }
  std::string verdict(const std::string& device) const {
    if (is_fine()) return "fine: runs on " + device + " can start\n";
    std::string text = stream_all("NOT FINE for runs on ", device, ":\n");
    for (const std::string& problem : problems_) text += "  " + problem + "\n";
    return text;
  }

 private:
  std::ostringstream out_;
  std::vector<std::string> problems_;
};

std::string gigabytes(double bytes) { return stream_all(std::setprecision(3), bytes / 1e9, " GB"); }
std::string rate_text(double bytes, Nanoseconds time) {
  return stream_all(std::setprecision(3), bytes / 1e9 / seconds(time), " GB/s");
}

std::string cuda_text(int version) {
  return stream_all("CUDA ", version / 1000, ".", version % 1000 / 10);
}

void describe_driver(Page& page, const Driver& driver, bool wanted) {
  if (!driver.is_there()) {
    page.line("driver", "none (no libcuda.so.1)");
    if (wanted) page.problem("install NVIDIA's driver, or use --device cpu");
    return;
  }
  page.line("driver", stream_all("up to ", cuda_text(driver.cuda_version()), ", shows ",
                                 driver.cards(), driver.cards() == 1 ? " card" : " cards"));
  if (!wanted) return;
  if (driver.cuda_version() < kNeededCuda)
    page.problem(stream_all("the driver runs ", cuda_text(driver.cuda_version()),
                            ", LibTorch needs ", cuda_text(kNeededCuda), ": install a newer one"));
  if (driver.cards() == 0)
    page.problem("the driver shows no card: see nvidia-smi and CUDA_VISIBLE_DEVICES");
}

/// Host to card and back, and card to card by copies of LibTorch's.
void describe_card(Page& page, const Driver& driver, int number) {
  const at::Device card = open_device(stream_all("cuda:", number));
  const auto [free, all] = c10::getDeviceAllocator(card.type())->getMemoryInfo(card.index());
  page.line(stream_all("cuda:", number),
            stream_all(driver.name(number), ", ", gigabytes(static_cast<double>(free)), " of ",
                       gigabytes(static_cast<double>(all)), " free, ", driver.identity(number)));
  if (static_cast<double>(free) < kBusyCard * static_cast<double>(all))
    page.problem(stream_all("cuda:", number, " is used by others: see nvidia-smi"));
  const at::Tensor here = at::zeros({256 * kMiB}, at::kByte).pin_memory();
  const at::Tensor there = here.to(card);
  const auto time = [&](const auto& copy) {
    copy();
    finish(card);
    const Nanoseconds begin = now();
    copy();
    finish(card);
    return now() - begin;
  };
  const auto bytes = static_cast<double>(here.nbytes());
  page.line("", stream_all("measured: from page-locked memory ",
                           rate_text(bytes, time([&] { return here.to(card, true); })), ", back ",
                           rate_text(bytes, time([&] { here.copy_(there, true); }))));
}

void describe_libraries(Page& page, const Driver& driver, bool wanted) {
  page.line("LibTorch", TORCH_VERSION);
  if (!wanted) return;
  const int cards = driver.cards();
  try {
    for (int card = 0; card < cards; ++card) describe_card(page, driver, card);
  } catch (const std::exception& error) {
    page.problem(reason_of(error));
  }
  try {
    const NcclLibrary nccl = open_nccl();
    page.line("NCCL", nccl_version_text(nccl.version()) + ", " + nccl.path);
  } catch (const ConfigError& error) {
    page.line("NCCL", "none: cards cannot exchange anything");
    if (cards != 1) page.problem(error.what());  // one card alone needs none
  }
}

/// Each rank to the next, one after another, over the cards' transport.
std::string measure_cards(const RankSeat& seat, at::Device device) {
  constexpr int kMessages = 5;
  Transport& transport = seat.transport;
  const std::size_t ranks = transport.ranks();
  Exchanges exchanges;
  for (std::size_t r = 0; r < ranks; ++r)
    exchanges.messages.insert({RankId{r}, RankId{(r + 1) % ranks}});
  transport.prepare(exchanges);
  const at::Tensor data =
      at::zeros({64 * kMiB}, at::TensorOptions().dtype(at::kByte).device(device));
  std::string text;
  std::uint64_t step = 0;
  for (const auto& [from, to] : exchanges.messages) {
    const Form form{StageId{from.value}, StageId{to.value}};
    for (const int messages : {1, kMessages}) {  // the first warms up
      const Tag tag{++step, kRateTask, 0};
      for (std::size_t r = 0; r < ranks; ++r) transport.send(RankId{r}, tag, {});
      for (std::size_t r = 0; r < ranks; ++r) transport.receive(RankId{r}, tag);
      const Nanoseconds begin = now();
      for (int m = 0; m < messages; ++m) {
        const Tag message{step, static_cast<std::uint32_t>(m), 0};
        if (seat.rank == from) transport.send_in_row(to, message, form, {data});
        if (seat.rank == to) transport.expect(from, message, form);
      }
      transport.end_step();
      for (int m = 0; seat.rank == to && m < messages; ++m)
        transport.receive(from, {step, static_cast<std::uint32_t>(m), 0});
      if (messages == kMessages && seat.rank == from)
        transport.send(RankId{0}, {step, kRateTask, 1},
                       {at::scalar_tensor((now() - begin).count(), at::kLong)});
    }
    if (seat.rank != RankId{0}) continue;
    const Nanoseconds time{
        transport.receive(from, {step, kRateTask, 1}).tensors.at(0).item<std::int64_t>()};
    text += stream_all("            rank ", from.value, " to ", to.value, ": ",
                       rate_text(kMessages * static_cast<double>(data.nbytes()), time), "\n");
  }
  return "NCCL        measured, 64 MiB messages:\n" + text;
}

std::string measure_sockets(const RankSeat& seat) {
  const LinkMeasurement link = measure_link(seat.transport, {});
  if (seat.rank != RankId{0}) return "";
  const LinkPoint& largest = link.points.back();
  return stream_all("sockets     measured between two processes: ", std::setprecision(3),
                    seconds(link.latency) * 1e6, " us, ",
                    rate_text(static_cast<double>(largest.bytes.value), largest.one_way), "\n");
}

/// Decided alike by the launcher and by each rank.
bool cards_can_exchange(const Driver& driver) {
  if (driver.cards() < 2 || driver.cuda_version() < kNeededCuda) return false;
  try {
    open_nccl();
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

}  // namespace

int doctor_verb(const DoctorRequest& request) {
  const Driver driver;
  const auto environment = rank_environment();
  if (!request.device.empty() && request.device != "cpu" && request.device != "cuda")
    throw ConfigError({"--device"}, "unknown device '" + request.device + "'; use cpu or cuda");
  const bool wanted = request.device == "cuda" || (request.device.empty() && driver.is_there());
  const std::string device = wanted ? "cuda" : "cpu";
  Page page;
  if (!environment) {
    page.line("machine",
              stream_all(where(), ", ", std::thread::hardware_concurrency(), " processors, ",
                         gigabytes(static_cast<double>(machine_memory().value))));
    describe_driver(page, driver, wanted);
    describe_libraries(page, driver, wanted);
    std::cout << page.text() << busy_warning() << std::flush;
  }
  LaunchOptions launch = request.launch;
  launch.card_each = wanted && cards_can_exchange(driver);
  const std::size_t ranks = launch.card_each ? static_cast<std::size_t>(driver.cards()) : 2;
  if (launch.card_each && environment) {
    launch.device = open_device(stream_all("cuda:", environment->local));
    launch.card = driver.identity(environment->local);
  }
  try {
    start_ranks(ranks, launch, [&](const RankSeat& seat) {
      return RankAnswer{
          seat.transport.keeps_rows() ? measure_cards(seat, launch.device) : measure_sockets(seat),
          ""};
    });
  } catch (const RuntimeFault& fault) {
    page.problem(fault.what());
  }
  if (!environment) std::cout << page.verdict(device);
  return page.is_fine() ? 0 : 4;
}

}  // namespace pfeife
