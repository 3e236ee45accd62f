/*
 * evlock wait: ends when nobody holds a lock any more. It asks again and again, and never takes the lock itself, so it
 * disturbs nobody who waits in line.
 */
#include <stdio.h>

#include "command.h"
#include "duration.h"
#include "exits.h"
#include "lookup.h"
#include "say.h"

static int64_t wait_most_ms = -1, wait_every_ms = 500, wait_not_had = EXIT_NOT_HAD;

struct wait {
    struct session session;
    struct event *timer, *end;
    evlock *lock;
    const char *name;
    struct lookup lookup; /* the last answer */
    int trouble;          /* that was said already */
};

static void wait_ask(struct wait *wait);

static void wait_on_timer(evutil_socket_t fd, short what, void *arg) {
    (void)fd, (void)what;
    wait_ask(arg);
}

/* What is left of the lease is no time to look before; a release may come at any time. */
static void wait_again(struct wait *wait) {
    int64_t ms = wait_every_ms;
    if (wait->lookup.locked && wait->lookup.ttl_ms > 0 && wait->lookup.ttl_ms < ms)
        ms = wait->lookup.ttl_ms;
    struct timeval span = duration_span(ms);
    if (event_add(wait->timer, &span) != 0)
        session_end(&wait->session, say_error(EXIT_TROUBLE, "the system has no timer to give"));
}

static void wait_finish(struct wait *wait) {
    if (wait->session.options->json) {
        struct json json = {.out = stdout};
        json_open(&json, NULL, '{');
        json_text(&json, "name", wait->name);
        lookup_json(&wait->lookup, &json);
        json_close(&json, '}');
        json_end(&json);
    }
    session_end(&wait->session, wait->lookup.locked ? (int)wait_not_had : EXIT_OK);
}

static void wait_on_end(evutil_socket_t fd, short what, void *arg) {
    struct wait *wait = arg;
    (void)fd, (void)what;
    say(SAY_STEPS, "%s is not free", wait->name);
    if (wait->lookup.locked)
        wait_finish(wait);
    else /* no server has answered */
        session_end(&wait->session, (int)wait_not_had);
}

static void wait_on_answer(evlock *lock, int status, const evlock_answer *answer, void *arg) {
    struct wait *wait = arg;
    (void)lock;
    if (wait->session.ending)
        return;
    if (status != EVLOCK_OK && !lookup_is_passing(status)) {
        session_end(&wait->session, say_status(wait->name, status));
        return;
    }
    if (status != EVLOCK_OK && status != wait->trouble && session_is_patient(&wait->session))
        say(SAY_NOTES, "%s: %s; asking again", wait->name, evlock_strerror(status));
    wait->trouble = status;
    if (status == EVLOCK_OK)
        lookup_keep(&wait->lookup, wait->session.options, answer);
    if (status == EVLOCK_OK && (!wait->lookup.locked || wait_most_ms == 0))
        wait_finish(wait);
    else
        wait_again(wait);
}

static void wait_ask(struct wait *wait) {
    int status = evlock_query(wait->lock, lookup_parts(wait->session.options), wait_on_answer, wait);
    if (status != EVLOCK_OK && !wait->session.ending)
        session_end(&wait->session, say_status(wait->name, status));
}

static int wait_start(struct wait *wait) {
    struct timeval span = duration_span(wait_most_ms);
    wait->timer = event_new(wait->session.base, -1, 0, wait_on_timer, wait);
    wait->end = event_new(wait->session.base, -1, 0, wait_on_end, wait);
    if (!wait->timer || !wait->end || (wait_most_ms > 0 && event_add(wait->end, &span) != 0))
        return say_error(EXIT_TROUBLE, "the system has no timer to give");
    evlock_options wanted = lookup_options(wait->session.options);
    int exit = session_lock(&wait->session, wait->name, &wanted, &wait->lock);
    if (!exit)
        wait_ask(wait);
    return exit;
}

static int wait_run(const struct options *options, int count, char **operands) {
    struct wait wait = {.name = operands[0]};
    (void)count;
    int exit = session_open(&wait.session, options);
    if (exit)
        return exit;
    if ((exit = wait_start(&wait)) != 0)
        session_end(&wait.session, exit);
    exit = session_loop(&wait.session);
    session_forget(wait.timer);
    session_forget(wait.end);
    evlock_free(wait.lock);
    session_free(&wait.session);
    return exit;
}

static const struct option_row wait_options[] = {
    {"wait", 'w', OPTION_DURATION, &wait_most_ms, "TIME", "wait so long at most; 0: look once; default: for ever", 0,
     INT64_MAX},
    {"conflict-exit-code", 'E', OPTION_NUMBER, &wait_not_had, "N", "the exit status if it is not free; default 1", 0,
     255},
    {"every", 0, OPTION_DURATION, &wait_every_ms, "TIME", "how often to look; default 500ms", 10, INT32_MAX},
    {0},
};

const struct command wait_command = {
    .name = "wait",
    .purpose = "Wait until nobody holds a lock.",
    .usage = "[OPTION...] NAME",
    .details = "It does not take the lock: another may have it by the time that evlock ends. Where somebody waits in\n"
               "line, the lock is handed on, and is not free between two holders.\n",
    .groups = OPTIONS_SERVER,
    .own = wait_options,
    .least = 1,
    .most = 1,
    .run = wait_run,
};
