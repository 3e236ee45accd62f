/*
 * Secrets: bytes in pages of their own, which core dumps leave out and forked children find wiped, where the system can
 * do that. Who has one owns its pages, and wipes them. It knows nothing of what is in them, and never copies any.
 */
#ifndef EVL_SECRET_H
#define EVL_SECRET_H

#include <stdbool.h>
#include <stddef.h>

/* Zeroed: there is none. */
struct secret {
    char *bytes;
    size_t len;
    size_t room; /* of the pages */
};

/* An empty one with room for so many bytes; false: the system has no pages to give. */
bool evl_secret_make(struct secret *ret, size_t room);

/* Adds what can be read, until there is no more or no room for it; false: `errno` says why not. */
bool evl_secret_read(struct secret *secret, int fd);

/* Wipes it and gives its pages back; from then on there is none. */
void evl_secret_wipe(struct secret *secret);

#endif
