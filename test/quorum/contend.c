/*
 * One of the processes that want one lock: contend HOLDER SEED URL... takes it again and again on a quorum of those
 * servers, with a fence; holds it for a moment, or nearly for its ttl, or beyond that with renewal; and writes each
 * window of time in which it believed in the lock to its output. It ends when its input does.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include <event2/event.h>

#include <evlock/evlock.h>
#include <evlock/libevent.h>

#include "../urls.h"
#include "contend.h"
#include "windows.h"

struct contender {
    struct event_base *base;
    struct event *input;
    struct event *timer; /* while holding: the next look at the lease; else: the pause before the next acquire */
    evlock_client *client;
    evlock *locks[2];     /* a plain one, and one that is renewed */
    evlock *lock;         /* the one of this time */
    struct window window; /* while holding */
    int64_t enough;       /* when it is to be released */
    bool holding;
    bool ending;
};

static void die_unless(bool ok, int code) {
    if (!ok)
        exit(code);
}

static void wake_after(struct contender *contender, int64_t us) {
    struct timeval pause = {.tv_sec = (time_t)(us / 1000000), .tv_usec = (suseconds_t)(us % 1000000)};
    event_add(contender->timer, &pause);
}

/* --- Holding ------------------------------------------------------------------------------------------------------ */

/* Takes note until when the lock may be believed in, seen from `now`. That was read before: so a stop of this process
 * in between makes the window too short, and never too long. */
static void believe(struct contender *contender, int64_t now) {
    int64_t until = now + evlock_remaining_ms(contender->lock) * 1000;
    if (evlock_is_held(contender->lock) && until > contender->window.until)
        contender->window.until = until;
}

static void on_released(evlock *lock, int status, void *arg) {
    (void)lock;
    (void)status; /* what a release can say depends on what befalls the nodes */
    wake_after(arg, random() % 2000);
}

static void let_go(struct contender *contender) {
    struct window window = contender->window;
    int64_t now = evlock_clock_us();
    contender->holding = false;
    if (now < window.until)
        window.until = now;
    die_unless(evlock_release(contender->lock, on_released, contender) == EVLOCK_OK, 3);
    if (window.until > window.from)
        die_unless(write(STDOUT_FILENO, &window, sizeof(window)) == sizeof(window), 4);
}

static void look(struct contender *contender) {
    int64_t now = evlock_clock_us();
    believe(contender, now);
    if (now >= contender->enough || !evlock_is_held(contender->lock))
        let_go(contender);
    else
        wake_after(contender, 1000);
}

/* --- Acquiring ---------------------------------------------------------------------------------------------------- */

static void on_acquired(evlock *lock, int status, void *arg) {
    struct contender *contender = arg;
    int64_t now = evlock_clock_us();
    die_unless(status != EVLOCK_EFENCE, 5);
    if (status != EVLOCK_OK) {
        wake_after(contender, 1000);
        return;
    }
    contender->holding = true;
    contender->window.from = now;
    contender->window.until = now;
    contender->window.fence = evlock_fence(lock);
    believe(contender, now);
    if (lock == contender->locks[1])
        contender->enough = now + CONTEND_TTL_MS * 1500;
    else
        contender->enough = now + (random() % 100 ? random() % 2000 : CONTEND_TTL_MS * 900);
    wake_after(contender, 0);
}

static void acquire(struct contender *contender) {
    evlock_acquire_options options = {.size = sizeof(evlock_acquire_options)};
    options.fence = EVLOCK_ON;
    contender->lock = contender->locks[random() % 100 == 0];
    die_unless(evlock_acquire(contender->lock, &options, on_acquired, contender) == EVLOCK_OK, 6);
}

static void on_timer(evutil_socket_t fd, short what, void *arg) {
    struct contender *contender = arg;
    (void)fd;
    (void)what;
    if (contender->holding)
        look(contender);
    else if (contender->ending)
        event_base_loopbreak(contender->base);
    else
        acquire(contender);
}

/* --- The beginning and the end ------------------------------------------------------------------------------------ */

static void on_input(evutil_socket_t fd, short what, void *arg) {
    struct contender *contender = arg;
    (void)fd;
    (void)what;
    contender->ending = true;
    evlock_cancel(contender->lock); /* harmless when it is not acquiring */
}

static evlock_client *new_client(struct event_base *base, const char *const *urls, size_t count) {
    evlock_client_options options = {.size = sizeof(evlock_client_options)};
    evlock_client *client = NULL;
    options.max_ttl_ms = CONTEND_MAX_TTL_MS;
    options.connect_timeout_ms = 1000;
    options.command_timeout_ms = 1000;
    options.backoff_max_ms = 100;
    die_unless(evlock_client_new_libevent(&client, base, urls_joined(urls, count).text, &options) == EVLOCK_OK, 7);
    return client;
}

static evlock *new_lock(evlock_client *client, bool renewed) {
    evlock_options options = {.size = sizeof(evlock_options)};
    evlock *lock = NULL;
    options.ttl_ms = CONTEND_TTL_MS;
    options.retry_delay_ms = 10;
    options.retry_jitter = 100;
    options.auto_renewal = renewed;
    die_unless(evlock_new(&lock, client, CONTEND_NAME, EVLOCK_CSTRING, &options) == EVLOCK_OK, 8);
    return lock;
}

int main(int argc, char **argv) {
    struct contender contender = {.base = event_base_new()};
    die_unless(argc > 3, 2);
    contender.window.holder = atoll(argv[1]);
    srandom((unsigned)atoll(argv[2]));
    contender.client = new_client(contender.base, (const char *const *)argv + 3, (size_t)argc - 3);
    for (int i = 0; i < 2; i++)
        contender.locks[i] = new_lock(contender.client, i == 1);
    contender.input = event_new(contender.base, STDIN_FILENO, EV_READ, on_input, &contender);
    contender.timer = event_new(contender.base, -1, 0, on_timer, &contender);
    event_add(contender.input, NULL);
    acquire(&contender);
    event_base_dispatch(contender.base);

    for (int i = 0; i < 2; i++)
        evlock_free(contender.locks[i]);
    evlock_client_free(contender.client);
    event_base_loop(contender.base, EVLOOP_NONBLOCK);
    event_free(contender.input);
    event_free(contender.timer);
    event_base_free(contender.base);
    return 0;
}
