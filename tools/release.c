/* evlock release: gives back a lock that 'evlock acquire' took, by its token. */
#include <stdio.h>

#include "command.h"
#include "exits.h"
#include "json.h"
#include "say.h"
#include "script.h"

static void release_on_released(evlock *lock, int status, void *arg) {
    struct script *script = arg;
    (void)lock;
    if (script->session.ending)
        return;
    if (status == EVLOCK_ENOTOWNED)
        session_end(&script->session, say_error(EXIT_NOT_HAD, "%s: that token holds it no longer", script->name));
    else if (status != EVLOCK_OK)
        session_end(&script->session, say_status(script->name, status));
    if (status != EVLOCK_OK)
        return;
    if (script->session.options->json) {
        struct json json = {.out = stdout};
        json_open(&json, NULL, '{');
        json_text(&json, "name", script->name);
        json_truth(&json, "released", true);
        json_close(&json, '}');
        json_end(&json);
    }
    session_end(&script->session, EXIT_OK);
}

static void release_on_adopted(struct script *script) {
    int status = evlock_release(script->lock, release_on_released, script);
    if (status != EVLOCK_OK)
        session_end(&script->session, say_status(script->name, status));
}

static int release_run(const struct options *options, int count, char **operands) {
    (void)count;
    return script_run_adopted(options, operands[0], release_on_adopted);
}

static const struct option_row release_options[] = {
    TOKEN_ROWS("read from"),
    {0},
};

const struct command release_command = {
    .name = "release",
    .purpose = "Give back a lock that 'evlock acquire' took.",
    .usage = "[OPTION...] --token-file FILE NAME",
    .details = "It exits with 1 where the token does not hold the lock: it expired, or was given back or broken.\n",
    .groups = OPTIONS_SERVER,
    .own = release_options,
    .least = 1,
    .most = 1,
    .run = release_run,
};
