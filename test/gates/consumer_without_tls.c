/* A stranger's program, where evlock was built without TLS: what needs it is refused at once, and the rest works. */
#include <event2/event.h>
#include <evlock/evlock.h>
#include <evlock/libevent.h>

int main(void) {
    struct event_base *base = event_base_new();
    evlock_client *client = NULL;
    int over_tls = evlock_client_new_libevent(&client, base, "rediss://127.0.0.1:1", NULL);
    int plain = evlock_client_new_libevent(&client, base, "redis://127.0.0.1:1", NULL);

    evlock_client_free(client);
    event_base_free(base);
    return over_tls != EVLOCK_ESCHEME || plain != EVLOCK_OK;
}
