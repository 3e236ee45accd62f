/* The event loop of the fuzz targets; see loop.h. */
#include "loop.h"

#include <stdbool.h>
#include <sys/random.h>

#include <hiredis/async.h>

#include "input.h"
#include "world/chance.h"

/* Enough for any wait to end, and for many attempts; a run that only waits finds nothing more. */
enum { RINGS = 300 };

struct watch {
    TAILQ_ENTRY(watch) link;
    struct virtual_watch wants;
    struct loop *loop;
    redisAsyncContext *connection;
    struct socket *socket;
    bool done; /* in this turn */
};

/* --- Connections -------------------------------------------------------------------------------------------------- */

static void gone(void *owner) {
    struct watch *watch = owner;

    memset(&watch->connection->ev, 0, sizeof(watch->connection->ev));
    TAILQ_REMOVE(&watch->loop->watches, watch, link);
    free(watch);
}

static int attach(void *data, redisAsyncContext *connection) {
    struct loop *loop = ((struct virtual_loop *)data)->owner;
    struct watch *watch = calloc(1, sizeof(*watch));

    check(watch);
    watch->loop = loop;
    watch->connection = connection;
    watch->socket = socket_of(connection->c.fd);
    watch->done = true;
    virtual_watch_init(&watch->wants, &loop->common, connection, gone, watch);
    TAILQ_INSERT_TAIL(&loop->watches, watch, link);
    return 0;
}

static bool readable(const struct watch *watch) {
    return watch->wants.reads && socket_readable(watch->socket);
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
            watch->done = !watch->wants.writes;
            watch->wants.reads = false; /* hiredis asks again */
            evlock_on_readable(watch->connection);
        } else {
            watch->done = true;
            if (watch->wants.writes)
                evlock_on_writable(watch->connection);
        }
    }
}

/* ------------------------------------------------------------------------------------------------------------------ */

/* --- Chance, which is the same in each run of an input ------------------------------------------------------------ */

static uint64_t drawn; /* what tokens are made of */

static uint64_t next_random(void *data) {
    return chance_next(&((struct loop *)((struct virtual_loop *)data)->owner)->random);
}

/* In place of the C library's. */
ssize_t getrandom(void *bytes, size_t len, unsigned flags) {
    (void)flags;
    for (size_t i = 0; i < len; i++)
        ((unsigned char *)bytes)[i] = (unsigned char)chance_next(&drawn);
    return (ssize_t)len;
}

static const evlock_loop_ops ops = {
    VIRTUAL_OPS,
    .attach = attach,
    .random = next_random,
};

void loop_begin(struct loop *loop) {
    virtual_loop_init(&loop->common, NULL, loop);
    loop->common.now = INT64_C(1000000000);
    loop->random = drawn = 1;
    loop->rings = 0;
    TAILQ_INIT(&loop->watches);
}

evlock_loop loop_adapter(struct loop *loop) {
    return (evlock_loop){&ops, &loop->common};
}

static void ring(struct loop *loop) {
    struct virtual_timer *timer = virtual_timer_next(&loop->common);

    if (timer && timer->at <= loop->common.now)
        virtual_timer_ring(timer);
}

void loop_turn(struct loop *loop) {
    serve(loop);
    ring(loop);
}

static bool writing(const struct loop *loop) {
    const struct watch *watch;

    TAILQ_FOREACH (watch, &loop->watches, link)
        if (watch->wants.writes)
            return true;
    return false;
}

void loop_pass(struct loop *loop, int64_t us) {
    int64_t until = loop->common.now + us;
    struct virtual_timer *timer;

    serve(loop);
    for (int rings = 0; (timer = virtual_timer_next(&loop->common)) && timer->at <= until; rings++) {
        check(rings < 100000); /* a handler that asks to be called again and again at once would be found here */
        if (timer->at > loop->common.now) {
            if (loop->rings++ >= RINGS)
                return;
            loop->common.now = timer->at;
        }
        ring(loop);
        if (writing(loop)) /* nothing else can have become ready, since the server is not at work */
            serve(loop);
    }
    loop->common.now = until;
}

void loop_end(struct loop *loop) {
    check(TAILQ_EMPTY(&loop->common.timers));
    check(TAILQ_EMPTY(&loop->watches));
    check(sockets_count() == 0);
}
