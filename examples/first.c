/* Works for three seconds under the lock "invoices", which nobody else then has. Run: first redis://127.0.0.1 */
#include <event2/event.h>
#include <evlock/evlock.h>
#include <evlock/libevent.h>
#include <stdio.h>

static evlock_client *client;
static evlock *invoices;
static struct event *work;
static int result;

/* With nothing left to wait for, the loop ends. */
static void end(const char *what, int status) {
    printf("%s: %s\n", what, evlock_strerror(status));
    result = status;
    evlock_free(invoices);
    event_free(work);
    evlock_client_close(client, NULL, NULL);
}

/* The client goes on trying, until the acquire's wait ends. */
static void on_connection(evlock_client *c, enum evlock_connection state, int status, void *arg) {
    (void)c, (void)arg;
    if (state == EVLOCK_AWAY)
        fprintf(stderr, "no connection yet: %s: %s\n", evlock_strerror(status), evlock_last_error());
}

static void on_released(evlock *lock, int status, void *arg) {
    (void)lock, (void)arg;
    end("released", status);
}

static void on_worked(evutil_socket_t fd, short events, void *arg) {
    (void)fd, (void)events, (void)arg;
    evlock_release(invoices, on_released, NULL);
}

static void on_lost(evlock *lock, int reason, void *arg) {
    (void)lock, (void)arg;
    printf("the work must stop: %s\n", evlock_strerror(reason));
    end("lost", EVLOCK_ELOST);
}

static void on_acquired(evlock *lock, int status, void *arg) {
    (void)lock, (void)arg;
    if (status != EVLOCK_OK) {
        end("not acquired", status);
        return;
    }
    printf("acquired\n");
    event_add(work, &(struct timeval){.tv_sec = 3});
}

int main(int argc, char **argv) {
    const char *url = argc > 1 ? argv[1] : "redis://127.0.0.1";
    struct event_base *base = event_base_new();
    work = evtimer_new(base, on_worked, NULL);

    int status = evlock_client_new_libevent(
        &client, base, url, EVLOCK_CLIENT_OPTIONS(.connect_timeout_ms = 900, .on_connection = on_connection));
    if (status == EVLOCK_OK)
        status =
            evlock_new(&invoices, client, "invoices", EVLOCK_CSTRING,
                       EVLOCK_OPTIONS(.ttl_ms = 2000, .auto_renewal = true, .max_wait_ms = 10000, .on_lost = on_lost));
    if (status == EVLOCK_OK)
        status = evlock_acquire(invoices, NULL, on_acquired, NULL);
    if (status != EVLOCK_OK) {
        fprintf(stderr, "%s\n", evlock_last_error());
        end("not started", status);
    }

    event_base_dispatch(base);
    event_base_free(base);
    return result == EVLOCK_OK ? 0 : 1;
}
