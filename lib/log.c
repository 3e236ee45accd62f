/* Log lines; see log.h. */
#include "log.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lock.h"

static bool wanted(const struct evlock_client *client, enum evlock_log_level level) {
    return client->config.on_log && (int)level >= client->config.log_level;
}

void evl_log(struct evlock_client *client, enum evlock_log_level level, const char *format, ...) {
    char line[256];
    va_list args;

    if (!wanted(client, level))
        return;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    for (char *c = line; *c; c++) /* a server's words may be of anything */
        *c = *c >= ' ' && *c <= '~' ? *c : '?';
    client->config.on_log(level, line, client->config.arg);
}

/* The label or the name, with unprintable bytes as \xXX, cut to what fits. */
static void write_name(const struct evlock *lock, char *to, size_t size) {
    const char *label = lock->config->label;
    size_t len = label ? strlen(label) : 0;
    const unsigned char *name = label ? (const void *)label : evlock_name(lock, &len);

    to[0] = '\0';
    for (size_t i = 0; i < len && size > 5; i++) {
        bool plain = isprint(name[i]) && (label || name[i] != '\\');
        int written = snprintf(to, size, plain ? "%c" : "\\x%02x", name[i]);
        to += written;
        size -= (size_t)written;
    }
}

void evl_log_lock(const struct evlock *lock, enum evlock_log_level level, const char *format, ...) {
    char name[96], words[192];
    va_list args;

    if (!wanted(client_of(lock), level))
        return;
    write_name(lock, name, sizeof(name));
    va_start(args, format);
    vsnprintf(words, sizeof(words), format, args);
    va_end(args);
    evl_log(client_of(lock), level, "%s: %s", name, words);
}
