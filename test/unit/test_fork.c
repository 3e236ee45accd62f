/*
 * Forks: a process keeps its number, and each child has another, whatever made it; what only borrows the memory is no
 * child. All of it twice: where the kernel wipes a page in children, and where it does not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <evlock/loop.h>

#include "children.h"

enum { THREADS = 2, ROUNDS = 100 };

/* --- How the kernel takes advice ---------------------------------------------------------------------------------- */

static enum { HONEST, REFUSES, LIES } kernel;

static int advise(void *start, size_t len, int advice) {
    if (kernel == REFUSES)
        errno = EINVAL;
    return kernel == LIES ? 0 : kernel == REFUSES ? -1 : (int)syscall(SYS_madvise, start, len, advice);
}

/* In place of the C library's. */
int replaced_madvise(void *start, size_t len, int advice) __asm__("madvise");
int replaced_madvise(void *start, size_t len, int advice) {
    return advise(start, len, advice);
}

/* --- Children -------------------------------------------------------------------------------------------- */

/** Waits for a child of this process, and gives its exit status. */
static int exit_status(pid_t child) {
    int status = -1;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

/** Runs `body` in a new child of a kind; what it returns. */
static int in_child(pid_t (*kind)(void), int (*body)(void)) {
    pid_t child = kind();
    if (child == 0)
        _exit(body());
    return exit_status(child);
}

/* --- What is to be seen, as numbers: 0 is well -------------------------------------------------------------------- */

static uint32_t numbers[4]; /* of the process and those that it descends from */
static unsigned generations;

/* It has a number of its own and keeps it; what its children do is seen by their exit. */
static int has_its_own(void) {
    uint32_t mine = evlock_process();
    for (unsigned i = 0; i < generations; i++)
        if (numbers[i] == mine)
            return 1;
    numbers[generations++] = mine;
    for (unsigned i = 0; i < CHILD_KINDS && generations < 3; i++) /* a grandchild, too */
        if (in_child(child_kinds[i], has_its_own) != 0)
            return 2;
    return evlock_process() == mine ? 0 : 3;
}

static int siblings(void) {
    uint32_t mine = evlock_process();
    for (int round = 0; round < 3; round++)
        for (unsigned i = 0; i < CHILD_KINDS; i++)
            if (in_child(child_kinds[i], has_its_own) != 0 || evlock_process() != mine)
                return 10 + (int)i;
    return 0;
}

static atomic_int ready;
static uint32_t first_seen[THREADS];

/* They wait awake, so as to go in the same instant where the machine has a core for each. */
static void *look(void *at) {
    ready++;
    while (ready < THREADS)
        ;
    *(uint32_t *)at = evlock_process();
    return NULL;
}

/* Threads that look for the first time together see one number, and not the parent's. */
static int threads_agree(void) {
    pthread_t threads[THREADS];
    ready = 0;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, look, &first_seen[i]) != 0)
            return 20;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        if (first_seen[i] != evlock_process() || (generations && first_seen[i] == numbers[0]))
            return 21;
    return 0;
}

static int threads_of_children_agree(void) {
    numbers[0] = evlock_process();
    generations = 1;
    for (int round = 0; round < ROUNDS; round++)
        if (in_child(child_by_fork, threads_agree) != 0)
            return 22;
    return 0;
}

static void *fork_elsewhere(void *result) {
    *(int *)result = siblings();
    return NULL;
}

static int forks_of_another_thread_are_seen(void) {
    int result = -1;
    pthread_t thread;
    numbers[0] = evlock_process();
    generations = 1;
    if (pthread_create(&thread, NULL, fork_elsewhere, &result) != 0)
        return 30;
    pthread_join(thread, NULL);
    return result;
}

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* They share the memory until they run another program. */
static int borrowers_are_no_children(void) {
    uint32_t mine = evlock_process();
    char *const args[] = {(char[]){"true"}, NULL};
    volatile uint32_t seen = 0;
    pid_t child = vfork();
    if (child == 0) {
        seen = evlock_process();
        _exit(0);
    }
    if (exit_status(child) != 0 || evlock_process() != mine)
        return 40;
    if (posix_spawnp(&child, "true", NULL, NULL, args, NULL) != 0 || exit_status(child) != 0)
        return 41;
    (void)seen; /* what a borrower asks itself is nobody's business */
    return evlock_process() == mine ? 0 : 42;
}

/* --- In processes that have not asked before, one for each kernel ------------------------------------------------- */

static int everything(void) {
    static int (*const parts[])(void) = {siblings, threads_of_children_agree, forks_of_another_thread_are_seen,
                                         borrowers_are_no_children};
    int failed = threads_agree(); /* its first look */
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && !failed; i++) {
        generations = 0;
        numbers[generations++] = evlock_process();
        failed = parts[i]();
    }
    return failed;
}

CASE(children_are_told_apart) {
    kernel = HONEST;
    assert_int_equal(in_child(child_by_fork, everything), 0);
}

CASE(children_are_told_apart_without_the_kernels_help) {
    kernel = REFUSES;
    assert_int_equal(in_child(child_by_fork, everything), 0);
}

/* Some emulators take any advice and follow none. */
CASE(children_are_told_apart_where_advice_is_taken_in_vain) {
    kernel = LIES;
    assert_int_equal(in_child(child_by_fork, everything), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_are_told_apart),
        cmocka_unit_test(children_are_told_apart_without_the_kernels_help),
        cmocka_unit_test(children_are_told_apart_where_advice_is_taken_in_vain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
