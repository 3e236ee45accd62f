/*
 * A subcommand as main.c, the help and the completions know it: its name, its words of help, its options, its function.
 * Each has a file of its own, which defines one of these; commands.c has the table of them all.
 */
#ifndef COMMAND_H
#define COMMAND_H

#include "options.h"

struct command {
    const char *name;
    const char *purpose;          /**< one line, for the list of commands */
    const char *usage;            /**< what follows the name: "[OPTION...] NAME" */
    const char *details;          /**< paragraphs behind the table of options; may be NULL */
    unsigned groups;              /**< which of the shared options it takes: enum options_group, added up */
    const struct option_row *own; /**< its own options, with a row of zero behind them; may be NULL */
    int least;                    /**< operands that it needs */
    int most;                     /**< operands that it takes; -1: any number */

    /** Does it. Returns the exit status. `operands` is `count` strings with a NULL behind them. */
    int (*run)(const struct options *options, int count, char **operands);
};

#endif
