/* GET /NAME works for a second under the lock NAME, one request at a time, however many servers there are. */
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <evlock/libevent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static struct event_base *base;
static evlock_client *client; /* NULL when it has ended */

/* The end in any case: the work was done under the lock, or the lock was not had. */
static void on_done(int status, bool ran, void *request) {
    struct evhttp_connection *visitor = evhttp_request_get_connection(request);
    if (!visitor) { /* has left, and left the request to us */
        evhttp_request_free(request);
        return;
    }
    evhttp_connection_set_closecb(visitor, NULL, NULL);
    bufferevent_setwatermark(evhttp_connection_get_bufferevent(visitor), EV_READ, 0, 0);
    evhttp_send_reply(request, status == EVLOCK_OK ? HTTP_OK : HTTP_SERVUNAVAIL, evlock_strerror(status), NULL);
}

static void on_gone(struct evhttp_connection *visitor, void *lock) {
    evlock_cancel(lock); /* leaves the line; work that has begun goes on to its end */
}

static void on_worked(evutil_socket_t fd, short events, void *lock) {
    evlock_release(lock, NULL, NULL); /* ends the work */
}

/* The lock is held. The work begins here and ends later: a timer stands for it. */
static int work(evlock *lock, void *request) {
    return event_base_once(base, -1, EV_TIMEOUT, on_worked, lock, &(struct timeval){.tv_sec = 1}) != 0;
}

static void on_request(struct evhttp_request *request, void *arg) {
    struct evhttp_connection *visitor = evhttp_request_get_connection(request);
    struct bufferevent *stream = evhttp_connection_get_bufferevent(visitor);
    evlock *lock;
    int status = evlock_run(&lock, client, evhttp_request_get_uri(request), EVLOCK_CSTRING,
                            EVLOCK_OPTIONS(.auto_renewal = true, .wait = EVLOCK_WAIT_QUEUE, .max_wait_ms = 10000), work,
                            on_done, request);
    if (status != EVLOCK_OK) {
        on_done(status, false, request);
        return;
    }
    evhttp_connection_set_closecb(visitor, on_gone, lock);
    bufferevent_setwatermark(stream, EV_READ, SIZE_MAX, 4096); /* evhttp must not read on, but notice the end */
    bufferevent_enable(stream, EV_READ);
}

static void on_closed(int status, void *arg) {
    client = NULL;
    event_base_loopexit(base, &(struct timeval){.tv_usec = 100000}); /* time for the last answers to leave */
}

static void on_term(evutil_socket_t number, short events, void *arg) {
    evlock_client_close(client, on_closed, NULL); /* the waits end; work that has begun goes on to its end */
}

int main(int argc, char **argv) {
    base = event_base_new();
    struct evhttp *http = evhttp_new(base);
    evhttp_set_gencb(http, on_request, NULL);
    if (event_add(evsignal_new(base, SIGTERM, on_term, NULL), NULL) != 0 ||
        evhttp_bind_socket(http, "127.0.0.1", argc > 2 ? (ev_uint16_t)atoi(argv[2]) : 8080) != 0 ||
        evlock_client_new_libevent(&client, base, argc > 1 ? argv[1] : "redis://127.0.0.1",
                                   EVLOCK_CLIENT_OPTIONS(.on_log = evlock_log_stderr)) != EVLOCK_OK)
        return fprintf(stderr, "server: cannot start: %s\n", evlock_last_error()), 1;
    return event_base_dispatch(base) < 0;
}
