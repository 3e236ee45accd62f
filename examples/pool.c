/* 400 jobs over 50 locks, 8 at a time, on one client. */
#include <evlock/libevent.h>
#include <stdio.h>

enum { AT_ONCE = 8, LOCKS = 50, JOBS = 400 };
static struct event_base *base;
static evlock_client *client;
static int begun, running, failed;
static void begin_jobs(void);

static void on_done(int status, bool ran, void *arg) {
    running--;
    failed += status != EVLOCK_OK;
    begin_jobs();
}

static void on_worked(evutil_socket_t fd, short events, void *lock) {
    evlock_release(lock, NULL, NULL);
}

static int work(evlock *lock, void *arg) {
    return event_base_once(base, -1, EV_TIMEOUT, on_worked, lock, &(struct timeval){.tv_usec = 5000}) != 0;
}

static void begin_jobs(void) {
    for (; running < AT_ONCE && begun < JOBS; begun++) {
        char name[32];
        snprintf(name, sizeof name, "job/%d", begun % LOCKS);
        int status =
            evlock_run(NULL, client, name, EVLOCK_CSTRING, EVLOCK_OPTIONS(.max_wait_ms = 2000), work, on_done, NULL);
        running += status == EVLOCK_OK;
        failed += status != EVLOCK_OK;
    }
    if (running == 0)
        evlock_client_close(client, NULL, NULL); /* the loop ends when the client has ended */
}

int main(int argc, char **argv) {
    base = event_base_new();
    if (evlock_client_new_libevent(&client, base, argc > 1 ? argv[1] : "redis://127.0.0.1", NULL) != EVLOCK_OK)
        return fprintf(stderr, "pool: cannot start: %s\n", evlock_last_error()), 1;
    begin_jobs();
    event_base_dispatch(base);
    printf("%d of %d jobs done\n", JOBS - failed, JOBS);
    return failed != 0;
}
