#include <sstream>

#include "planner/io/files/atomic_file.h"
#include "planner/ir/basics/error.h"
#include "runtime/profile/part_steps.h"
#include "runtime/profile/profile_samples.h"

namespace pfeife {
namespace {

constexpr const char* kTitle = "pfeife profile samples 4";
constexpr std::size_t kMostKinds = 3 * 64;  // of passes of parts
/// The samples of a list: nobody profiles for so long.
constexpr std::size_t kMostSamples = 100'000'000;
/// One pass takes less than an hour, so that sums of them stay within 64 bits.
constexpr std::int64_t kLongest = 3'600'000'000'000;

void write(const Samples& samples, std::ostream& out) {
  out << samples.size();
  samples.for_each([&](Nanoseconds time, bool interrupted) {
    out << ' ' << (interrupted ? "i" : "") << time.count();
  });
  out << '\n';
}

/// A step a line, the first of a round with an r before it.
void write(const StepTimes& steps, std::ostream& out) {
  out << steps.steps().size() << '\n';
  auto round = steps.rounds().begin();
  for (std::size_t s = 0; s < steps.steps().size(); ++s) {
    const auto& step = steps.steps()[s];
    if (round != steps.rounds().end() && s == *round) out << "r ", ++round;
    out << step.size();
    for (const auto& [kind, time] : step) out << ' ' << kind << ' ' << time.count();
    out << '\n';
  }
}

/// Numbers after the first two lines.
class SamplesReader {
 public:
  SamplesReader(std::istream& in, const std::string& file) : in_(in), file_(file) {}

  std::size_t count(std::size_t most = kMostSamples) {
    std::size_t number = 0;
    if (!(in_ >> number) || number > most) throw broken();
    return number;
  }
  Nanoseconds time() {
    std::int64_t number = 0;
    if (!(in_ >> number) || number < 0 || number > kLongest) throw broken();
    return Nanoseconds{number};
  }
  void read(Samples& samples) {
    for (std::size_t left = count(); left > 0; --left) {
      const bool interrupted = skip('i');
      samples.add(time(), interrupted);
    }
  }
  void read(StepTimes& steps, std::size_t kinds) {
    for (std::size_t left = count(); left > 0; --left) {
      if (skip('r')) steps.begin_round();
      steps.begin_step();
      for (std::size_t passes = count(); passes > 0; --passes) {
        const std::size_t kind = count(kinds - 1);
        const Nanoseconds passed = time();
        if (passed == Nanoseconds{0})
          throw ConfigError({file_},
                            "says that a whole pass took 0 ns; remove it and profile anew");
        steps.add(kind, passed);
      }
    }
  }
  void expect_end() {
    if (!(in_ >> std::ws).eof()) throw broken();
  }
  ConfigError broken() const {
    return ConfigError({file_}, "holds no whole samples of a profile of this version; remove it");
  }

 private:
  /// Whether `mark` comes next.
  bool skip(char mark) {
    const bool marked = (in_ >> std::ws).peek() == mark;
    if (marked) in_.get();
    return marked;
  }

  std::istream& in_;
  const std::string& file_;
};

}  // namespace

void write_samples(const std::string& file, const std::string& timed,
                   const ProfileSamples& samples) {
  std::ostringstream out;
  out << kTitle << '\n' << timed << '\n';
  ProfileSamples::for_each(samples, [&](const Samples& list) { write(list, out); });
  for (const auto* passes : {&samples.forward, &samples.input, &samples.weight}) {
    for (const bool ran : passes->ran) out << ' ' << ran;
    out << '\n';
  }
  write(samples.steps, out);
  write(samples.parts, out);
  write(samples.turns, out);
  write_file(file, out.str());
}

std::optional<ProfileSamples> read_samples(const std::string& file, const std::string& timed,
                                           std::size_t nodes, std::size_t parameters) {
  if (!is_there(file)) return std::nullopt;
  std::istringstream in(read_file(file));
  SamplesReader reader(in, file);
  std::string title, found;
  if (!std::getline(in, title) || title != kTitle || !std::getline(in, found))
    throw reader.broken();
  if (found != timed)
    throw ConfigError({file}, "was timed of \"" + found + "\", not of \"" + timed + "\"");
  ProfileSamples samples(nodes, parameters);
  ProfileSamples::for_each(samples, [&](Samples& list) { reader.read(list); });
  for (auto* passes : {&samples.forward, &samples.input, &samples.weight})
    for (std::size_t n = 0; n < nodes; ++n) passes->ran[n] = reader.count(1) == 1;
  reader.read(samples.steps, samples.wholes.size());
  reader.read(samples.parts, kMostKinds);
  reader.read(samples.turns, PartSteps::kTurns);
  reader.expect_end();
  return samples;
}

}  // namespace pfeife
