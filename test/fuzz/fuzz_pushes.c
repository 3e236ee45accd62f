/*
 * Pushes: bytes in pieces of any size to a connection that listens to a channel, with answers pending or not, behind
 * the guard. Whatever they are, nothing comes through but answers that were asked for, and messages and confirmations
 * of that channel; and each question is answered once, if only by the connection's end.
 */
#include <stdbool.h>

#include <hiredis/async.h>

#include "input.h"
#include "reply_guard.h"
#include "world/socket.h"

static struct {
    unsigned asked, answered;
    bool ended;
} run;

static void on_answer(redisAsyncContext *connection, void *raw, void *arg) {
    const redisReply *reply = raw;

    (void)connection;
    check(arg == &run);
    run.answered++;
    if (reply && reply->type == REDIS_REPLY_ARRAY)
        for (size_t i = 0; i < reply->elements; i++)
            check(reply->element[i]->type != REDIS_REPLY_ARRAY);
}

static bool is(const redisReply *element, const char *text) {
    return element->type == REDIS_REPLY_STRING && strcmp(element->str, text) == 0;
}

static void on_push(redisAsyncContext *connection, void *raw, void *arg) {
    const redisReply *reply = raw;

    (void)connection;
    check(arg == &run);
    if (!reply)
        return;
    check(reply->type == REDIS_REPLY_ARRAY && reply->elements == 3);
    check(is(reply->element[1], "ch"));
    if (is(reply->element[0], "message"))
        check(reply->element[2]->type == REDIS_REPLY_STRING);
    else
        check(is(reply->element[0], "subscribe") && reply->element[2]->type == REDIS_REPLY_INTEGER);
}

static void on_end(const redisAsyncContext *connection, int status) {
    (void)connection, (void)status;
    run.ended = true;
}

static redisAsyncContext *open_connection(struct socket **ret_peer) {
    redisAsyncContext *connection;

    sockets_listen(0, true);
    connection = redisAsyncConnectUnix(SOCKETS_FOLDER "0");
    check(connection && !connection->err);
    *ret_peer = socket_of(connection->c.fd);
    return connection;
}

static void ask(redisAsyncContext *connection, unsigned count) {
    for (; count > 0; count--)
        run.asked += redisAsyncCommand(connection, on_answer, &run, "PING") == REDIS_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input input = {data, data + size};
    struct reply_guard guard;
    struct socket *peer;
    redisAsyncContext *connection = open_connection(&peer);

    memset(&run, 0, sizeof(run));
    redisAsyncSetDisconnectCallback(connection, on_end);
    evl_reply_guard_raise(&guard, connection);
    ask(connection, take_below(&input, 4));
    if (take_below(&input, 4) > 0) {
        evl_reply_guard_listen(&guard, "ch", 2);
        check(redisAsyncCommand(connection, on_push, &run, "SUBSCRIBE ch") == REDIS_OK);
    }
    redisAsyncHandleWrite(connection);
    while (input.at < input.end && !run.ended) {
        size_t len = take_byte(&input);
        const uint8_t *bytes = take_bytes(&input, &len);
        socket_put(peer, bytes, len);
        if (len > 0)
            redisAsyncHandleRead(connection);
    }
    if (!run.ended) {
        check(!guard.refused);
        redisAsyncFree(connection);
    }
    check(run.answered == run.asked);
    socket_end(peer);
    check(sockets_count() == 0);
    return 0;
}
