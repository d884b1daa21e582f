#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>

#include "commands.hpp"
#include "text.hpp"

namespace {

constexpr int kFailure = 1;
constexpr int kWrongUsage = 2;

int fail(const std::string& message, int status) {
  std::fprintf(stderr, "cobble: %s\n", cobble::program::one_line(message).c_str());
  return status;
}

}  // namespace

int main(int argument_count, char** arguments) {
  CLI::App program("Exact sparse attention on CPUs, forward and backward.", "cobble");
  program.footer(
      "PATTERN is a file (.mtx, .smtx, .npz, .npy) or an expression. For example:\n"
      "  cobble run \"window(16384,512,0)\" --check\n"
      "  cobble run \"window(16384,512,0)\" --head-dim 128 --features 8     Q and K compressed, 8 features a token\n"
      "  cobble run mask.npz --query q.npz --key k.npz --save out.npz      your own, gradients in the same storage\n"
      "  cobble run mask.mtx --reorder automatic                           tokens in another order inside, if it pays");
  program.require_subcommand(1);
  program.get_formatter()->column_width(34);
  cobble::program::add_run_command(program);
  cobble::program::add_info_command(program);
  cobble::program::add_plan_command(program);
  cobble::program::add_pebble_command(program);
  cobble::program::add_draw_command(program);
  cobble::program::add_make_command(program);
  cobble::program::add_convert_command(program);
  cobble::program::add_bench_command(program);
  try {
    program.parse(argument_count, arguments);
  } catch (const CLI::Success& request) {  // --help
    return program.exit(request, std::cout, std::cerr);
  } catch (const CLI::ParseError& error) {
    return fail(std::string(error.what()) + " (see --help)", kWrongUsage);
  } catch (const std::bad_alloc&) {
    return fail("out of memory", kFailure);
  } catch (const std::exception& error) {
    return fail(error.what(), kFailure);
  }
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0 ? 0 : fail("cannot write to standard output", kFailure);
}
