/* The event loop of the fuzz targets; see loop.h. */
#include "loop.h"

#include <stdbool.h>

#include <hiredis/async.h>

#include "input.h"
#include "system.h"

/* Enough for any wait to end, and for many attempts; a run that only waits finds nothing more. */
enum { RINGS = 300 };

struct timer {
    TAILQ_ENTRY(timer) link;
    struct loop *loop;
    evlock_timer_cb cb;
    void *arg;
    int64_t at;
};

struct watch {
    TAILQ_ENTRY(watch) link;
    struct loop *loop;
    redisAsyncContext *connection;
    bool reads, writes;
    bool done; /* in this turn */
};

/* --- Timers ------------------------------------------------------------------------------------------------------- */

static int64_t now(void *data) {
    return ((struct loop *)data)->now;
}

static void *timer_new(void *data, evlock_timer_cb cb, void *arg) {
    struct loop *loop = data;
    struct timer *timer = malloc(sizeof(*timer));

    check(timer);
    *timer = (struct timer){.loop = loop, .cb = cb, .arg = arg, .at = INT64_MAX};
    TAILQ_INSERT_TAIL(&loop->timers, timer, link);
    return timer;
}

static void timer_set(void *data, int64_t at) {
    ((struct timer *)data)->at = at;
}

static void timer_free(void *data) {
    struct timer *timer = data;

    TAILQ_REMOVE(&timer->loop->timers, timer, link);
    free(timer);
}

static struct timer *next_timer(struct loop *loop) {
    struct timer *timer, *next = NULL;

    TAILQ_FOREACH (timer, &loop->timers, link)
        if (!next || timer->at < next->at)
            next = timer;
    return next;
}

/* --- Connections -------------------------------------------------------------------------------------------------- */

static void add_read(void *data) {
    ((struct watch *)data)->reads = true;
}

static void del_read(void *data) {
    ((struct watch *)data)->reads = false;
}

static void add_write(void *data) {
    ((struct watch *)data)->writes = true;
}

static void del_write(void *data) {
    ((struct watch *)data)->writes = false;
}

static void cleanup(void *data) {
    struct watch *watch = data;

    watch->connection->ev.data = NULL;
    memset(&watch->connection->ev, 0, sizeof(watch->connection->ev));
    TAILQ_REMOVE(&watch->loop->watches, watch, link);
    free(watch);
}

static int attach(void *data, redisAsyncContext *connection) {
    struct loop *loop = data;
    struct watch *watch = calloc(1, sizeof(*watch));

    check(watch);
    watch->loop = loop;
    watch->connection = connection;
    watch->done = true;
    connection->ev.data = watch;
    connection->ev.addRead = add_read;
    connection->ev.delRead = del_read;
    connection->ev.addWrite = add_write;
    connection->ev.delWrite = del_write;
    connection->ev.cleanup = cleanup;
    TAILQ_INSERT_TAIL(&loop->watches, watch, link);
    return 0;
}

static bool readable(const struct watch *watch) {
    return watch->reads && system_readable(watch->connection->c.fd);
}

/* The next whose turn it is; handlers may end any. */
static struct watch *next_watch(struct loop *loop) {
    struct watch *watch;

    TAILQ_FOREACH (watch, &loop->watches, link)
        if (!watch->done)
            break;
    return watch;
}

static void serve(struct loop *loop) {
    struct watch *watch;

    TAILQ_FOREACH (watch, &loop->watches, link)
        watch->done = false;
    while ((watch = next_watch(loop))) {
        if (readable(watch)) {
            watch->done = !watch->writes;
            watch->reads = false; /* hiredis asks again */
            evlock_on_readable(watch->connection);
        } else {
            watch->done = true;
            if (watch->writes)
                evlock_on_writable(watch->connection);
        }
    }
}

/* ------------------------------------------------------------------------------------------------------------------ */

static uint64_t next_random(void *data) {
    struct loop *loop = data;

    loop->random = loop->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return loop->random >> 11;
}

static const evlock_loop_ops ops = {
    .size = sizeof(evlock_loop_ops),
    .now = now,
    .timer_new = timer_new,
    .timer_set = timer_set,
    .timer_free = timer_free,
    .attach = attach,
    .random = next_random,
};

void loop_begin(struct loop *loop) {
    loop->now = INT64_C(1000000000);
    loop->random = 1;
    loop->rings = 0;
    TAILQ_INIT(&loop->timers);
    TAILQ_INIT(&loop->watches);
}

evlock_loop loop_adapter(struct loop *loop) {
    return (evlock_loop){&ops, loop};
}

static void ring(struct loop *loop) {
    struct timer *timer = next_timer(loop);

    if (timer && timer->at <= loop->now) {
        timer->at = INT64_MAX;
        timer->cb(timer->arg);
    }
}

void loop_turn(struct loop *loop) {
    serve(loop);
    ring(loop);
}

static bool writing(const struct loop *loop) {
    const struct watch *watch;

    TAILQ_FOREACH (watch, &loop->watches, link)
        if (watch->writes)
            return true;
    return false;
}

void loop_pass(struct loop *loop, int64_t us) {
    int64_t until = loop->now + us;
    struct timer *timer;

    serve(loop);
    for (int rings = 0; (timer = next_timer(loop)) && timer->at <= until; rings++) {
        check(rings < 100000); /* a handler that asks to be called again and again at once would be found here */
        if (timer->at > loop->now) {
            if (loop->rings++ >= RINGS)
                return;
            loop->now = timer->at;
        }
        ring(loop);
        if (writing(loop)) /* nothing else can have become ready, since the server is not at work */
            serve(loop);
    }
    loop->now = until;
}

void loop_end(struct loop *loop) {
    check(TAILQ_EMPTY(&loop->timers));
    check(TAILQ_EMPTY(&loop->watches));
}
