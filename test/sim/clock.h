/*
 * A clock that is wrong: it runs at a rate of its own, in parts per million off the true one, which may change. It
 * steps only where it is told to.
 */
#ifndef EVLOCK_SIM_CLOCK_H
#define EVLOCK_SIM_CLOCK_H

#include <stdint.h>

struct clock {
    int64_t base; /* a true time, and what it read then */
    int64_t local;
    int64_t ppm;
};

static inline int64_t clock_read(const struct clock *clock, int64_t now) {
    int64_t passed = now - clock->base;
    return clock->local + passed + passed * clock->ppm / 1000000;
}

/* The first true moment at which it reads so much, which is not more than months away. */
static inline int64_t clock_when(const struct clock *clock, int64_t local) {
    int64_t when = clock->base + (local - clock->local) * 1000000 / (1000000 + clock->ppm);

    while (clock_read(clock, when) < local)
        when++;
    return when;
}

static inline void clock_change(struct clock *clock, int64_t now, int64_t ppm) {
    clock->local = clock_read(clock, now);
    clock->base = now;
    clock->ppm = ppm;
}

/* It is so much later at once; or, if negative, so much earlier. */
static inline void clock_step(struct clock *clock, int64_t by) {
    clock->local += by;
}

#endif
