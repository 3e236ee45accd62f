/* Works for three seconds under the lock "invoices", which nobody else then has. Run: first redis://127.0.0.1 */
#include <event2/event.h>
#include <evlock/evlock.h>
#include <evlock/libevent.h>
#include <stdio.h>

static evlock_client *client;
static evlock *invoices;

static void on_end(evlock *lock, int status, void *work) {
    printf("end: %s\n", evlock_strerror(status));
    evlock_free(lock), event_free(work);
    evlock_client_close(client, NULL, NULL); /* with nothing left to wait for, the loop ends */
}
static void on_worked(evutil_socket_t fd, short events, void *work) {
    (void)fd, (void)events;
    evlock_release(invoices, on_end, work);
}
static void on_lost(evlock *lock, enum evlock_lost_reason reason, void *work) {
    printf("the work must stop: %s\n", evlock_lost_reason_string(reason));
    on_end(lock, EVLOCK_ELOST, work);
}
static void on_acquired(evlock *lock, int status, void *work) {
    printf("acquire: %s\n", evlock_strerror(status));
    if (status != EVLOCK_OK || event_add(work, &(struct timeval){.tv_sec = 3}) != 0)
        on_end(lock, status, work);
}
int main(int argc, char **argv) {
    struct event_base *base = event_base_new();
    struct event *work = evtimer_new(base, on_worked, event_self_cbarg());
    evlock_options options = EVLOCK_OPTIONS_INIT;
    options.ttl_ms = 2000, options.auto_renewal = 1, options.on_lost = on_lost, options.arg = work;
    int status = evlock_client_new(&client, evlock_libevent(base), argc > 1 ? argv[1] : "", NULL);
    if (status || (status = evlock_new(&invoices, client, "invoices", EVLOCK_CSTRING, &options)) ||
        (status = evlock_acquire(invoices, NULL, on_acquired, work)))
        on_end(invoices, status, work);
    event_base_dispatch(base);
    event_base_free(base);
    return status != EVLOCK_OK;
}
