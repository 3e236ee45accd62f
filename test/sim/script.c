/* EVAL, EVALSHA and SCRIPT: which scripts the server knows, and the arguments of their calls. */
#include "script.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* --- The scripts that a server knows ------------------------------------------------------------------------------ */

static bool knows(const sim_server *server, const char *sha) {
    for (size_t i = 0; i < server->scripts.count; i++) {
        if (memcmp(server->scripts.shas[i], sha, 40) == 0)
            return true;
    }
    return false;
}

/* Its digest is told; false: it is no script. */
static bool learn(const struct call *call, int at, char sha[41]) {
    struct script_set *set = &call->server->scripts;
    script_digest(call->argv[at], call->lens[at], sha);
    if (knows(call->server, sha))
        return true;
    if (!script_compile(sha, call->argv[at], call->lens[at], call->reply))
        return false;
    if (set->count == set->room) {
        set->room = set->room ? 2 * set->room : 16;
        set->shas = need(realloc(set->shas, set->room * sizeof(*set->shas)));
    }
    memcpy(set->shas[set->count++], sha, 41);
    return true;
}

void sim_server_flush_scripts(sim_server *server) {
    free(server->scripts.shas);
    server->scripts = (struct script_set){0};
}

/* A digest in any case; false: it cannot be one. */
static bool read_sha(const struct call *call, int at, char sha[41]) {
    if (call->lens[at] != 40)
        return false;
    for (int i = 0; i <= 40; i++)
        sha[i] = (char)tolower((unsigned char)call->argv[at][i]);
    return true;
}

/* --- EVAL --------------------------------------------------------------------------------------------------------- */

static bool read_keys(const struct call *call, int64_t *keys) {
    if (!integer_argument(call, 2, keys))
        return false;
    if (*keys > call->argc - 3)
        reply_error(call->reply, "ERR Number of keys can't be greater than number of args");
    else if (*keys < 0)
        reply_error(call->reply, "ERR Number of keys can't be negative");
    return *keys >= 0 && *keys <= call->argc - 3;
}

static void run_eval(struct call *call) {
    char sha[41];
    int64_t keys;
    if (read_keys(call, &keys) && learn(call, 1, sha))
        script_run(call, sha, 3, (int)keys);
}

static void run_evalsha(struct call *call) {
    char sha[41];
    int64_t keys;
    bool possible = read_sha(call, 1, sha);
    if (possible && !read_keys(call, &keys))
        return;
    if (possible && knows(call->server, sha))
        script_run(call, sha, 3, (int)keys);
    else
        reply_error(call->reply, "NOSCRIPT No matching script. Please use EVAL.");
}

/* --- SCRIPT ------------------------------------------------------------------------------------------------------- */

static void run_script_load(struct call *call) {
    char sha[41];
    if (learn(call, 2, sha))
        reply_bulk(call->reply, sha, 40);
}

const struct command script_commands[] = {
    {"eval", -3, NO_SCRIPT | COUNTED_KEYS, run_eval},
    {"evalsha", -3, NO_SCRIPT | COUNTED_KEYS, run_evalsha},
    {"script", -2, NO_SCRIPT | LOGIN, NULL},
    {"script|load", 3, NO_SCRIPT | LOGIN, run_script_load},
    {0},
};
