/* A stranger's program, for the gates: what it is built from is what is checked. It is C and C++, asks no server, and
 * prints the version of the library that it runs on, if that is the one it was compiled with. */
#include <event2/event.h>
#include <evlock/evlock.h>
#include <evlock/libevent.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    struct event_base *base = event_base_new();
    evlock_client_options client_options;
    evlock_options options;
    evlock_client *client = NULL;
    evlock_options_init(&client_options, sizeof client_options);
    evlock_options_init(&options, sizeof options);
    int status = evlock_client_new_libevent(&client, base, "no-url", &client_options);
    event_base_free(base);
    if (status != EVLOCK_EURL || client || options.size != sizeof options)
        return 1;
    puts(evlock_version());
    return strcmp(evlock_version(), EVLOCK_VERSION_STRING) != 0;
}
