/*
 * The floor of waiting: the least that takes turns. A script that takes the lock or a place in a list, one that
 * releases and hands on to the head of the list, and a channel for each process; no deadlines, no checks that anyone
 * listens, no way to leave. See turns.h.
 */
#include "turns.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "floor.h"

#include <hiredis/adapters/libevent.h>

static const char join_script[] = "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', 30000) then return 1 end "
                                  "redis.call('RPUSH', KEYS[2], ARGV[2]) return 0";
static const char release_script[] =
    "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end "
    "local head = redis.call('LPOP', KEYS[2]) if not head then return redis.call('DEL', KEYS[1]) end "
    "local channel, waiter, token = string.match(head, '(%S+) (%S+) (%S+)') "
    "redis.call('SET', KEYS[1], token, 'PX', 30000) redis.call('PUBLISH', channel, waiter) return 1";

static redisAsyncContext *commands, *messages;
static char channel[24], join_sha[41], release_sha[41];
static struct lease leases[WAITERS_MAX];
static size_t subscribed;

static void on_message(redisAsyncContext *connection, void *raw, void *arg) {
    const redisReply *reply = raw;

    (void)connection, (void)arg;
    if (!reply)
        return;
    CHECK(reply->type == REDIS_REPLY_ARRAY && reply->elements == 3, "a strange message");
    if (strcmp(reply->element[0]->str, "message") == 0)
        turn_granted(strtoul(reply->element[2]->str, NULL, 10));
    else
        subscribed = 1;
}

static void load(redisContext *connection, const char *script, char sha[41]) {
    redisReply *reply = redisCommand(connection, "SCRIPT LOAD %s", script);

    CHECK(reply && reply->type == REDIS_REPLY_STRING && reply->len == 40, "SCRIPT LOAD failed");
    memcpy(sha, reply->str, 41);
    freeReplyObject(reply);
}

static redisAsyncContext *attach(struct event_base *base) {
    redisAsyncContext *connection = redisAsyncConnectUnix(servers[0].socket);

    CHECK(connection && !connection->err && redisLibeventAttach(connection, base) == REDIS_OK, "no connection");
    return connection;
}

static void open_bare(struct event_base *base, size_t waiters) {
    redisContext *once = redisConnectUnix(servers[0].socket);

    (void)waiters;
    CHECK(once && !once->err, "no connection");
    load(once, join_script, join_sha);
    load(once, release_script, release_sha);
    redisFree(once);
    commands = attach(base);
    messages = attach(base);
    snprintf(channel, sizeof(channel), "bare:%ld", (long)getpid());
    redisAsyncCommand(messages, on_message, NULL, "SUBSCRIBE %s", channel);
    while (!subscribed)
        event_base_loop(base, EVLOOP_ONCE);
}

static void on_joined(redisAsyncContext *connection, void *raw, void *arg) {
    const redisReply *reply = raw;

    (void)connection;
    if (!reply)
        return;
    CHECK(reply->type == REDIS_REPLY_INTEGER, "the floor could not join: %s", reply->str);
    if (reply->integer == 1)
        turn_granted((size_t)((struct lease *)arg - leases));
}

static void acquire(size_t waiter) {
    char entry[80];

    floor_draw(&leases[waiter]);
    snprintf(entry, sizeof(entry), "%s %zu %s", channel, waiter, leases[waiter].token);
    redisAsyncCommand(commands, on_joined, &leases[waiter], "EVALSHA %s 2 lock lock:queue %s %s", join_sha,
                      leases[waiter].token, entry);
}

static void on_released(redisAsyncContext *connection, void *raw, void *arg) {
    (void)connection;
    if (!raw)
        return;
    floor_expect_one(raw);
    turn_released((size_t)((struct lease *)arg - leases));
}

static void release(size_t waiter) {
    redisAsyncCommand(commands, on_released, &leases[waiter], "EVALSHA %s 2 lock lock:queue %s", release_sha,
                      leases[waiter].token);
}

static void close_bare(void) {
    redisAsyncFree(messages);
    redisAsyncFree(commands);
}

const struct way bare = {"bare", "LLEN lock:queue", false, open_bare, acquire, release, close_bare};
