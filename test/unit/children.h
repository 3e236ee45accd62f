/*
 * The ways to make a child that has a copy of the memory: by fork(), and by those that run no handler of
 * pthread_atfork(). It owns nothing; the child is its maker's, to wait for.
 */
#ifndef EVLOCK_TEST_CHILDREN_H
#define EVLOCK_TEST_CHILDREN_H

#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline pid_t child_by_fork(void) {
    return fork();
}

static inline pid_t child_by_clone(void) {
    return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

#ifdef __GLIBC__
#if __GLIBC_PREREQ(2, 34)
#define EVLOCK_TEST_HAS_BARE_FORK
static inline pid_t child_by_bare_fork(void) {
    return _Fork();
}
#endif
#endif

static pid_t (*const child_kinds[])(void) = {
    child_by_fork,
    child_by_clone,
#ifdef EVLOCK_TEST_HAS_BARE_FORK
    child_by_bare_fork,
#endif
};

enum { CHILD_KINDS = sizeof(child_kinds) / sizeof(child_kinds[0]) };

#endif
