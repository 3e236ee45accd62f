/* The errors with which the simulation has a server answer commands, instead of running them. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "state.h"

void sim_server_refuse(sim_server *server, const char *verb, const char *error, unsigned count) {
    struct refusal *refusal;
    if (count == 0)
        return;
    refusal = need(calloc(1, sizeof(*refusal)));
    refusal->count = count;
    refusal->verb = need(strdup(verb));
    refusal->error = need(strdup(error));
    TAILQ_INSERT_TAIL(&server->refusals, refusal, next);
}

bool sim_server_refuses(const sim_server *server) {
    return !TAILQ_EMPTY(&server->refusals);
}

static void drop(sim_server *server, struct refusal *refusal) {
    TAILQ_REMOVE(&server->refusals, refusal, next);
    free(refusal->verb);
    free(refusal->error);
    free(refusal);
}

void sim_server_allow(sim_server *server) {
    while (!TAILQ_EMPTY(&server->refusals))
        drop(server, TAILQ_FIRST(&server->refusals));
}

static bool fits(const char *verb, const struct command *command) {
    size_t len = strlen(verb);
    if (len == 0)
        return !(command->flags & LOGIN);
    return strncasecmp(verb, command->name, len) == 0 && (command->name[len] == '\0' || command->name[len] == '|');
}

bool refusal_use(const struct call *call) {
    struct refusal *refusal;
    TAILQ_FOREACH (refusal, &call->server->refusals, next) {
        if (fits(refusal->verb, call->command))
            break;
    }
    if (!refusal)
        return false;
    reply_error(call->reply, "%s", refusal->error);
    if (--refusal->count == 0)
        drop(call->server, refusal);
    return true;
}
