/* The floor's commands; see floor.h. */
#include "floor.h"

#include <hiredis/adapters/libevent.h>
#include <uuid/uuid.h>

#include <stdio.h>
#include <string.h>

#include "check.h"

/* As long in bytes as evlock's default, and enough for a million leases where instructions are counted. */
#define FLOOR_TTL "90000"

static char release_sha[41], renew_sha[41];

void key_write(char key[KEY_LEN + 1], size_t number) {
    snprintf(key, KEY_LEN + 1, "k%08u", (unsigned)number);
}

/* --- Connecting --------------------------------------------------------------------------------------------------- */

static void load(struct server *server, const char *script, char sha[41]) {
    redisReply *reply = server_command(server, "SCRIPT LOAD %s", script);
    CHECK(reply->type == REDIS_REPLY_STRING && reply->len == 40, "SCRIPT LOAD: %s", reply->str);
    memcpy(sha, reply->str, 41);
    freeReplyObject(reply);
}

void floor_load(struct server *server) {
    load(server, "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0",
         release_sha);
    load(server,
         "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0",
         renew_sha);
}

redisAsyncContext *floor_connect(struct event_base *base, struct server *server) {
    floor_load(server);
    redisAsyncContext *connection = redisAsyncConnectUnix(server->socket);
    CHECK(connection && !connection->err && redisLibeventAttach(connection, base) == REDIS_OK, "no connection");
    return connection;
}

void floor_draw(struct lease *lease) {
    uuid_t uuid;
    uuid_generate_random(uuid);
    uuid_unparse_lower(uuid, lease->token);
}

/* --- Commands ----------------------------------------------------------------------------------------------------- */

static char *put(char *to, const void *bytes, size_t len) {
    memcpy(to, bytes, len);
    return to + len;
}

#define PUT(to, literal) put((to), literal, sizeof(literal) - 1)

static void queue(redisAsyncContext *connection, const char *command, const char *end, redisCallbackFn *cb, void *arg) {
    CHECK(redisAsyncFormattedCommand(connection, cb, arg, command, (size_t)(end - command)) == REDIS_OK,
          "hiredis could not queue a command");
}

char *floor_put_acquire(char *to, const struct lease *lease) {
    to = PUT(to, "*6\r\n$3\r\nSET\r\n$9\r\n");
    to = put(to, lease->key, KEY_LEN);
    to = PUT(to, "\r\n$36\r\n");
    to = put(to, lease->token, TOKEN_LEN);
    return PUT(to, "\r\n$2\r\nNX\r\n$2\r\nPX\r\n$5\r\n" FLOOR_TTL "\r\n");
}

void floor_acquire(redisAsyncContext *connection, const struct lease *lease, redisCallbackFn *cb, void *arg) {
    char command[COMMAND_MAX];
    queue(connection, command, floor_put_acquire(command, lease), cb, arg);
}

static char *put_script(char *to, const char *sha, const struct lease *lease) {
    to = PUT(to, "$7\r\nEVALSHA\r\n$40\r\n");
    to = put(to, sha, 40);
    to = PUT(to, "\r\n$1\r\n1\r\n$9\r\n");
    to = put(to, lease->key, KEY_LEN);
    to = PUT(to, "\r\n$36\r\n");
    to = put(to, lease->token, TOKEN_LEN);
    return PUT(to, "\r\n");
}

char *floor_put_release(char *to, const struct lease *lease) {
    return put_script(PUT(to, "*5\r\n"), release_sha, lease);
}

void floor_release(redisAsyncContext *connection, const struct lease *lease, redisCallbackFn *cb, void *arg) {
    char command[COMMAND_MAX];
    queue(connection, command, floor_put_release(command, lease), cb, arg);
}

void floor_renew(redisAsyncContext *connection, const struct lease *lease, redisCallbackFn *cb, void *arg) {
    char command[COMMAND_MAX];
    char *end = put_script(PUT(command, "*6\r\n"), renew_sha, lease);
    end = PUT(end, "$5\r\n" FLOOR_TTL "\r\n");
    queue(connection, command, end, cb, arg);
}

void floor_ping(redisAsyncContext *connection, redisCallbackFn *cb, void *arg) {
    static const char command[] = "*1\r\n$4\r\nPING\r\n";
    queue(connection, command, command + sizeof(command) - 1, cb, arg);
}

/* --- Replies ------------------------------------------------------------------------------------------------------ */

static const char *words(const redisReply *reply) {
    return reply && reply->str ? reply->str : "none";
}

void floor_expect_ok(const void *raw) {
    const redisReply *reply = raw;
    CHECK(reply && reply->type == REDIS_REPLY_STATUS, "the floor was not granted: %s", words(reply));
}

void floor_expect_one(const void *raw) {
    const redisReply *reply = raw;
    CHECK(reply && reply->type == REDIS_REPLY_INTEGER && reply->integer == 1, "the floor's token was gone: %s",
          words(reply));
}
