/*
 * Which addresses evlock finds for a host name, by the resolver that it has on a loop: names libevent|libuv HOST. It
 * prints one a line, or the error.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <evlock/libevent.h>
#ifdef EVLOCK_TEST_LIBUV
#include <evlock/libuv.h>
#endif

#include "resolver.h"

static bool told;

static void tell(const char *const *addresses, size_t count, const char *error, void *arg) {
    (void)arg;
    for (size_t i = 0; i < count; i++)
        puts(addresses[i]);
    if (error)
        puts(error);
    told = true;
}

static bool ask(struct turn *turn, const char *host) {
    turn->process = evlock_process();
    if (evl_resolver_ask(turn, host, tell, NULL))
        return true;
    puts("it cannot be resolved");
    return false;
}

/* The thread that asked ends by itself, a moment after the answer. Until then the C library keeps memory for it, which
 * a leak checker takes for lost when the process ends in that moment. */
static void await_alone(void) {
    struct stat threads;

    while (stat("/proc/self/task", &threads) == 0 && threads.st_nlink > 2 + 1)
        usleep(1000);
}

static void run_libevent(const char *host) {
    struct event_base *base = event_base_new();
    struct turn turn = {.loop = evlock_libevent(base)};

    if (ask(&turn, host))
        while (!told)
            event_base_loop(base, EVLOOP_ONCE);
    await_alone();
    event_base_free(base);
}

static void run_libuv(const char *host) {
#ifdef EVLOCK_TEST_LIBUV
    struct turn turn = {.loop = evlock_libuv(uv_default_loop())};

    if (ask(&turn, host))
        uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    uv_loop_close(uv_default_loop());
#else
    (void)host;
#endif
}

/* What the C library keeps for a thread that asks is no leak: a sanitizer that looks on while such a thread ends does
 * not see any more who has it. The threads of libuv end behind main(). */
const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void) {
    return "leak:__res_context_send\n";
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    if (strcmp(argv[1], "libevent") == 0)
        run_libevent(argv[2]);
    else
        run_libuv(argv[2]);
    return 0;
}
