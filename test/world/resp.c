/*
 * RESP2; see resp.h. A command that came in part is parsed anew from its start when there is more of it: only the
 * lengths are looked at, so that this costs little.
 */
#include "resp.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "need.h"

/* --- Commands ----------------------------------------------------------------------------------------------------- */

void requests_add(struct requests *requests, const char *bytes, size_t len) {
    if (requests->start == requests->end)
        requests->start = requests->end = 0;
    if (requests->start > 0 && requests->end + len > requests->room) {
        memmove(requests->bytes, requests->bytes + requests->start, requests->end - requests->start);
        requests->end -= requests->start;
        requests->start = 0;
    }
    if (requests->end + len > requests->room) {
        requests->room = 2 * (requests->end + len);
        requests->bytes = need(realloc(requests->bytes, requests->room));
    }
    memcpy(requests->bytes + requests->end, bytes, len);
    requests->end += len;
}

static enum parsed wrong(struct requests *requests, const char *why) {
    snprintf(requests->wrong, sizeof(requests->wrong), "%s", why);
    return PARSED_WRONG;
}

/* The number in the line at *at, which is behind its type; moves *at behind the line. */
static enum parsed parse_length(struct requests *requests, size_t *at, int64_t max, const char *why, int64_t *ret) {
    char *line = requests->bytes + *at;
    const char *end = memchr(line, '\r', requests->end - *at);
    if (!end || end + 1 == requests->bytes + requests->end)
        return requests->end - *at > 64 ? wrong(requests, why) : PARSED_PART;
    if (!parse_integer(line, (size_t)(end - line), ret) || *ret > max)
        return wrong(requests, why);
    *at += (size_t)(end - line) + 2;
    return PARSED_COMMAND;
}

static void keep_argument(struct requests *requests, size_t at, size_t len) {
    if (requests->argc == requests->args_room) {
        requests->args_room = requests->args_room ? 2 * requests->args_room : 16;
        size_t room = (size_t)requests->args_room;
        requests->argv = need(realloc(requests->argv, room * sizeof(*requests->argv)));
        requests->lens = need(realloc(requests->lens, room * sizeof(*requests->lens)));
    }
    requests->argv[requests->argc] = requests->bytes + at;
    requests->lens[requests->argc++] = len;
}

static enum parsed parse_argument(struct requests *requests, size_t *at) {
    int64_t len;
    if (*at == requests->end)
        return PARSED_PART;
    if (requests->bytes[*at] != '$') {
        char why[] = "expected '$', got ' '";
        why[sizeof(why) - 3] = requests->bytes[*at];
        return wrong(requests, why);
    }
    (*at)++;
    enum parsed parsed = parse_length(requests, at, RESP_MAX_BULK, "invalid bulk length", &len);
    if (parsed != PARSED_COMMAND)
        return parsed;
    if (len < 0)
        return wrong(requests, "invalid bulk length");
    if (requests->end - *at < (size_t)len + 2)
        return PARSED_PART;
    keep_argument(requests, *at, (size_t)len);
    *at += (size_t)len + 2;
    return PARSED_COMMAND;
}

enum parsed requests_parse(struct requests *requests) {
    size_t at = requests->start;
    int64_t count = 0;
    requests->argc = 0;
    if (at == requests->end)
        return PARSED_PART;
    /* Redis takes a line without this for words typed by hand; no client of the simulation sends such. */
    if (requests->bytes[at] != '*')
        return wrong(requests, "expected an array");
    at++;
    enum parsed parsed = parse_length(requests, &at, RESP_MAX_ARGS, "invalid multibulk length", &count);
    for (int64_t i = 0; i < count && parsed == PARSED_COMMAND; i++)
        parsed = parse_argument(requests, &at);
    if (parsed != PARSED_COMMAND)
        return parsed;
    for (int i = 0; i < requests->argc; i++)
        requests->bytes[requests->argv[i] - requests->bytes + (ptrdiff_t)requests->lens[i]] = '\0';
    requests->start = at;
    return PARSED_COMMAND;
}

void requests_free(struct requests *requests) {
    free(requests->bytes);
    free(requests->argv);
    free(requests->lens);
}

bool parse_integer(const char *text, size_t len, int64_t *ret) {
    bool negative = len > 0 && text[0] == '-';
    size_t at = negative;
    uint64_t value = 0;
    if (len == 1 && text[0] == '0') {
        *ret = 0;
        return true;
    }
    if (at == len || text[at] < '1' || text[at] > '9')
        return false;
    for (; at < len; at++) {
        if (text[at] < '0' || text[at] > '9')
            return false;
        uint64_t digit = (uint64_t)(text[at] - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    if (value > (uint64_t)INT64_MAX + negative)
        return false;
    *ret = (int64_t)(negative ? 0 - value : value);
    return true;
}

/* --- Replies ------------------------------------------------------------------------------------------------------ */

void reply_raw(struct output *reply, const char *bytes, size_t len) {
    if (reply->len + len > reply->room) {
        reply->room = 2 * (reply->len + len) + 64;
        reply->bytes = need(realloc(reply->bytes, reply->room));
    }
    memcpy(reply->bytes + reply->len, bytes, len);
    reply->len += len;
}

static void text(struct output *reply, const char *string) {
    reply_raw(reply, string, strlen(string));
}

/* A line of its own: what would end it early becomes blanks. */
static void line(struct output *reply, char type, const char *bytes, size_t len) {
    reply_raw(reply, &type, 1);
    reply_raw(reply, bytes, len);
    for (char *c = reply->bytes + reply->len - len; c < reply->bytes + reply->len; c++) {
        if (*c == '\r' || *c == '\n')
            *c = ' ';
    }
    text(reply, "\r\n");
}

static void number(struct output *reply, char type, int64_t integer) {
    char digits[32], *at = digits + sizeof(digits);
    uint64_t rest = integer < 0 ? 0 - (uint64_t)integer : (uint64_t)integer;
    *--at = '\n';
    *--at = '\r';
    do
        *--at = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    if (integer < 0)
        *--at = '-';
    *--at = type;
    reply_raw(reply, at, (size_t)(digits + sizeof(digits) - at));
}

void reply_status(struct output *reply, const char *status, size_t len) {
    line(reply, '+', status, len);
}

void reply_error(struct output *reply, const char *format, ...) {
    char *error;
    va_list args;
    va_start(args, format);
    int len = vasprintf(&error, format, args);
    va_end(args);
    if (len < 0)
        abort();
    line(reply, '-', error, (size_t)len);
    free(error);
}

void reply_integer(struct output *reply, int64_t integer) {
    number(reply, ':', integer);
}

void reply_bulk(struct output *reply, const char *bytes, size_t len) {
    number(reply, '$', (int64_t)len);
    reply_raw(reply, bytes, len);
    text(reply, "\r\n");
}

void reply_double(struct output *reply, double number) {
    char digits[40];
    int len = snprintf(digits, sizeof(digits), "%.17g", number);
    reply_bulk(reply, digits, (size_t)len);
}

void reply_nil(struct output *reply) {
    text(reply, "$-1\r\n");
}

void reply_nil_array(struct output *reply) {
    text(reply, "*-1\r\n");
}

void reply_array(struct output *reply, size_t count) {
    number(reply, '*', (int64_t)count);
}

void reply_ok(struct output *reply) {
    text(reply, "+OK\r\n");
}

void reply_free(struct output *reply) {
    free(reply->bytes);
}
