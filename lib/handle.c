/* The handle's own; see handle.h. */
#include "handle.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "memory.h"

void evl_handle_unref(struct evlock *lock) {
    assert(lock->references > 0);
    if (--lock->references > 0)
        return;
    assert(!lock->tenure && !lock->calls && !lock->noticed);
    evl_config_unref(lock->config);
    evl_free(lock);
}

/* The label, or the name with unprintable bytes as \xXX, cut to what fits. */
static void handle_write_name(const struct evlock *lock, char *to, size_t size) {
    const char *label = lock->config->label, *prefix = lock->config->prefix;
    size_t skipped = prefix ? strlen(prefix) : 0;
    size_t len = label ? strlen(label) : lock->key_len - skipped;
    const unsigned char *name = label ? (const void *)label : (const void *)(lock->key + skipped);

    to[0] = '\0';
    for (size_t i = 0; i < len && size > 5; i++) {
        bool plain = isprint(name[i]) && (label || name[i] != '\\');
        int written = snprintf(to, size, plain ? "%c" : "\\x%02x", name[i]);
        to += written;
        size -= (size_t)written;
    }
}

void evl_handle_log_line(const struct evlock *lock, enum evlock_log_level level, const char *format, ...) {
    char name[96], words[192];
    va_list args;

    handle_write_name(lock, name, sizeof(name));
    va_start(args, format);
    vsnprintf(words, sizeof(words), format, args);
    va_end(args);
    evl_log(&evl_handle_turn(lock)->log, level, "%s: %s", name, words);
}

/* --- Invariants --------------------------------------------------------------------------------------------------- */
#ifdef EVL_CHECKS

/* There may be more references, of tenures that are ghosts and of calls that are ended. */
void evl_handle_check(const struct evlock *lock) {
    uint32_t own = !lock->freed + (lock->tenure != NULL) + lock->noticed;

    assert(lock->references >= own + (lock->calls != NULL));
    implies(lock->why, lock->noticed);
    implies(lock->lost, lock->why);
    implies(lock->freed, !lock->tenure && !lock->untold && !lock->why);
    implies(lock->untold, lock->tenure);
}

#endif
