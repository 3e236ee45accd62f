/*
 * The shield; see shield.h. hiredis's reader makes every reply, and every element of one, by a table of functions. Here
 * is one that looks first, and otherwise hands on to hiredis's own. What it refuses to make hiredis takes for a lack of
 * memory, and ends the connection.
 */
#include "shield.h"

#include <string.h>

#include <hiredis/async.h>

enum {
    ELEMENTS = 4,               /* of an array, which answers nothing that evlock asks */
    PUSH_ELEMENTS = 3,          /* of "message", its channel and its text; of "subscribe", its channel and a number */
    HEADER = 32,                /* of a string, in bytes: its length and the end of the line */
    LINE = 64 * 1024,           /* of what hiredis looks through anew, to find its end, whenever more has come */
    LONGEST = 16 * 1024 * 1024, /* of a string: a foreign value under a lock's key is the longest there is */
};

static void *refuse(struct shield *shield, const char *why) {
    shield->refused = why;
    return NULL;
}

static bool same(const char *text, size_t len, const char *other, size_t other_len) {
    return len == other_len && memcmp(text, other, len) == 0;
}

/* Whether this may be the element of a push at its place; `text` is NULL if it is no string. */
static bool fits_push(struct shield *shield, const redisReadTask *task, const char *text, size_t len) {
    bool string = text && task->type == REDIS_REPLY_STRING;

    switch (task->idx) {
    case 0:
        shield->message = string && same(text, len, "message", 7);
        return shield->message || (string && same(text, len, "subscribe", 9));
    case 1:
        return string && same(text, len, shield->channel, shield->channel_len);
    default:
        return shield->message ? string : task->type == REDIS_REPLY_INTEGER;
    }
}

static bool awaited(const struct shield *shield) {
    return shield->connection->replies.head;
}

/* Whether this may be made: as an answer, or an element of one. hiredis itself ends a connection on an error that
 * nobody waits for, as which a full server greets. */
static bool fits(struct shield *shield, const redisReadTask *task, const char *text, size_t len) {
    if (task->parent)
        return !shield->push || fits_push(shield, task, text, len);
    return awaited(shield) || task->type == REDIS_REPLY_ERROR;
}

static void *refuse_unfit(struct shield *shield, const redisReadTask *task) {
    return refuse(shield, task->parent ? "a push of another shape than a message" : "a reply that nobody asked for");
}

/* --- The table ---------------------------------------------------------------------------------------------------- */

static void *make_string(const redisReadTask *task, char *text, size_t len) {
    struct shield *shield = task->privdata;

    return fits(shield, task, text, len) ? shield->plain->createString(task, text, len) : refuse_unfit(shield, task);
}

static void *make_integer(const redisReadTask *task, long long value) {
    struct shield *shield = task->privdata;

    return fits(shield, task, NULL, 0) ? shield->plain->createInteger(task, value) : refuse_unfit(shield, task);
}

static void *make_nil(const redisReadTask *task) {
    struct shield *shield = task->privdata;

    return fits(shield, task, NULL, 0) ? shield->plain->createNil(task) : refuse_unfit(shield, task);
}

#if HIREDIS_MAJOR >= 1
typedef size_t element_count;
#else
typedef int element_count;
#endif

static void *make_array(const redisReadTask *task, element_count count) {
    struct shield *shield = task->privdata;

    if (task->parent || task->type != REDIS_REPLY_ARRAY)
        return refuse(shield, "a reply of a kind that evlock never asks for");
    shield->push = !awaited(shield);
    if (shield->push && (!shield->channel || count != PUSH_ELEMENTS))
        return refuse(shield, "a reply that nobody asked for");
    if (count > ELEMENTS)
        return refuse(shield, "a reply with too many elements");
    return shield->plain->createArray(task, count);
}

#if HIREDIS_MAJOR >= 1
static void *make_double(const redisReadTask *task, double value, char *text, size_t len) {
    (void)value, (void)text, (void)len;
    return refuse(task->privdata, "a reply of a kind that evlock never asks for");
}

static void *make_bool(const redisReadTask *task, int value) {
    (void)value;
    return refuse(task->privdata, "a reply of a kind that evlock never asks for");
}
#endif

static redisReplyObjectFunctions table = {
    .createString = make_string,
    .createArray = make_array,
    .createInteger = make_integer,
    .createNil = make_nil,
#if HIREDIS_MAJOR >= 1
    .createDouble = make_double,
    .createBool = make_bool,
#endif
    .freeObject = freeReplyObject,
};

/* ------------------------------------------------------------------------------------------------------------------ */

void evl_shield_raise(struct shield *shield, redisAsyncContext *connection) {
    redisReader *reader = connection->c.reader;

    memset(shield, 0, sizeof(*shield));
    shield->connection = connection;
    shield->plain = reader->fn;
    reader->fn = &table;
    reader->privdata = shield;
}

void evl_shield_listen(struct shield *shield, const char *channel, size_t len) {
    shield->channel = channel;
    shield->channel_len = len;
}

/* Whether what is being read is a string whose length is known. */
static bool is_string(const redisReader *reader) {
#if HIREDIS_MAJOR >= 1
    const redisReadTask *task = reader->task[reader->ridx];
#else
    const redisReadTask *task = &reader->rstack[reader->ridx];
#endif

    return task->type == REDIS_REPLY_STRING && memchr(reader->buf + reader->pos, '\n', HEADER);
}

bool evl_shield_overrun(struct shield *shield) {
    const redisReader *reader = shield->connection->c.reader;
    size_t unread = reader->len - reader->pos;

    if (unread > LINE && (unread > LONGEST || !is_string(reader)))
        refuse(shield, "a reply without end");
    return shield->refused;
}
