/*
 * Several URLs as one string, the way a client takes them. It owns the text that it puts together, and no server.
 */
#ifndef EVLOCK_TEST_URLS_H
#define EVLOCK_TEST_URLS_H

#include <stddef.h>
#include <stdio.h>

struct urls {
    char text[4096];
};

/* The URLs behind the word for several. */
static inline struct urls urls_joined(const char *const *urls, size_t count) {
    struct urls joined = {"quorum:"};
    size_t len = sizeof("quorum:") - 1;

    for (size_t i = 0; i < count && len < sizeof(joined.text); i++)
        len += (size_t)snprintf(joined.text + len, sizeof(joined.text) - len, "%s%s", i ? " " : "", urls[i]);
    return joined;
}

#endif
