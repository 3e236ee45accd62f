/*
 * The guard; see reply_guard.h. hiredis's reader makes every reply, and every element of one, by a table of functions.
 * Here is one that looks first, and otherwise hands on to hiredis's own. What it refuses to make hiredis takes for a
 * lack of memory, and ends the connection.
 */
#include "reply_guard.h"

#include <string.h>

#include <hiredis/async.h>

#include "memory.h"

enum {
    ELEMENTS = 4,               /* of an array, which answers nothing that is asked about locks */
    PUSH_ELEMENTS = 3,          /* of "message", its channel and its text; of "subscribe", its channel and a number */
    HEADER = 32,                /* of a string, in bytes: its length and the end of the line */
    LINE = 64 * 1024,           /* of what hiredis looks through anew, to find its end, whenever more has come */
    LONGEST = 16 * 1024 * 1024, /* of a string: a foreign value under a lock's key is the longest there is */
};

static void *reply_guard_refuse(struct reply_guard *guard, const char *why) {
    guard->refused = why;
    return NULL;
}

static bool reply_guard_same(const char *text, size_t len, const char *other, size_t other_len) {
    return len == other_len && memcmp(text, other, len) == 0;
}

/* Whether this may be the element of a push at its place; `text` is NULL if it is no string. */
static bool reply_guard_fits_push(struct reply_guard *guard, const redisReadTask *task, const char *text, size_t len) {
    bool string = text && task->type == REDIS_REPLY_STRING;

    switch (task->idx) {
    case 0:
        guard->message = string && reply_guard_same(text, len, "message", 7);
        return guard->message || (string && reply_guard_same(text, len, "subscribe", 9));
    case 1:
        return string && reply_guard_same(text, len, guard->channel, guard->channel_len);
    default:
        return guard->message ? string : task->type == REDIS_REPLY_INTEGER;
    }
}

static bool reply_guard_awaited(const struct reply_guard *guard) {
    return guard->connection->replies.head;
}

/* Whether this may be made: as an answer, or an element of one. hiredis itself ends a connection on an error that
 * nobody waits for, as which a full server greets. */
static bool reply_guard_fits(struct reply_guard *guard, const redisReadTask *task, const char *text, size_t len) {
    if (task->parent)
        return !guard->push || reply_guard_fits_push(guard, task, text, len);
    return reply_guard_awaited(guard) || task->type == REDIS_REPLY_ERROR;
}

static void *reply_guard_refuse_unfit(struct reply_guard *guard, const redisReadTask *task) {
    return reply_guard_refuse(guard, task->parent ? "a push of another shape than a message"
                                                  : "a reply that nobody asked for");
}

/* --- Short replies ------------------------------------------------------------------------------------------------ */

/* hiredis allocates each reply, and its text. Those to most commands are a number, nil or a status. One of these lies
 * in the guard. hiredis hands it on, and gives it back before it makes the next. */
struct short_reply {
    redisReply reply;
    char text[SHORT_REPLY_SIZE - sizeof(redisReply)];
};

_Static_assert(sizeof(struct short_reply) == SHORT_REPLY_SIZE, "there is room for a short reply");

/* What tells it from hiredis's: it has no elements. */
static redisReply *short_reply_mark[1];

/* Whether it may be made so: by itself, and where no sanitizer is to see each use of it after its end. */
static bool reply_guard_is_short(const redisReadTask *task, size_t len) {
    return !EVL_MEMORY_WATCHED && !task->parent && len < sizeof(((struct short_reply *)NULL)->text);
}

static redisReply *reply_guard_shorten(struct reply_guard *guard, int type) {
    struct short_reply *made = (struct short_reply *)(void *)guard->made;

    made->reply = (redisReply){.type = type, .element = short_reply_mark};
    return &made->reply;
}

static redisReply *reply_guard_shorten_status(struct reply_guard *guard, const char *text, size_t len) {
    redisReply *reply = reply_guard_shorten(guard, REDIS_REPLY_STATUS);

    reply->str = ((struct short_reply *)(void *)guard->made)->text;
    reply->len = len;
    memcpy(reply->str, text, len);
    reply->str[len] = '\0';
    return reply;
}

static void reply_guard_free(void *raw) {
    const redisReply *reply = raw;

    if (reply && reply->element != short_reply_mark)
        freeReplyObject(raw);
}

/* --- The table ---------------------------------------------------------------------------------------------------- */

