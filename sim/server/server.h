// Pieces of work, each done by a fresh process of the simulation server (server_program.cc).
//
// The caller does not fork: how large it is, which threads and locks it has, is of no account, and
// several of its threads may work at once. The server is started by the first piece, once in a
// process, and ends with it. If a piece fails or its process dies, the others are stopped and the
// error names the piece; if the server dies, so do all pieces at work, and the next call starts
// another one.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace pfeife {

struct ServerWork {
  std::size_t pieces = 0;
  std::size_t workers = 0;                          ///< processes at a time; 0 = one a core
  std::function<std::string(std::size_t)> request;  ///< the bytes of a piece (engine.h)
  std::function<std::string(std::size_t)> name;     ///< of a piece, for messages
  std::function<void(std::size_t, std::string_view)> on_result;  ///< in order of arrival
};

/// Returns when on_result was called once for every piece. The processes of the pieces have then
/// ended or are being killed. Errors: RuntimeFault if a piece fails, is killed or cannot be
/// started, or if there is no server; exceptions of on_result pass through.
void run_by_server(const ServerWork& work);

/// The server's program: beside the library or program that this code is a part of, or in
/// ../lib/pfeife from there, or in the folders where the dynamic linker looks for libraries on its
/// behalf (rpath). Errors: RuntimeFault that names the folders.
std::filesystem::path server_program();

/// A channel of one piece to the server, a stream socket that its owner closes.
struct Channel {
  int file = -1;
  int server = -1;  ///< process id
};
/// Starts the server if need be. Errors: RuntimeFault.
Channel connect_to_server();
/// How a server ended that has closed a channel: "was killed by signal 9 (Killed)".
std::string end_of_server(int server);

}  // namespace pfeife
