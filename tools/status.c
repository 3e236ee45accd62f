/* evlock status: says who holds a lock, for how long yet, and how many wait for it. */
#include <inttypes.h>
#include <stdio.h>

#include "command.h"
#include "exits.h"
#include "lookup.h"
#include "plain.h"
#include "say.h"

struct status {
    struct session session;
    evlock *lock;
    const char *name;
};

static void status_print_json(const char *name, const struct lookup *lookup) {
    struct json json = {.out = stdout};
    json_open(&json, NULL, '{');
    json_text(&json, "name", name);
    lookup_json(lookup, &json);
    json_close(&json, '}');
    json_end(&json);
}

static void status_print(const struct lookup *lookup) {
    char remaining[32];
    printf("held:      %s\n", lookup->locked ? "yes" : "no");
    if (lookup->locked) {
        printf("holder:    ");
        if (lookup->holder_length)
            plain_print(stdout, lookup->holder, lookup->holder_length, 0);
        else
            printf("unknown");
        printf("\nremaining: %s\n", lookup_remaining(lookup, remaining, sizeof remaining));
    }
    if (lookup->counted)
        printf("waiters:   %" PRId64 "\n", lookup->waiters);
}

static void status_on_answer(evlock *lock, int result, const evlock_answer *answer, void *arg) {
    struct status *status = arg;
    struct lookup lookup;
    (void)lock;
    if (status->session.ending)
        return;
    if (result != EVLOCK_OK) {
        session_end(&status->session, say_status(status->name, result));
        return;
    }
    lookup_keep(&lookup, status->session.options, answer);
    if (status->session.options->json)
        status_print_json(status->name, &lookup);
    else
        status_print(&lookup);
    session_end(&status->session, lookup.locked ? EXIT_OK : EXIT_NOT_HAD);
}

static int status_run(const struct options *options, int count, char **operands) {
    struct status status = {.name = operands[0]};
    evlock_options wanted = lookup_options(options);
    (void)count;
    int exit = session_open(&status.session, options);
    if (exit)
        return exit;
    exit = session_lock(&status.session, status.name, &wanted, &status.lock);
    if (!exit) {
        int result = evlock_query(status.lock, lookup_parts(options), status_on_answer, &status);
        exit = result == EVLOCK_OK ? 0 : say_status(status.name, result);
    }
    if (exit)
        session_end(&status.session, exit);
    exit = session_loop(&status.session);
    evlock_free(status.lock);
    session_free(&status.session);
    return exit;
}

const struct command status_command = {
    .name = "status",
    .purpose = "Say who holds a lock, for how long yet, and how many wait.",
    .usage = "[OPTION...] NAME",
    .details = "It exits with 0 if somebody holds the lock, and with 1 if nobody does. Waiters are those in line; who\n"
               "polls is not counted. Several servers have no line, and no waiters to count.\n",
    .groups = OPTIONS_SERVER,
    .least = 1,
    .most = 1,
    .run = status_run,
};
