/* Event loops in virtual time; see loop.h. */
#include "loop.h"

#include <stdlib.h>

#include <hiredis/async.h>

static void wake_owner(const struct virtual_loop *loop) {
    if (loop->wake)
        loop->wake(loop->owner);
}

void virtual_loop_init(struct virtual_loop *loop, void (*wake)(void *owner), void *owner) {
    *loop = (struct virtual_loop){.owner = owner, .wake = wake};
    TAILQ_INIT(&loop->timers);
}

int64_t virtual_now(void *loop) {
    return ((struct virtual_loop *)loop)->now;
}

int virtual_attach_nowhere(void *loop, struct redisAsyncContext *connection) {
    (void)loop;
    (void)connection;
    return 0;
}

/* --- Timers ------------------------------------------------------------------------------------------------------- */

void *virtual_timer_new(void *data, evlock_timer_cb cb, void *arg) {
    struct virtual_loop *loop = data;
    struct virtual_timer *timer = malloc(sizeof(*timer));

    if (!timer)
        return NULL;
    *timer = (struct virtual_timer){.loop = loop, .cb = cb, .arg = arg, .at = INT64_MAX};
    TAILQ_INSERT_TAIL(&loop->timers, timer, link);
    return timer;
}

void virtual_timer_set(void *data, int64_t at) {
    struct virtual_timer *timer = data;

    timer->at = at;
    wake_owner(timer->loop);
}

void virtual_timer_free(void *data) {
    struct virtual_timer *timer = data;

    TAILQ_REMOVE(&timer->loop->timers, timer, link);
    free(timer);
}

struct virtual_timer *virtual_timer_next(const struct virtual_loop *loop) {
    struct virtual_timer *timer, *next = NULL;

    TAILQ_FOREACH (timer, &loop->timers, link)
        if (timer->at < (next ? next->at : INT64_MAX))
            next = timer;
    return next;
}

void virtual_timer_ring(struct virtual_timer *timer) {
    timer->at = INT64_MAX;
    timer->cb(timer->arg);
}

/* --- Connections: hiredis's hooks --------------------------------------------------------------------------------- */

static void add_read(void *data) {
    struct virtual_watch *watch = data;

    watch->reads = true;
    wake_owner(watch->loop);
}

static void del_read(void *data) {
    ((struct virtual_watch *)data)->reads = false;
}

static void add_write(void *data) {
    struct virtual_watch *watch = data;

    watch->writes = true;
    wake_owner(watch->loop);
}

static void del_write(void *data) {
    ((struct virtual_watch *)data)->writes = false;
}

static void cleanup(void *data) {
    const struct virtual_watch *watch = data;

    watch->gone(watch->owner);
}

void virtual_watch_init(struct virtual_watch *watch, struct virtual_loop *loop, struct redisAsyncContext *connection,
                        void (*gone)(void *owner), void *owner) {
    *watch = (struct virtual_watch){.loop = loop, .owner = owner, .gone = gone};
    connection->ev.data = watch;
    connection->ev.addRead = add_read;
    connection->ev.delRead = del_read;
    connection->ev.addWrite = add_write;
    connection->ev.delWrite = del_write;
    connection->ev.cleanup = cleanup;
}
