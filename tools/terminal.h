/* The terminal: who is in its foreground. It owns nothing, and changes no setting of the terminal itself. */
#ifndef TERMINAL_H
#define TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>

/** Whether the standard input is the terminal that controls this process. */
bool terminal_is_input(void);

/**
 * Whether a command may have a group of its own and the terminal's foreground with it: evlock leads its job, and its
 * standard input and output are the terminal. In a pipe or a script, others of the job need the foreground, too.
 */
bool terminal_is_for_one(void);

/** Whether this process's group is in the foreground. */
bool terminal_is_ours(void);

/** Puts this process's group in the foreground, if that group is there now. */
void terminal_take(pid_t group);

/** Puts a group in the foreground, from wherever this process is. */
void terminal_give(pid_t group);

/**
 * Ends evlock as ctrl-C has ended its command: by the signal itself, so that a shell's loop ends, too. It returns where
 * there is no terminal, or no such end by a signal: the first process of a container.
 */
void terminal_end_by_interrupt(void);

#endif
