/* evlock break: takes a lock away from whoever holds it, and says from whom. */
#include <stdio.h>

#include "command.h"
#include "duration.h"
#include "exits.h"
#include "lookup.h"
#include "plain.h"
#include "say.h"

enum { BREAK_LINGER_MS = 100 };

struct breaking {
    struct session session;
    struct event *timer;
    evlock *lock;
    const char *name;
    struct lookup lookup; /* before the break */
};

static void break_print(const struct breaking *breaking, bool broken) {
    const struct lookup *lookup = &breaking->lookup;
    struct json json = {.out = stdout};
    if (!breaking->session.options->json && !broken)
        return;
    if (!breaking->session.options->json) {
        printf("broken; the holder was ");
        if (lookup->holder_length)
            plain_print(stdout, lookup->holder, lookup->holder_length, 0);
        else
            printf("unknown");
        putchar('\n');
        return;
    }
    json_open(&json, NULL, '{');
    json_text(&json, "name", breaking->name);
    json_truth(&json, "broken", broken);
    if (broken && lookup->holder_length)
        json_bytes(&json, "holder", lookup->holder, lookup->holder_length);
    else
        json_null(&json, "holder");
    json_close(&json, '}');
    json_end(&json);
}

static void break_on_lingered(evutil_socket_t fd, short what, void *arg) {
    struct breaking *breaking = arg;
    (void)fd, (void)what;
    session_end(&breaking->session, EXIT_OK);
}

/* A majority of several servers is done, and the others are at it. */
static void break_linger(struct breaking *breaking) {
    struct timeval span = duration_span(breaking->session.options->url_count > 1 ? BREAK_LINGER_MS : 0);
    if (event_add(breaking->timer, &span) != 0)
        session_end(&breaking->session, EXIT_OK);
}

static void break_on_broken(evlock *lock, int status, void *arg) {
    struct breaking *breaking = arg;
    struct session *session = &breaking->session;
    (void)lock;
    if (session->ending)
        return;
    if (status == EVLOCK_OK) {
        break_print(breaking, true);
        break_linger(breaking);
    } else if (status == EVLOCK_ENOTHELD) {
        break_print(breaking, false);
        session_end(session, say_error(EXIT_NOT_HAD, "nobody holds %s", breaking->name));
    } else if (status == EVLOCK_ENOTOWNED) {
        session_end(session,
                    say_error(EXIT_TROUBLE, "%s: its holder has just changed; the new one has it", breaking->name));
    } else {
        session_end(session, say_status(breaking->name, status));
    }
}

static void break_on_answer(evlock *lock, int status, const evlock_answer *answer, void *arg) {
    struct breaking *breaking = arg;
    if (breaking->session.ending)
        return;
    if (status == EVLOCK_OK)
        lookup_keep(&breaking->lookup, breaking->session.options, answer);
    if (status == EVLOCK_OK)
        status = evlock_break(lock, break_on_broken, breaking);
    if (status != EVLOCK_OK)
        session_end(&breaking->session, say_status(breaking->name, status));
}

static int break_run(const struct options *options, int count, char **operands) {
    struct breaking breaking = {.name = operands[0]};
    evlock_options wanted = lookup_options(options);
    (void)count;
    int exit = session_open(&breaking.session, options);
    if (exit)
        return exit;
    exit = session_lock(&breaking.session, breaking.name, &wanted, &breaking.lock);
    breaking.timer = event_new(breaking.session.base, -1, 0, break_on_lingered, &breaking);
    if (!exit && !breaking.timer)
        exit = say_error(EXIT_TROUBLE, "the system has no timer to give");
    if (!exit) {
        int status = evlock_query(breaking.lock, lookup_parts(options), break_on_answer, &breaking);
        exit = status == EVLOCK_OK ? 0 : say_status(breaking.name, status);
    }
    if (exit)
        session_end(&breaking.session, exit);
    exit = session_loop(&breaking.session);
    session_forget(breaking.timer);
    evlock_free(breaking.lock);
    session_free(&breaking.session);
    return exit;
}

const struct command break_command = {
    .name = "break",
    .purpose = "Take a lock away from whoever holds it.",
    .usage = "[OPTION...] NAME",
    .details = "It says who held the lock a moment before. The holder learns of it when it next renews, and may work\n"
               "on until then. Whoever is first in line gets the lock. It exits with 1 if nobody holds the lock.\n",
    .groups = OPTIONS_SERVER,
    .least = 1,
    .most = 1,
    .run = break_run,
};
