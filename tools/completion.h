/*
 * What bash and zsh need to complete the command line. It is made of the tables of commands and options, so it knows
 * what they know; what is installed is this output. It owns nothing.
 */
#ifndef COMPLETION_H
#define COMPLETION_H

#include "command.h"

/** Prints it for a shell, on the standard output. Returns 0, or the exit status of an error that was said. */
int completion_print(const char *shell, const struct command *const *commands);

#endif
