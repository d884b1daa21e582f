#pragma once

namespace CLI {
class App;
}

// The subcommands. Each adds itself to the program; its work is the subcommand's callback, which throws on failure.

namespace cobble::program {

void add_run_command(CLI::App& program);
void add_info_command(CLI::App& program);
void add_plan_command(CLI::App& program);
void add_pebble_command(CLI::App& program);
void add_draw_command(CLI::App& program);
void add_make_command(CLI::App& program);
void add_convert_command(CLI::App& program);
void add_bench_command(CLI::App& program);

}  // namespace cobble::program
