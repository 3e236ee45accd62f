/*
 * Which addresses evlock finds for a host name, by the resolver that it has on a loop: names libevent|libuv HOST. It
 * prints one a line, or the error, and ends with status 1 after an error.
 */
#include <stdio.h>
#include <string.h>

#include <evlock/libevent.h>
#ifdef EVLOCK_TEST_LIBUV
#include <evlock/libuv.h>
#endif

#include "resolver.h"

static bool told, found;

static void tell(const char *const *addresses, size_t count, const char *error, void *arg) {
    (void)arg;
    for (size_t i = 0; i < count; i++)
        puts(addresses[i]);
    if (error)
        puts(error);
    told = true;
    found = count > 0;
}

static bool ask(struct turn *turn, const char *host) {
    turn->process = evlock_process();
    if (evl_resolver_ask(turn, host, tell, NULL))
        return true;
    puts("it cannot be resolved");
    return false;
}

static void run_libevent(const char *host) {
    struct event_base *base = event_base_new();
    struct turn turn = {.loop = evlock_libevent(base)};

    if (ask(&turn, host))
        while (!told)
            event_base_loop(base, EVLOOP_ONCE);
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

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    if (strcmp(argv[1], "libevent") == 0)
        run_libevent(argv[2]);
    else
        run_libuv(argv[2]);
    return !found;
}