static void *reply_guard_make_string(const redisReadTask *task, char *text, size_t len) {
    struct reply_guard *guard = task->privdata;

    if (!reply_guard_fits(guard, task, text, len))
        return reply_guard_refuse_unfit(guard, task);
    if (task->type == REDIS_REPLY_STATUS && reply_guard_is_short(task, len))
        return reply_guard_shorten_status(guard, text, len);
    return guard->plain->createString(task, text, len);
}

static void *reply_guard_make_integer(const redisReadTask *task, long long value) {
    struct reply_guard *guard = task->privdata;
    redisReply *reply;

    if (!reply_guard_fits(guard, task, NULL, 0))
        return reply_guard_refuse_unfit(guard, task);
    if (!reply_guard_is_short(task, 0))
        return guard->plain->createInteger(task, value);
    reply = reply_guard_shorten(guard, REDIS_REPLY_INTEGER);
    reply->integer = value;
    return reply;
}

static void *reply_guard_make_nil(const redisReadTask *task) {
    struct reply_guard *guard = task->privdata;

    if (!reply_guard_fits(guard, task, NULL, 0))
        return reply_guard_refuse_unfit(guard, task);
    return reply_guard_is_short(task, 0) ? reply_guard_shorten(guard, REDIS_REPLY_NIL) : guard->plain->createNil(task);
}

#if HIREDIS_MAJOR >= 1
typedef size_t element_count;
#else
typedef int element_count;
#endif

static void *reply_guard_make_array(const redisReadTask *task, element_count count) {
    struct reply_guard *guard = task->privdata;

    if (task->parent || task->type != REDIS_REPLY_ARRAY)
        return reply_guard_refuse(guard, "a reply of a kind that evlock never asks for");
    guard->push = !reply_guard_awaited(guard);
    if (guard->push && (!guard->channel || count != PUSH_ELEMENTS))
        return reply_guard_refuse(guard, "a reply that nobody asked for");
    if ((size_t)count > guard->elements)
        return reply_guard_refuse(guard, "a reply with too many elements");
    return guard->plain->createArray(task, count);
}

#if HIREDIS_MAJOR >= 1
static void *reply_guard_make_double(const redisReadTask *task, double value, char *text, size_t len) {
    (void)value, (void)text, (void)len;
    return reply_guard_refuse(task->privdata, "a reply of a kind that evlock never asks for");
}

static void *reply_guard_make_bool(const redisReadTask *task, int value) {
    (void)value;
    return reply_guard_refuse(task->privdata, "a reply of a kind that evlock never asks for");
}
#endif

static redisReplyObjectFunctions table = {
    .createString = reply_guard_make_string,
    .createArray = reply_guard_make_array,
    .createInteger = reply_guard_make_integer,
    .createNil = reply_guard_make_nil,
#if HIREDIS_MAJOR >= 1
    .createDouble = reply_guard_make_double,
    .createBool = reply_guard_make_bool,
#endif
    .freeObject = reply_guard_free,
};

/* ------------------------------------------------------------------------------------------------------------------ */

void evl_reply_guard_raise(struct reply_guard *guard, redisAsyncContext *connection) {
    redisReader *reader = connection->c.reader;

    memset(guard, 0, sizeof(*guard));
    guard->connection = connection;
    guard->plain = reader->fn;
    guard->elements = ELEMENTS;
    reader->fn = &table;
    reader->privdata = guard;
}

void evl_reply_guard_allow(struct reply_guard *guard, size_t elements) {
    guard->elements = elements;
}

void evl_reply_guard_listen(struct reply_guard *guard, const char *channel, size_t len) {
    guard->channel = channel;
    guard->channel_len = len;
}

/* Whether what is being read is a string whose length is known. */
static bool reply_guard_is_string(const redisReader *reader) {
#if HIREDIS_MAJOR >= 1
    const redisReadTask *task = reader->task[reader->ridx];
#else
    const redisReadTask *task = &reader->rstack[reader->ridx];
#endif

    return task->type == REDIS_REPLY_STRING && memchr(reader->buf + reader->pos, '\n', HEADER);
}

bool evl_reply_guard_overrun(struct reply_guard *guard) {
    const redisReader *reader = guard->connection->c.reader;
    size_t unread = reader->len - reader->pos;

    if (unread > LINE && (unread > LONGEST || !reply_guard_is_string(reader)))
        reply_guard_refuse(guard, "a reply without end");
    return guard->refused;
}
