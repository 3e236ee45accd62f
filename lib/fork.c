/*
 * Forks: how an object tells that it has been carried into a forked child. It owns a counter of the process. It never
 * touches the objects themselves.
 */
#include "fork.h"

#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool watching;
static uint32_t generation; /* written in the child handler alone, when the process has one thread */

static void in_child(void) {
    generation++;
}

static void watch(void) {
    watching = pthread_atfork(NULL, NULL, in_child) == 0;
}

uint32_t evl_fork_generation(void) {
    (void)pthread_once(&once, watch);
    /* Without memory for the handler the process's number serves as well, at the price of a system call. */
    return watching ? generation : (uint32_t)getpid();
}
