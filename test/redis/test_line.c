/*
 * A long line: a thousand waiters in eight processes on one lock. Each is served once, in the order in which the server
 * has them in its queue, whoever else listens there.
 */
#include "harness.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES = 8, EACH = 125, WAITERS = PROCESSES * EACH, TOKEN = 36 };

/* Whom the lock was given to, in this order; shared by the processes. */
static struct book {
    _Atomic int served;
    char tokens[WAITERS][TOKEN];
} * book;

static struct waiter {
    evlock *lock;
    struct record record;
} waiters[EACH];

/* Writes itself down while it holds the lock: the next one comes behind it. */
static void take_turn(struct record *record) {
    struct waiter *waiter = record->then_arg;
    const void *token = evlock_token(waiter->lock, NULL);
    int place = atomic_fetch_add(&book->served, 1);

    if (record->status == EVLOCK_OK && token && place < WAITERS)
        memcpy(book->tokens[place], token, TOKEN);
    evlock_release(waiter->lock, NULL, NULL);
}

static evlock_options hardly_looks(void) {
    evlock_options options = with_ttl(4 * WAIT_MS);

    options.wait = EVLOCK_WAIT_QUEUE;
    options.retry_delay_ms = 10000;
    return options;
}

static bool all_were_served(void *arg) {
    (void)arg;
    for (int i = 0; i < EACH; i++)
        if (!waiters[i].record.count)
            return false;
    return true;
}

static bool is_closed(void *arg) {
    return ((const struct record *)arg)->count > 0;
}

/* 0: each of its waiters was told once that it has the lock. */
static int wait_in_line(const struct server *parents) {
    struct server server = *parents;
    struct fixture f;
    struct record closed = {0};
    evlock_options options = hardly_looks();

    server.side = NULL; /* the parent's */
    if (!fixture_init(&f, &server) || !client_new(&f, NULL, NULL))
        return 2;
    for (int i = 0; i < EACH; i++) {
        waiters[i].record = (struct record){.then = take_turn, .then_arg = &waiters[i]};
        waiters[i].lock = lock_new(&f, "a", &options);
        if (evlock_acquire(waiters[i].lock, NULL, record_end, &waiters[i].record) != EVLOCK_OK)
            return 3;
    }
    if (!run_until(&f, all_were_served, NULL, 3 * WAIT_MS))
        return 4;
    for (int i = 0; i < EACH; i++)
        if (waiters[i].record.count != 1 || waiters[i].record.status != EVLOCK_OK)
            return 5;
    if (evlock_client_close(f.client, record_closed, &closed) != EVLOCK_OK)
        return 6;
    client_forget(&f, f.client);
    if (!run_until(&f, is_closed, &closed, WAIT_MS) || closed.status != EVLOCK_OK)
        return 7;
    return fixture_free(&f) == 0 ? 0 : 8;
}

static void start(struct fixture *f, pid_t children[PROCESSES]) {
    book = mmap(NULL, sizeof(*book), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(book != MAP_FAILED);
    fflush(NULL);
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            alarm(4 * WAIT_MS / 1000);
            _exit(wait_in_line(f->server));
        }
    }
}

/* The tokens of those who wait, which end what the queue has for each, in the order of the queue. */
static redisReply *line_of(struct fixture *f) {
    redisReply *line = server_command(f->server, "ZRANGE {a}:queue 0 -1");

    assert_int_equal(line->type, REDIS_REPLY_ARRAY);
    assert_int_equal(line->elements, WAITERS);
    return line;
}

static void are_served_in_the_order_of(const redisReply *line) {
    assert_int_equal(book->served, WAITERS);
    for (size_t i = 0; i < WAITERS; i++)
        assert_memory_equal(book->tokens[i], line->element[i]->str + line->element[i]->len - TOKEN, TOKEN);
}

static void serve(struct fixture *f) {
    pid_t children[PROCESSES];
    evlock_options options = hardly_looks();

    server_do(f->server, "SET a held");
    start(f, children);
    await(f, server_integer(f->server, "ZCARD {a}:queue") == WAITERS);
    evlock *holder = lock_new_on(f, client_new(f, NULL, NULL), "a", &options);
    redisReply *line = line_of(f);
    assert_status(await_adopt(f, holder, "held", 4), EVLOCK_OK);
    assert_status(await_release(f, holder), EVLOCK_OK);
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        await(f, waitpid(children[i], &status, WNOHANG) == children[i]);
        assert_int_equal(status, 0);
    }
    are_served_in_the_order_of(line);
    freeReplyObject(line);
    assert_int_equal(server_integer(f->server, "DBSIZE"), 0);
    munmap(book, sizeof(*book));
}

static void a_thousand_are_served_once_and_in_order(void **state) {
    serve(*state);
}

/* PUBLISH counts them as if they were the waiters' own. */
static void also_while_somebody_listens_to_everything(void **state) {
    struct fixture *f = *state;
    redisContext *nosy = redisConnectUnix(f->server->socket);
    redisReply *reply = redisCommand(nosy, "PSUBSCRIBE *");

    assert_non_null(reply);
    freeReplyObject(reply);
    serve(f);
    redisFree(nosy);
}

/* Twenty thousand would ask five thousand times a second if each asked as often as who is near. */
static void who_is_far_back_looks_seldom(void **state) {
    struct fixture *f = *state;
    struct record near = {0}, far = {0};
    evlock_options options = with_ttl(4 * WAIT_MS);

    options.wait = EVLOCK_WAIT_QUEUE;
    options.retry_delay_ms = 10;
    evlock_client *client = client_new(f, NULL, NULL);
    evlock *first = lock_new_on(f, client, "a", &options), *last = lock_new_on(f, client, "b", &options);
    server_do(f->server, "SET a held");
    server_do(f->server, "SET b held");
    server_do(f->server, "EVAL %s 1 {b}:queue",
              "for i = 1, 20000 do redis.call('ZADD', KEYS[1], i, 'nobody ' .. i .. ' 1000 0 token') end");
    assert_status(evlock_acquire(first, NULL, record_end, &near), EVLOCK_OK);
    await(f, server_integer(f->server, "ZCARD {a}:queue") == 1);
    assert_status(evlock_acquire(last, NULL, record_end, &far), EVLOCK_OK);
    await(f, server_integer(f->server, "ZCARD {b}:queue") == 20001);
    server_do(f->server, "DEL a");
    await(f, near.count);
    assert_ended(&near, EVLOCK_OK);
    server_do(f->server, "CONFIG RESETSTAT");
    run_for(f, 5500); /* who is near has looked by then */
    assert_int_equal(server_calls(f->server, "evalsha"), 0);
    assert_status(evlock_cancel(last), EVLOCK_OK);
    await(f, far.count);
    await(f, server_integer(f->server, "ZCARD {b}:queue") == 20000);
    server_do(f->server, "FLUSHALL");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST_BARE(who_is_far_back_looks_seldom),
        TEST_BARE(a_thousand_are_served_once_and_in_order),
        TEST_BARE(also_while_somebody_listens_to_everything),
    };
    return run_suite("line", tests);
}
