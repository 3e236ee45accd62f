/* What a fragment of the documents may take for granted: the includes, and the usual names. See snippets. */
#include <event2/event.h>
#include <event2/http.h>
#include <evlock/evlock.h>
#include <evlock/libevent.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern struct event_base *base;
extern evlock_client *client;
extern evlock *lock, *other;
extern evlock_options options;
extern evlock_client_options client_options;
extern pthread_t loop_thread;
extern void *arg;
extern const void *token;
extern size_t token_len;
extern const char *url;
extern int status;

extern void start_work(void), stop_work(void);
