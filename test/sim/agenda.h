/*
 * The agenda: what is to happen, by true time, and in the order of planning where the time is the same. It owns no
 * event, only the heap of pointers to them.
 */
#ifndef EVLOCK_SIM_AGENDA_H
#define EVLOCK_SIM_AGENDA_H

#include <stddef.h>
#include <stdint.h>

#define NEVER INT64_MAX

struct event {
    void (*happen)(void *arg);
    void *arg;
    int64_t at;
    uint64_t order;
    size_t place; /* in the heap, from 1; 0: not planned */
};

struct agenda {
    struct event **heap;
    size_t count, room;
    uint64_t order;
};

/* Plans an event, in place of when it was planned for; NEVER cancels it. */
void agenda_set(struct agenda *agenda, struct event *event, int64_t at);
/* Takes out the next event; NULL: nothing is left. */
struct event *agenda_next(struct agenda *agenda);
void agenda_clear(struct agenda *agenda);

#endif
