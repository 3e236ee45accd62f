/*
 * The names of the locks beneath a prefix, gathered page by page, sorted, and each one once. It owns the names.
 */
#ifndef NAMES_H
#define NAMES_H

#include "session.h"

struct name {
    char *bytes; /* with a NUL behind them */
    size_t length;
};

struct names {
    struct session *session;
    char *prefix; /* that of the options, and what was asked for behind it */
    struct name *all;
    size_t count, room;
    size_t skipped; /* of each name: the options' prefix, which is said again by who asks */
    void (*cb)(struct names *names, void *arg);
    void (*failed)(int status, void *arg);
    void *arg;
};

/**
 * Begins to gather the names that begin with `prefix`, behind the prefix of the options; NULL: all. The caller has set
 * `session`, `cb`, which is called when they are there, `arg`, and `failed`, which is called where the server gives
 * none; NULL: the session ends then. It may be called again: all begins anew. Returns 0, or the exit status of an error
 * that was said.
 */
int names_gather(struct names *names, const char *prefix);

/** A name as it is said on the command line, without the options' prefix. */
evlock_string names_at(const struct names *names, size_t index);

/** Frees what it owns. */
void names_free(struct names *names);

#endif
