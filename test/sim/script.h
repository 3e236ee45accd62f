/*
 * The interpreter of scripts: Lua 5.1 with Redis's `redis` in it. It is one for the whole process and keeps each text
 * compiled by its digest, since what scripts do to it does not outlive them; which of them a server knows is that
 * server's. It owns the Lua state, and runs commands through commands.c alone.
 */
#ifndef EVLOCK_SIM_SCRIPT_H
#define EVLOCK_SIM_SCRIPT_H

#include "state.h"

/* The digest of a text, which is worked out once for each text: clients load the same ones at every login. */
void script_digest(const char *text, size_t len, char sha[41]);
/* Compiles the text, unless it did before; false: it is no Lua, and `reply` says why. */
bool script_compile(const char sha[41], const char *text, size_t len, struct output *reply);
/* Runs a compiled script with the first `keys` of `args` for KEYS and the others for ARGV, answering into
 * call->reply. */
void script_run(const struct call *call, const char sha[41], int args, int keys);

#endif
