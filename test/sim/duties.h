/*
 * Duties: what a client owes to who asks and who holds, as far as that can be seen from the commands that its servers
 * get: a renewal that is refused is sent again soon, and one that was lost with its connection, upon the next; what is
 * renewed and met by no trouble is not lost; who is told of
 * trouble was not told before that another holds the lock. It keeps its notes in handles and promises.
 */
#ifndef EVLOCK_SIM_DUTIES_H
#define EVLOCK_SIM_DUTIES_H

#include "judge.h"

/* A session's command is about to run, or is refused. */
void duties_command(struct node *node, int argc, const char *const *argv, const size_t *lens, bool refused);
/* The process has closed its end of a wire; one is established. */
void duties_parted(const struct wire *wire);
void duties_connected(const struct wire *wire);
/* A SET found that somebody else has the lock. */
void duties_denied(struct node *node, const struct token *token, unsigned key);
/* At every step, for who believes. */
void duties_look(struct handle *handle);
/* Its loss, by its deadline, or an acquire's end is being told. */
void duties_lost(const struct handle *handle);
void duties_told(const struct promise *promise, int status);

#endif
