/* The resolver; see resolver.h. */
#include "resolver.h"

#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "check.h"

/* Bytes: room for what modules of NSS put there, and for the variables that a program has for each thread. What nobody
 * touches is no memory, unless the program has locked all of its own: the 8 MiB of a usual stack would be many then. */
#define STACK ((size_t)1 << 20)

/* The rest of a name's addresses is left out: nobody waits for so many to be tried. */
#define ADDRESSES_MAX 16

/*
 * A question belongs to the loop's thread, and to its own thread until that has an answer. Whoever leaves it last frees
 * it. When the loop's leaves first, it takes the timer along: then there is nobody to be woken. The mutex is held for
 * the moment in which one of them leaves, and never while anything is waited for.
 *
 * Its memory is malloc()'s. A thread may end when the user's allocator, or what that allocates from, is gone.
 */
struct question {
    pthread_mutex_t mutex; /* over the next two; in a child it may look held, so it is never destroyed */
    void *timer;           /* rings in the loop's thread when there is an answer; NULL: the loop's thread has left */
    bool answered;         /* its own thread has left */
    const evlock_loop_ops *ops;
    evlock_resolve_cb cb; /* the loop's thread's alone, as what it is handed */
    void *arg;
    struct addrinfo *found; /* its own thread's, and the loop's when it is answered; as the next two */
    int error;              /* of getaddrinfo(); */
    int system_error;       /* and errno, of EAI_SYSTEM */
    char host[];
};

static void resolver_free(struct question *question) {
    if (question->found)
        freeaddrinfo(question->found);
    free(question);
}

/* --- In its own thread -------------------------------------------------------------------------------------------- */

/* Both families are asked for, whatever addresses this machine has: an unreachable one fails at once when it is tried.
 */
static void *resolver_run(void *arg) {
    static const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct question *question = arg;
    bool alone;

    question->error = getaddrinfo(question->host, NULL, &hints, &question->found);
    question->system_error = errno;
    (void)pthread_mutex_lock(&question->mutex);
    question->answered = true;
    alone = !question->timer;
    if (!alone)
        question->ops->timer_set(question->timer, 0);
    (void)pthread_mutex_unlock(&question->mutex);
    if (alone)
        resolver_free(question);
    return NULL;
}

/* Signals are the program's, which does not know of this thread. Nobody joins it, as that would be waiting. */
static bool resolver_start(struct question *question) {
    pthread_attr_t attributes;
    sigset_t all, before;
    pthread_t thread;
    int status;

    if (pthread_attr_init(&attributes) != 0)
        return false;
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&attributes, STACK);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    status = pthread_create(&thread, &attributes, resolver_run, question);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    return status == 0;
}

/* --- In the loop's ------------------------------------------------------------------------------------------------ */

/* Whether it is answered. If not, its own thread may have freed it by now. */
static bool resolver_leave(struct question *question) {
    const evlock_loop_ops *ops = question->ops;
    void *timer = question->timer;
    bool answered;

    (void)pthread_mutex_lock(&question->mutex);
    question->timer = NULL;
    answered = question->answered;
    (void)pthread_mutex_unlock(&question->mutex);
    ops->timer_free(timer);
    return answered;
}

static void resolver_tell(const struct question *question) {
    char texts[ADDRESSES_MAX][INET6_ADDRSTRLEN + 1 + IF_NAMESIZE];
    const char *addresses[ADDRESSES_MAX], *error = "the name has no address";
    size_t count = 0;

    for (const struct addrinfo *found = question->found; found && count < ADDRESSES_MAX; found = found->ai_next)
        if (getnameinfo(found->ai_addr, found->ai_addrlen, texts[count], sizeof(texts[count]), NULL, 0,
                        NI_NUMERICHOST) == 0) {
            addresses[count] = texts[count];
            count++;
        }
    if (question->error == EAI_SYSTEM)
        error = strerror(question->system_error);
    else if (question->error)
        error = gai_strerror(question->error);
    question->cb(addresses, count, count > 0 ? NULL : error, question->arg);
}

static void resolver_on_timer(void *arg) {
    struct question *question = arg;
    bool answered = resolver_leave(question);

    assert(answered); /* nobody else sets the timer */
    (void)answered;
    resolver_tell(question);
    resolver_free(question);
}

static struct question *resolver_new(struct turn *turn, const char *host, evlock_resolve_cb cb, void *arg) {
    size_t size = strlen(host) + 1;
    struct question *question = calloc(1, sizeof(*question) + size);

    if (!question)
        return NULL;
    (void)pthread_mutex_init(&question->mutex, NULL);
    question->ops = turn->loop.ops;
    question->cb = cb;
    question->arg = arg;
    memcpy(question->host, host, size);
    question->timer = question->ops->timer_new(turn->loop.data, resolver_on_timer, question);
    if (question->timer)
        return question;
    resolver_free(question);
    return NULL;
}

static void *resolver_ask_system(struct turn *turn, const char *host, evlock_resolve_cb cb, void *arg) {
    struct question *question = resolver_new(turn, host, cb, arg);

    if (!question || resolver_start(question))
        return question;
    question->ops->timer_free(question->timer);
    resolver_free(question);
    return NULL;
}

/* In a forked child its own thread does not exist, and may have held the mutex when it was last seen. */
static void resolver_forget(struct turn *turn, struct question *question) {
    if (!evl_turn_forked(turn)) {
        if (resolver_leave(question))
            resolver_free(question);
        return;
    }
    question->ops->timer_free(question->timer);
    resolver_free(question);
}

/* --- Whose resolver it is ----------------------------------------------------------------------------------------- */

bool evl_resolver_exists(const struct turn *turn) {
    return turn->loop.ops->resolve || evl_turn_loop_threads(turn);
}

void *evl_resolver_ask(struct turn *turn, const char *host, evlock_resolve_cb cb, void *arg) {
    const struct evlock_loop *loop = &turn->loop;

    if (!evl_resolver_exists(turn))
        return NULL;
    return loop->ops->resolve ? loop->ops->resolve(loop->data, host, cb, arg)
                              : resolver_ask_system(turn, host, cb, arg);
}

void evl_resolver_cancel(struct turn *turn, void *resolution) {
    if (turn->loop.ops->resolve)
        turn->loop.ops->resolve_cancel(resolution);
    else
        resolver_forget(turn, resolution);
}
