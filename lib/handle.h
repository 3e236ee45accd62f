/*
 * The handle's own: what a user holds of a lock, as data, and how long it stays. Every tenure and every call keeps the
 * memory by a reference, and so does the user. It owns its key and a reference to its config. It decides nothing: what
 * users can do with a handle is in lock.c and above.
 */
#ifndef EVL_HANDLE_H
#define EVL_HANDLE_H

#include <sys/queue.h>

#include "bytes.h"
#include "config.h"
#include "deployment.h"

struct call;
struct tenure;

struct evlock {
    struct config *config;
    struct tenure *tenure;       /* the present one: acquiring, held, lost, releasing; or NULL */
    struct call *untold;         /* an acquire or adoption that was granted and not yet reported */
    struct call *calls;          /* the oldest of those pending, or NULL */
    STAILQ_ENTRY(evlock) notice; /* among those with something to be reported that is no end of a call */
    void *arg;
    uint32_t references; /* the user's, one for each tenure and call, and one while it is `noticed` */
    uint16_t key_len;
    enum evlock_status why : 8; /* of the loss or the risk that is to be reported; 0: neither is */
    uint8_t agreed : 4;         /* with `why`: the nodes that had confirmed the last renewal */
    bool lost : 1;              /* `why` is that of a loss */
    bool noticed : 1;           /* in the list by `notice`, even if there is nothing left to report */
    bool freed : 1;
    bool crowded : 1; /* its last acquire waited in the queue: the next one joins it at once */
    char key[];
};

STAILQ_HEAD(handles, evlock);

static inline struct bytes evl_handle_key(const struct evlock *lock) {
    return (struct bytes){lock->key, lock->key_len};
}

/* The node that speaks for it, where it is kept on one, while its client is there. */
static inline struct node *evl_handle_home(const struct evlock *lock) {
    return evl_deployment_home(lock->config->deployment, evl_handle_key(lock));
}

/* The ground under it, while its client is there. */
static inline struct turn *evl_handle_turn(const struct evlock *lock) {
    return &lock->config->deployment->turn;
}

/* Takes a reference. */
static inline void evl_handle_ref(struct evlock *lock) {
    lock->references++;
}

/* Gives one back: memory goes with the last. */
void evl_handle_unref(struct evlock *lock);

/* Asserts what must be true between two inputs; see check.h. */
void evl_handle_check(const struct evlock *lock);

/* A line about a lock, by its label, or else its name. Seldom wanted, so that is asked first. */
#define evl_handle_log(lock, level, ...)                                                                               \
    (evl_log_wants(&evl_handle_turn(lock)->log, level) ? evl_handle_log_line(lock, level, __VA_ARGS__) : (void)0)
void evl_handle_log_line(const struct evlock *lock, enum evlock_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
