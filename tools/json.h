/*
 * Writes JSON, value by value. It owns where commas stand. It checks nothing that its caller can see: each thing that
 * is opened is closed, and values in an object have a key.
 */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/** Begin with {.out = stdout}. */
struct json {
    FILE *out;
    bool comma; /* the next value stands behind another */
};

/** Opens an object ('{') or an array ('['). `key` is NULL at the top and in an array, here and in what follows. */
void json_open(struct json *json, const char *key, char bracket);

/** Closes it ('}' or ']'). */
void json_close(struct json *json, char bracket);

/** Ends the line: behind each value at the top. What waits for it sees it now. */
void json_end(struct json *json);

/** A string of any bytes. Those that are no UTF-8 become U+FFFD. */
void json_bytes(struct json *json, const char *key, const void *bytes, size_t length);

/** A string. */
void json_text(struct json *json, const char *key, const char *text);

/** A number. */
void json_number(struct json *json, const char *key, int64_t number);

/** A fence: a number without a sign. */
void json_fence(struct json *json, const char *key, uint64_t fence);

/** True or false. */
void json_truth(struct json *json, const char *key, bool truth);

/** Null: there is none. */
void json_null(struct json *json, const char *key);

#endif
