/* Works each second while it holds the lock "leader". On SIGTERM the next one leads at once. Run: leader [URL] */
#include <evlock/libevent.h>
#include <signal.h>
#include <stdio.h>

static struct event *second;

static void on_change(evlock *lock, int status, void *arg) {
    printf("%s\n", status == EVLOCK_OK ? "leading" : evlock_strerror(status));
}

static void on_second(evutil_socket_t fd, short events, void *lock) {
    if (evlock_is_held(lock))
        puts("work");
}

static void on_term(evutil_socket_t number, short events, void *client) {
    event_del(second);
    evlock_client_close(client, NULL, NULL); /* the loop ends when the client has ended */
}

int main(int argc, char **argv) {
    struct event_base *base = event_base_new();
    evlock_client *client;
    evlock *lock;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (evlock_client_new_libevent(&client, base, argc > 1 ? argv[1] : "redis://127.0.0.1", NULL) != EVLOCK_OK ||
        evlock_new(&lock, client, "leader", EVLOCK_CSTRING, EVLOCK_OPTIONS(.wait = EVLOCK_WAIT_QUEUE)) != EVLOCK_OK ||
        evlock_hold(lock, on_change, NULL) != EVLOCK_OK)
        return fprintf(stderr, "leader: cannot start: %s\n", evlock_last_error()), 1;
    second = event_new(base, -1, EV_PERSIST, on_second, lock);
    event_add(second, &(struct timeval){.tv_sec = 1});
    event_add(event_new(base, SIGTERM, EV_SIGNAL, on_term, client), NULL);
    return event_base_dispatch(base) < 0;
}
