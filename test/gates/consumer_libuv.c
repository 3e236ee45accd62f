/* A stranger's program on libuv, for the gates; see consumer.c. */
#include <evlock/evlock.h>
#include <evlock/libuv.h>
#include <stdio.h>
#include <uv.h>

int main(void) {
    evlock_client *client = NULL;
    int status = evlock_client_new_libuv(&client, uv_default_loop(), "no-url", NULL);
    puts(evlock_version());
    return status != EVLOCK_EURL || client;
}
