/*
 * The clock of evlock's deadlines: it never steps and goes on in suspend. It owns nothing, and never answers from a
 * time that was read before.
 */
#include <time.h>

#include <evlock/loop.h>

int64_t evlock_clock_us(void) {
    struct timespec now;
    if (clock_gettime(CLOCK_BOOTTIME, &now) != 0)
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}
