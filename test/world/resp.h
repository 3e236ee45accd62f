/*
 * RESP2: the commands in what a client sent, and the replies that are written to it. Owns the bytes of both. It knows
 * neither commands nor keys.
 */
#ifndef EVLOCK_WORLD_RESP_H
#define EVLOCK_WORLD_RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- Commands ----------------------------------------------------------------------------------------------------- */

#define RESP_MAX_BULK (512 * 1024 * 1024)
#define RESP_MAX_ARGS (1024 * 1024)

struct requests {
    char *bytes;
    size_t start, end, room; /* what is not parsed yet is from `start` to `end` */
    const char **argv;       /* the last command; into `bytes`, each ended by a zero */
    size_t *lens;
    int argc, args_room;
    char wrong[48]; /* why the bytes are no commands */
};

enum parsed { PARSED_PART, PARSED_COMMAND, PARSED_WRONG };

void requests_add(struct requests *requests, const char *bytes, size_t len);
enum parsed requests_parse(struct requests *requests);
void requests_free(struct requests *requests);

/* --- Replies ------------------------------------------------------------------------------------------------------ */

struct output {
    char *bytes;
    size_t len, room;
};

void reply_raw(struct output *reply, const char *bytes, size_t len);
void reply_status(struct output *reply, const char *status, size_t len);
/* Without the '-'. A line end in it becomes blanks. */
void reply_error(struct output *reply, const char *format, ...) __attribute__((format(printf, 2, 3)));
void reply_integer(struct output *reply, int64_t integer);
void reply_bulk(struct output *reply, const char *bytes, size_t len);
void reply_double(struct output *reply, double number);
void reply_nil(struct output *reply);
void reply_nil_array(struct output *reply);
void reply_array(struct output *reply, size_t count);
void reply_ok(struct output *reply);
void reply_free(struct output *reply);

/* A number as Redis takes it: in decimal, of 64 bits, with nothing before or behind it. */
bool parse_integer(const char *text, size_t len, int64_t *ret);

#endif
