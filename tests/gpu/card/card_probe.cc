// Measures a card for tests/gpu/on_card: one verb a call, one JSON file as the answer. On the
// stand-in it runs the same code, and its times mean nothing.
#include <boost/program_options.hpp>
#include <iostream>

#include "planner/ir/basics/error.h"
#include "runtime/device/counting_allocator.h"
#include "runtime/device/machine.h"
#include "tests/gpu/card/probe.h"
#include "tests/gpu/fake_card.h"

namespace pfeife::card {
namespace {

struct Verb {
  const char* name;
  const char* effect;
  void (*run)(const Probe&);
};
constexpr Verb kVerbs[] = {
    {"assumptions", "what the stand-in takes for granted: blocks, workspaces, order, streams",
     probe_assumptions},
    {"one_rank", "a step of one rank against a plain loop over the same graph", probe_one_rank},
    {"ranks", "ranks as threads: gradients, memory, timeline", probe_ranks},
    {"speed", "products, streaming kernels and launches, as a cluster file", probe_speed},
    {"profile", "a profile of a model, and the roofline against it, node by node", probe_profile},
    {"nccl", "NCCL with one rank", probe_nccl},
};

int run(int argc, char** argv) {
  namespace options = boost::program_options;
  Probe probe;
  std::string verb, device, out, files, cluster;
  options::options_description known("card_probe VERB");
  known.add_options()("help", "this text")("verb", options::value(&verb)->required(), "")(
      "device", options::value(&device)->default_value("cuda"), "cuda, cuda:N, stand_in")(
      "out", options::value(&out)->required(), "the answer, JSON")(
      "files", options::value(&files)->required(), "folder that holds configs/")(
      "cluster", options::value(&cluster)->default_value(""), "the card's own cluster file")(
      "model", options::value(&probe.model)->default_value("tiny_gpt"), "of configs/models")(
      "precision", options::value(&probe.precision), "default: all")(
      "ranks", options::value(&probe.ranks)->default_value(2), "of verb ranks")(
      "repetitions", options::value(&probe.repetitions)->default_value(5), "timed steps");
  options::positional_options_description places;
  places.add("verb", 1);
  options::variables_map given;
  options::store(options::command_line_parser(argc, argv).options(known).positional(places).run(),
                 given);
  if (given.count("help")) {
    for (const Verb& v : kVerbs) std::cout << "card_probe " << v.name << ": " << v.effect << "\n";
    std::cout << known;
    return 0;
  }
  options::notify(given);
  for (const Verb& v : kVerbs) {
    if (verb != v.name) continue;
    probe.stand_in = device == "stand_in";
    probe.device = probe.stand_in ? testing::fake_card() : open_device(device);
    probe.out = out, probe.files = files, probe.cluster = cluster;
    at::set_num_threads(1);
    allow_tf32(false);
    v.run(probe);
    return 0;
  }
  throw ConfigError({"card_probe"}, "unknown verb '" + verb + "'; see --help");
}

}  // namespace
}  // namespace pfeife::card

int main(int argc, char** argv) {
  pfeife::count_allocations();
  pfeife::keep_freed_memory();
  try {
    return pfeife::card::run(argc, argv);
  } catch (const pfeife::ConfigError& error) {
    std::cerr << error.what() << "\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "card_probe: " << error.what() << "\n";
    return 4;
  }
}
