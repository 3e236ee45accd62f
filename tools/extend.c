/* evlock extend: gives a lease that 'evlock acquire' took more time, by its token, and leaves it as it then is. */
#include <stdio.h>

#include "command.h"
#include "exits.h"
#include "json.h"
#include "say.h"
#include "script.h"

static int64_t extend_ttl_ms = 10000;

static void extend_on_left(struct script *script) {
    const struct options *options = script->session.options;
    if (!options->json)
        return;
    struct json json = {.out = stdout};
    json_open(&json, NULL, '{');
    json_text(&json, "name", script->name);
    json_number(&json, "ttl_ms", extend_ttl_ms);
    json_close(&json, '}');
    json_end(&json);
}

/* A lease that could not be extended is left, too: it is not this run's to give back. */
static void extend_on_extended(evlock *lock, int status, void *arg) {
    struct script *script = arg;
    (void)lock;
    if (script->session.ending)
        return;
    if (status == EVLOCK_OK)
        script_leave(script, EXIT_OK, extend_on_left);
    else if (status == EVLOCK_ENOTOWNED || status == EVLOCK_ELOST)
        session_end(&script->session, say_error(EXIT_NOT_HAD, "%s: that token holds it no longer", script->name));
    else
        script_leave(script, say_status(script->name, status), NULL);
}

static void extend_on_adopted(struct script *script) {
    int status = evlock_extend(script->lock, extend_ttl_ms, EVLOCK_EXTEND_REPLACE, extend_on_extended, script);
    if (status != EVLOCK_OK)
        script_leave(script, say_status(script->name, status), NULL);
}

static int extend_run(const struct options *options, int count, char **operands) {
    int exit = options_check_ttl(options, extend_ttl_ms);
    (void)count;
    return exit ? exit : script_run_adopted(options, operands[0], extend_on_adopted);
}

static const struct option_row extend_options[] = {
    {"ttl", 0, OPTION_DURATION, &extend_ttl_ms, "TIME", "what the lease then has left; default 10s", 0, 0},
    TOKEN_ROWS("read from"),
    {0},
};

const struct command extend_command = {
    .name = "extend",
    .purpose = "Give a lock that 'evlock acquire' took a new ttl.",
    .usage = "[OPTION...] --token-file FILE NAME",
    .details = "What is left of the lease becomes --ttl, be it longer or shorter than before.\n"
               "It exits with 1 where the token does not hold the lock.\n",
    .groups = OPTIONS_SERVER,
    .own = extend_options,
    .least = 1,
    .most = 1,
    .run = extend_run,
};
