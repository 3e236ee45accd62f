/*
 * evlock acquire: takes a lock for a script, writes the token where the script wants it, and leaves the lease to it.
 * Nothing renews that lease; `evlock extend` can.
 */
#include <inttypes.h>
#include <stdio.h>

#include "command.h"
#include "exits.h"
#include "json.h"
#include "output.h"
#include "say.h"
#include "script.h"

static bool acquire_fence;

struct acquire {
    struct script script;
    int fd;
    uint64_t fence; /* 0: none was drawn */
    int64_t remaining_ms;
};

/* Returns 0, or the exit status if that did not arrive. */
static int acquire_print(const struct acquire *acquire) {
    const struct script *script = &acquire->script;
    const struct options *options = script->session.options;
    struct json json = {.out = stdout};
    if (!options->json) {
        if (!acquire->fence)
            return 0;
        printf("%" PRIu64 "\n", acquire->fence);
        return output_arrived();
    }
    json_open(&json, NULL, '{');
    json_text(&json, "name", script->name);
    if (acquire->fence)
        json_fence(&json, "fence", acquire->fence);
    else
        json_null(&json, "fence");
    json_text(&json, "holder", options->holder);
    json_number(&json, "ttl_ms", options->ttl_ms);
    json_number(&json, "remaining_ms", acquire->remaining_ms);
    json_close(&json, '}');
    json_end(&json);
    return output_arrived();
}

/* Who cannot be told the token could not give the lock back, and who was not told the fence would not use it. */
static void acquire_on_acquired(evlock *lock, int status, void *arg) {
    struct acquire *acquire = arg;
    struct session *session = &acquire->script.session;
    if (status != EVLOCK_OK) {
        session_end_not_had(session, lock, acquire->script.name, status);
        return;
    }
    acquire->fence = evlock_fence(lock);
    acquire->remaining_ms = evlock_remaining_ms(lock);
    size_t length = 0;
    const void *token = evlock_token(lock, &length);
    int exit = token_write(acquire->fd, token, token ? length : 0);
    if (exit == 0)
        exit = acquire_print(acquire);
    if (exit)
        session_end(session, exit);
    else
        script_leave(&acquire->script, EXIT_OK, NULL);
}

static int acquire_run(const struct options *options, int count, char **operands) {
    struct acquire acquire = {.fd = -1};
    (void)count;
    int exit = token_open(&acquire.fd);
    if (exit)
        return exit;
    evlock_options wanted = options_lock(options);
    wanted.fence = acquire_fence;
    exit = script_open(&acquire.script, options, operands[0], &wanted);
    if (!exit) {
        int status = evlock_acquire(acquire.script.lock, NULL, acquire_on_acquired, &acquire);
        exit = status == EVLOCK_OK ? 0 : say_status("cannot lock that", status);
    }
    return script_run(&acquire.script, exit);
}

static const struct option_row acquire_options[] = {
    TOKEN_ROWS("written to"),
    {"fence", 0, OPTION_FLAG, &acquire_fence, NULL, "draw a fence, and print it", 0, 0},
    {0},
};

const struct command acquire_command = {
    .name = "acquire",
    .purpose = "Take a lock for a script, and leave it held.",
    .usage = "[OPTION...] --token-file FILE NAME",
    .details = "The lock stays held for --ttl, and nothing renews it: use 'evlock extend', and give it back by\n"
               "'evlock release', both with the same token. Who has the token can give the lock back.\n"
               "To run one command under a lock, 'evlock run' is safer.\n",
    .groups = OPTIONS_SERVER | OPTIONS_LEASE | OPTIONS_WAIT,
    .own = acquire_options,
    .least = 1,
    .most = 1,
    .run = acquire_run,
};
