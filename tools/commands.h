/* All subcommands: their table, and the help of each. It does nothing of what they do. */
#ifndef COMMANDS_H
#define COMMANDS_H

#include "command.h"

extern const struct command run_command;
extern const struct command elect_command;
extern const struct command hold_command;
extern const struct command acquire_command;
extern const struct command extend_command;
extern const struct command release_command;
extern const struct command status_command;
extern const struct command list_command;
extern const struct command top_command;
extern const struct command wait_command;
extern const struct command break_command;
extern const struct command doctor_command;

/** Every subcommand, in the order of the help; with a NULL behind them. */
extern const struct command *const commands[];

/** The one that is called so; NULL if there is none. */
const struct command *commands_find(const char *name);

/** Prints the help of one on the standard output: usage, purpose, options, details. */
void commands_help(const struct command *command);

#endif
