/* What hiredis read; see reply_read.h. */
#include "reply_read.h"

#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

/* --- Answers ------------------------------------------------------------------------------------------------------ */

/* Seconds, and microseconds beside them, as two numbers; false: they are something else. */
static bool reply_read_time(const redisReply *from, int64_t *ret) {
    int64_t parts[2];
    char *end;

    if (from->elements != 2)
        return false;
    for (size_t i = 0; i < 2; i++) {
        if (from->element[i]->type != REDIS_REPLY_STRING)
            return false;
        parts[i] = strtoll(from->element[i]->str, &end, 10);
        if (*end || parts[i] < 0 || parts[i] > INT64_MAX / 4000000)
            return false;
    }
    *ret = parts[0] * 1000000 + parts[1];
    return true;
}

/* What an array says: a time, or words, for which there is room in `words`. */
static void reply_read_array(const redisReply *from, const char *words[REPLY_WORDS_MAX], struct reply *ret) {
    if (reply_read_time(from, &ret->integer)) {
        ret->type = REPLY_TIME;
        return;
    }
    if (from->elements > REPLY_WORDS_MAX)
        return;
    for (size_t i = 0; i < from->elements; i++) {
        if (from->element[i]->type != REDIS_REPLY_STRING)
            return;
        words[i] = from->element[i]->str;
    }
    ret->type = REPLY_WORDS;
    ret->words = words;
    ret->len = from->elements;
}

void evl_reply_read(redisReply *from, const char *words[REPLY_WORDS_MAX], struct reply *ret) {
    *ret = (struct reply){.type = REPLY_OTHER, .text = ""};
    switch (from->type) {
    case REDIS_REPLY_STATUS:
        ret->type = strcmp(from->str, "OK") == 0 ? REPLY_OK : REPLY_OTHER;
        break;
    case REDIS_REPLY_NIL:
        ret->type = REPLY_NIL;
        break;
    case REDIS_REPLY_INTEGER:
        ret->type = REPLY_INTEGER;
        ret->integer = from->integer;
        break;
    case REDIS_REPLY_STRING:
        ret->type = REPLY_STRING;
        ret->text = from->str;
        ret->len = (size_t)from->len;
        break;
    case REDIS_REPLY_ERROR:
        evl_reply_drop_quotes(from->str);
        *ret = evl_reply_of(from->str);
        break;
    case REDIS_REPLY_ARRAY:
        reply_read_array(from, words, ret);
        break;
    default:
        break;
    }
}

/* --- What is published -------------------------------------------------------------------------------------------- */

static bool reply_read_says(const redisReply *reply, const char *word) {
    return reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 && reply->element[0]->type == REDIS_REPLY_STRING &&
           strcmp(reply->element[0]->str, word) == 0;
}

bool evl_reply_read_is_confirmation(const redisReply *from) {
    return reply_read_says(from, "subscribe");
}

const char *evl_reply_read_message(const redisReply *from) {
    bool is = reply_read_says(from, "message") && from->element[2]->type == REDIS_REPLY_STRING;

    return is ? from->element[2]->str : NULL;
}
