/*
 * Folders for files that a test needs: each is new, where TMPDIR says, and goes with all that is in it. It owns none of
 * them.
 */
#ifndef EVLOCK_TEST_FOLDER_H
#define EVLOCK_TEST_FOLDER_H

#include <ftw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a folder's path: that of a socket in it must be short. */
#define FOLDER_SIZE 64

/* False: the system makes none, and `errno` says why. */
static inline bool folder_make(char path[FOLDER_SIZE]) {
    const char *base = getenv("TMPDIR");

    snprintf(path, FOLDER_SIZE, "%s/evlock-XXXXXX", base && strlen(base) < 40 ? base : "/tmp");
    return mkdtemp(path) != NULL;
}

static inline int folder_remove_entry(const char *path, const struct stat *stat, int type, struct FTW *at) {
    (void)stat, (void)type, (void)at;
    (void)remove(path);
    return 0;
}

/* With the folders in it. */
static inline void folder_remove(const char *path) {
    enum { OPEN = 8 }; /* at a time */

    (void)nftw(path, folder_remove_entry, OPEN, FTW_DEPTH | FTW_PHYS);
}

#endif
