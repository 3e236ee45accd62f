/*
 * The tests' event loops; see loops.h. Each has one repeating timer of its own, so that a turn never waits for long.
 */
#include "loops.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include <evlock/libevent.h>

#ifdef EVLOCK_TEST_LIBUV
#include <evlock/libuv.h>
#include <uv.h>
#endif

enum { TICK_MS = 5 };

struct test_loop {
    evlock_loop for_evlock;
    bool patient;            /* it does not tick */
    struct event_base *base; /* libevent's, or NULL */
    struct event *tick;
#ifdef EVLOCK_TEST_LIBUV
    uv_loop_t uv;
    uv_timer_t uv_tick;
#endif
};

/* --- libevent ----------------------------------------------------------------------------------------------------- */

static void event_ticked(evutil_socket_t fd, short what, void *arg) {
    (void)fd;
    (void)what;
    (void)arg;
}

static void event_loop_init(struct test_loop *loop) {
    struct timeval tick = {.tv_usec = TICK_MS * 1000};
    loop->base = event_base_new();
    loop->tick = event_new(loop->base, -1, EV_PERSIST, event_ticked, NULL);
    event_add(loop->tick, &tick);
    loop->for_evlock = evlock_libevent(loop->base);
}

static void event_loop_done(struct test_loop *loop) {
    event_free(loop->tick);
    event_base_free(loop->base);
}

/* --- libuv -------------------------------------------------------------------------------------------------------- */

#ifdef EVLOCK_TEST_LIBUV
static void uv_ticked(uv_timer_t *timer) {
    (void)timer;
}

static void uv_loop_begin(struct test_loop *loop) {
    uv_loop_init(&loop->uv);
    uv_timer_init(&loop->uv, &loop->uv_tick);
    uv_timer_start(&loop->uv_tick, uv_ticked, TICK_MS, TICK_MS);
    loop->for_evlock = evlock_libuv(&loop->uv);
}

static void uv_count(uv_handle_t *handle, void *arg) {
    if (!uv_is_closing(handle))
        ++*(int *)arg;
}

/* Waits for what a thread is still at: it writes into the loop at its end. False: a handle that evlock left open keeps
 * the loop busy for ever. Then the loop stays where it is, and the checkers tell that it leaks. */
static bool uv_loop_done(struct test_loop *loop) {
    enum { MOST_TURNS = 10000 / TICK_MS };
    uv_unref((uv_handle_t *)&loop->uv_tick);
    for (int turns = 0; uv_loop_alive(&loop->uv) && turns < MOST_TURNS; turns++)
        uv_run(&loop->uv, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&loop->uv_tick, NULL);
    uv_run(&loop->uv, UV_RUN_NOWAIT);
    return uv_loop_close(&loop->uv) == 0;
}
#endif

/* --- Both --------------------------------------------------------------------------------------------------------- */

struct test_loop *loop_new(void) {
    const char *wanted = getenv("EVLOCK_TEST_LOOP");
    struct test_loop *loop = calloc(1, sizeof(*loop));
    if (!loop)
        return NULL;
    if (!wanted || !*wanted || strcmp(wanted, "libevent") == 0) {
        event_loop_init(loop);
        return loop;
    }
#ifdef EVLOCK_TEST_LIBUV
    if (strcmp(wanted, "libuv") == 0) {
        uv_loop_begin(loop);
        return loop;
    }
#endif
    free(loop);
    return NULL;
}

const evlock_loop *loop_for_evlock(struct test_loop *loop) {
    return &loop->for_evlock;
}

void loop_turn(struct test_loop *loop) {
#ifdef EVLOCK_TEST_LIBUV
    if (!loop->base) {
        uv_run(&loop->uv, UV_RUN_ONCE);
        return;
    }
#endif
    event_base_loop(loop->base, EVLOOP_ONCE);
}

void loop_be_patient(struct test_loop *loop) {
    loop->patient = true;
#ifdef EVLOCK_TEST_LIBUV
    if (!loop->base) {
        uv_timer_stop(&loop->uv_tick);
        return;
    }
#endif
    event_del(loop->tick);
}

int loop_registrations(struct test_loop *loop) {
#ifdef EVLOCK_TEST_LIBUV
    if (!loop->base) {
        int count = 0;
        uv_walk(&loop->uv, uv_count, &count);
        return count - 1;
    }
#endif
    return event_base_get_num_events(loop->base, EVENT_BASE_COUNT_ADDED) - !loop->patient;
}

void loop_forked(struct test_loop *loop) {
#ifdef EVLOCK_TEST_LIBUV
    if (!loop->base) {
        uv_loop_fork(&loop->uv);
        return;
    }
#endif
    event_reinit(loop->base);
}

void loop_free(struct test_loop *loop) {
#ifdef EVLOCK_TEST_LIBUV
    if (!loop->base) {
        if (uv_loop_done(loop))
            free(loop);
        return;
    }
#endif
    event_loop_done(loop);
    free(loop);
}
