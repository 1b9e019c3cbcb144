// Reading a command line with Boost.Program_options. For files with a main alone.
#pragma once

#include <boost/program_options.hpp>
#include <string>
#include <vector>

#include "planner/ir/basics/error.h"

namespace pfeife {

/// What `arguments` (without the program's name) say: options of `known`, written in full, and at
/// most one argument without a name, which is called `subject`. ConfigError if there is anything
/// else; it points to `program` --help.
inline boost::program_options::variables_map read_arguments(
    const std::vector<std::string>& arguments,
    const boost::program_options::options_description& known, const char* subject,
    const std::string& program) {
  namespace po = boost::program_options;
  po::options_description all;
  all.add(known).add_options()(subject, po::value<std::string>());
  po::positional_options_description place;
  place.add(subject, 1);
  const auto style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
  po::variables_map found;
  try {
    po::store(po::command_line_parser(arguments).options(all).positional(place).style(style).run(),
              found);
  } catch (const po::too_many_positional_options_error&) {
    throw ConfigError({}, std::string("one ") + subject +
                              " at a time; options start with --, see " + program + " --help");
  } catch (const po::error& error) {
    throw ConfigError({}, std::string(error.what()) + "; see " + program + " --help");
  }
  return found;
}

}  // namespace pfeife
