/*
 * OpenSSL's errors: its queue of them in this thread, which is left as it was found, and what they mean to a client. It
 * knows no conversation and no file.
 */
#ifndef EVL_TLS_ERRORS_H
#define EVL_TLS_ERRORS_H

#include <stdbool.h>
#include <stddef.h>

#include "status.h"

static const struct trouble evl_tls_no_memory = {EVLOCK_ENOMEM, "no memory for TLS"};

/* An error of somebody else's, whole. */
struct tls_error {
    unsigned long code;
    char *file, *function, *data;
    int line;
};

/* What was in the thread's queue. OpenSSL takes any error there for one of the present call. */
struct tls_errors {
    struct tls_error of[16]; /* as many as the queue holds */
    size_t count;
};

/* Empties the queue before calls of OpenSSL, and puts back after them what was in it, instead of what they left. What
 * was set aside is to be put back. */
void evl_tls_errors_set_aside(struct tls_errors *ret);
void evl_tls_errors_put_back(struct tls_errors *errors);

/* The reason that an error's code stands for. */
const char *evl_tls_errors_reason(unsigned long code);

/* A conversation that failed, as OpenSSL says it. */
struct tls_failure {
    unsigned long code;     /* the first error: those after it only say on whose behalf it was */
    long verified;          /* what came of verifying the server, as X509_V_... */
    bool wants_certificate; /* the server has asked for one */
};

/* Why it failed: EVLOCK_ENOMEM, _ECERT or _EPROTOCOL. */
struct trouble evl_tls_errors_explain(const struct tls_failure *failure, struct words *words);

#endif
