/*
 * Credentials: as whom a client logs in at one node, whose connections share them. They come from the options, from a
 * file or from the user, who is asked. It owns them, as the command that is sent, and reads the file. It sends nothing,
 * and asks nobody: that a question is to be put is noted here.
 */
#ifndef EVL_CREDENTIALS_H
#define EVL_CREDENTIALS_H

#include <sys/queue.h>

#include "secret.h"
#include "status.h"

struct login;

LIST_HEAD(logins, login);

/* Zeroed: there are none, and none are needed. */
struct credentials {
    struct logins logins; /* of all connections to the node */
    char *user;           /* that goes with a password without one; NULL: the default user */
    const char *file;     /* whose first line is the password, or NULL; it is the deployment's */
    bool asks;            /* the user is asked for them at each login */
    bool wanted;          /* the user is to be asked */
    struct secret kept;   /* for all logins */
    struct secret given;  /* for those that owe one with these, and then no more */
};

/* From where the password is to come, which `options` name or the URL. */
struct trouble evl_credentials_begin(struct credentials *credentials, const char *user, const char *password,
                                     const char *file, bool asks);

/* Writes the command that logs in so; `user` may be NULL. EVLOCK_OK or EVLOCK_ENOMEM. */
struct trouble evl_credentials_write(const struct credentials *credentials, const char *user, const char *password,
                                     struct secret *ret);

/* The same, with what the file says now. EVLOCK_OK, EVLOCK_ENOMEM or EVLOCK_EFILE. */
struct trouble evl_credentials_read(const struct credentials *credentials, struct secret *ret, struct words *words);

/* Takes the command over: from now on, these are the credentials. */
void evl_credentials_give(struct credentials *credentials, struct secret *given);

/* Refused ones may be followed by better ones. */
static inline bool evl_credentials_renew(const struct credentials *credentials) {
    return credentials->asks || credentials->file;
}

/* The newest that were given. */
static inline const struct secret *evl_credentials_newest(const struct credentials *credentials) {
    return credentials->given.bytes ? &credentials->given : &credentials->kept;
}

/* Whether the user is to be asked, which is done by that. */
bool evl_credentials_take_question(struct credentials *credentials);

/* Nothing is sent any more. */
void evl_credentials_wipe(struct credentials *credentials);

/* Wipes, and frees what it owns, but for its own memory. */
void evl_credentials_free(struct credentials *credentials);

#endif
