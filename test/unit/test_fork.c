/*
 * Forks: the generation stays in a process and differs in its children.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fork.h"

/** Waits for a child that this process has forked, and gives its exit status. */
static int exit_status(pid_t child) {
    int status = -1;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

static void a_process_keeps_its_generation(void **state) {
    (void)state;
    uint32_t generation = evl_fork_generation();
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    assert_int_equal(exit_status(child), 0);
    assert_int_equal(evl_fork_generation(), generation);
}

static void a_child_and_a_grandchild_have_their_own(void **state) {
    (void)state;
    uint32_t first = evl_fork_generation();
    pid_t child = fork();
    if (child == 0) {
        uint32_t second = evl_fork_generation();
        pid_t grandchild = fork();
        if (grandchild == 0) {
            uint32_t third = evl_fork_generation();
            _exit(third != first && third != second ? 7 : 1);
        }
        _exit(second != first && exit_status(grandchild) == 7 && evl_fork_generation() == second ? 7 : 1);
    }
    assert_int_equal(exit_status(child), 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_keeps_its_generation),
        cmocka_unit_test(a_child_and_a_grandchild_have_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
