/*
 * Forks: how an object tells that it has been carried into a child process; see evlock_process(). A child does not do
 * it by a handler, since some ways to make one run none. The kernel wipes a page in it, whoever looks there first finds
 * nothing, and draws a number that none of its ancestors had: the counter is ordinary memory, and goes on in the child.
 * Who borrows the memory, as between vfork() and exec, finds the page as it was.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include <evlock/loop.h>

typedef _Atomic uint32_t number;

static number drawn;   /* the greatest number that this process or an ancestor has drawn */
static number unasked; /* 0: nobody has asked yet */
static number unwiped; /* 0: no page is wiped here */
static _Atomic(number *) mine = &unasked;
static uint32_t handled; /* without a page: forks that a handler was told of; written while there is one thread */

static void fork_in_child(void) {
    handled++;
}

/* A page that is wiped in children; NULL where there are none. Some emulators take any advice, and follow none. */
static number *fork_new_page(void) {
    void *page = mmap(NULL, sizeof(number), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        return NULL;
    if (madvise(page, sizeof(number), -1) != 0 && madvise(page, sizeof(number), MADV_WIPEONFORK) == 0)
        return page;
    (void)munmap(page, sizeof(number));
    return NULL;
}

/* Threads may come here together. A handler that is set for nothing counts what nobody reads. */
static number *fork_begin(void) {
    number *page = fork_new_page(), *found = &unasked;

    if (!page)
        (void)pthread_atfork(NULL, NULL, fork_in_child);
    if (atomic_compare_exchange_strong(&mine, &found, page ? page : &unwiped))
        return page ? page : &unwiped;
    if (page)
        (void)munmap(page, sizeof(number));
    return found;
}

/* Threads of a child may draw together; one of the numbers is the process's. */
static uint32_t fork_draw(number *page) {
    uint32_t next = atomic_fetch_add(&drawn, 1) + 1, found = 0;

    return atomic_compare_exchange_strong(page, &found, next) ? next : found;
}

/* The number of the process is of 22 bits at the most, and a child may have that of an ancestor that is gone. */
static uint32_t fork_without_page(void) {
    return handled << 22 | (uint32_t)getpid();
}

uint32_t evlock_process(void) {
    number *page = atomic_load_explicit(&mine, memory_order_acquire);
    uint32_t now = atomic_load_explicit(page, memory_order_relaxed);

    if (now)
        return now;
    if (page == &unasked)
        page = fork_begin();
    return page == &unwiped ? fork_without_page() : fork_draw(page);
}
