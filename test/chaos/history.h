/*
 * The history of a run: what the contending processes asked for, believed and complained of. It lives in memory that
 * they share with the program that started them, so a process that crashes leaves behind what it had written. It judges
 * nothing.
 */
#ifndef EVLOCK_TEST_CHAOS_HISTORY_H
#define EVLOCK_TEST_CHAOS_HISTORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../quorum/windows.h"

enum {
    WORKERS = 6,   /* processes at a time; one that has ended is replaced */
    STEADY = 2,    /* of these, the first ones never crash, and stay to the end */
    HANDS = 3,     /* locks that a process takes and gives back */
    HANDS_MAX = 6, /* of one that passes leases on */
    BELIEFS_MAX = 1 << 19,
    COMPLAINTS_MAX = 8,
};

/* What is asked of the library. */
enum operation {
    ACQUIRE,
    RELEASE,
    EXTEND,
    QUERY,
    ADOPT,
    CANCEL,
    FREE,
    CLOSE,
    OPERATIONS,
};

extern const char *const operation_names[OPERATIONS];

/* One lease, as its holder saw it. */
struct belief {
    struct window window; /* `until` is the deadline that the holder knows, and when it let go if that was earlier */
    int64_t called;       /* when the acquire was called */
    int name;
    bool over; /* the holder has let go */
};

/* What a process found wrong by itself. */
struct complaint {
    int64_t at;
    int name; /* -1: none in particular */
    char words[200];
};

/* What one process writes, and its successors after it. */
struct diary {
    int64_t operations[OPERATIONS];
    int64_t granted;
    int64_t lost;
    atomic_int passed;            /* of the granted, those that another hand of the process had */
    atomic_int served[HANDS_MAX]; /* grants since the faults have ended */
    atomic_bool retire;           /* written by the program: this process is to end in good order */
    atomic_size_t complaints_len;
    struct complaint complaints[COMPLAINTS_MAX];
    atomic_size_t beliefs_len;
    struct belief beliefs[BELIEFS_MAX];
};

enum phase {
    TROUBLED, /* anything may fail */
    CALM,     /* nothing fails any more */
};

struct history {
    int64_t began;
    atomic_int phase;
    struct diary diaries[WORKERS];
};

/* NULL when there is no memory. */
struct history *history_new(void);
void history_free(struct history *history);

/* A new belief, from `from` on and not yet beyond. */
struct belief *history_believe(struct diary *diary, int holder, int name, int64_t called, int64_t from, uint64_t fence);
/* The holder lets go at `now`, or has crashed then. */
void history_let_go(struct belief *belief, int64_t now);
/* All that a crashed process held ends at `now`. */
void history_crash(struct diary *diary, int64_t now);

void history_complain(struct diary *diary, int name, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
