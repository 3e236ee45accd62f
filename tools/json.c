/* Writes JSON, value by value. */
#include <inttypes.h>
#include <string.h>

#include "json.h"

static void json_string(FILE *out, const unsigned char *bytes, size_t length);

/* What stands in front of each value. */
static void json_begin(struct json *json, const char *key) {
    if (json->comma)
        fputs(", ", json->out);
    json->comma = true;
    if (key) {
        json_string(json->out, (const unsigned char *)key, strlen(key));
        fputs(": ", json->out);
    }
}

void json_open(struct json *json, const char *key, char bracket) {
    json_begin(json, key);
    fputc(bracket, json->out);
    json->comma = false;
}

void json_close(struct json *json, char bracket) {
    fputc(bracket, json->out);
    json->comma = true;
}

void json_end(struct json *json) {
    fputc('\n', json->out);
    fflush(json->out);
    json->comma = false;
}

/* How many bytes the character at `bytes` has; 0 if it is no UTF-8: cut off, too long for its value, or a surrogate. */
static size_t json_character(const unsigned char *bytes, size_t length) {
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = bytes[0];
    if (first < 0x80)
        return 1;
    size_t size = first >= 0xf8 ? 0 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 0;
    if (size == 0 || size > length)
        return 0;
    unsigned value = first & (0xffU >> (size + 1));
    for (size_t i = 1; i < size; i++) {
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
        value = value << 6 | (bytes[i] & 0x3f);
    }
    bool surrogate = value >= 0xd800 && value < 0xe000;
    return value < least[size] || value > 0x10ffff || surrogate ? 0 : size;
}

static void json_string(FILE *out, const unsigned char *bytes, size_t length) {
    fputc('"', out);
    for (size_t i = 0; i < length;) {
        size_t size = json_character(bytes + i, length - i);
        if (size == 0)
            fputs("\\ufffd", out);
        else if (bytes[i] == '"' || bytes[i] == '\\')
            fprintf(out, "\\%c", bytes[i]);
        else if (bytes[i] < 0x20 || bytes[i] == 0x7f)
            fprintf(out, "\\u%04x", bytes[i]);
        else
            fwrite(bytes + i, 1, size, out);
        i += size ? size : 1;
    }
    fputc('"', out);
}

void json_bytes(struct json *json, const char *key, const void *bytes, size_t length) {
    json_begin(json, key);
    json_string(json->out, bytes, length);
}

void json_text(struct json *json, const char *key, const char *text) {
    json_bytes(json, key, text, strlen(text));
}

void json_number(struct json *json, const char *key, int64_t number) {
    json_begin(json, key);
    fprintf(json->out, "%" PRId64, number);
}

void json_fence(struct json *json, const char *key, uint64_t fence) {
    json_begin(json, key);
    fprintf(json->out, "%" PRIu64, fence);
}

void json_truth(struct json *json, const char *key, bool truth) {
    json_begin(json, key);
    fputs(truth ? "true" : "false", json->out);
}

void json_null(struct json *json, const char *key) {
    json_begin(json, key);
    fputs("null", json->out);
}
