// Reading a command line with Boost.Program_options. For the sources of programs alone.
#pragma once

#include <boost/program_options.hpp>
#include <string>
#include <typeinfo>
#include <vector>

#include "planner/ir/basics/error.h"

namespace pfeife {

/// ConfigError if an option that takes a number has one with zeros in front, which some read as
/// octal.
inline void refuse_leading_zeros(const boost::program_options::basic_option<char>& option,
                                 const boost::program_options::options_description& known) {
  const auto* typed = dynamic_cast<const boost::program_options::typed_value_base*>(
      known.find(option.string_key, false).semantic().get());
  if (typed == nullptr || typed->value_type() == typeid(std::string) ||
      typed->value_type() == typeid(std::vector<std::string>))
    return;
  for (const std::string& text : option.value) {
    const std::size_t at = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
    if (text.size() > at + 1 && text[at] == '0' && text[at + 1] >= '0' && text[at + 1] <= '9')
      throw ConfigError({},
                        "--" + option.string_key + ": '" + text + "' has a zero too many in front");
  }
}

/// What `arguments` (without the program's name) say: options of `known`, written in full, and at
/// most one argument without a name, which is called `subject`; with `several`, any number of them,
/// as std::vector<std::string>. ConfigError if there is anything
/// else; it points to `program` --help.
inline boost::program_options::variables_map read_arguments(
    const std::vector<std::string>& arguments,
    const boost::program_options::options_description& known, const char* subject,
    const std::string& program, bool several = false) {
  namespace po = boost::program_options;
  po::options_description all;
  all.add(known);
  if (several)
    all.add_options()(subject, po::value<std::vector<std::string>>());
  else
    all.add_options()(subject, po::value<std::string>());
  po::positional_options_description place;
  place.add(subject, several ? -1 : 1);
  const auto style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
  po::variables_map found;
  try {
    const auto parsed =
        po::command_line_parser(arguments).options(all).positional(place).style(style).run();
    for (const auto& option : parsed.options) refuse_leading_zeros(option, all);
    po::store(parsed, found);
  } catch (const po::too_many_positional_options_error&) {
    throw ConfigError({}, std::string("one ") + subject +
                              " at a time; options start with --, see " + program + " --help");
  } catch (const po::error& error) {
    throw ConfigError({}, std::string(error.what()) + "; see " + program + " --help");
  }
  return found;
}

/// "a, b, c".
inline std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// The threads that --jobs asks for. ConfigError if it is not from 1 to 1024.
inline std::size_t read_jobs(int jobs) {
  if (jobs < 1 || jobs > 1024)
    throw ConfigError({"--jobs " + std::to_string(jobs), 0, 0}, "expected a number from 1 to 1024");
  return static_cast<std::size_t>(jobs);
}

}  // namespace pfeife
