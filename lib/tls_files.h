/*
 * The files of whom a client trusts, and what it shows of itself: whether they are other ones by now, and a context of
 * OpenSSL's that is made of them. It owns their paths. No file makes it wait, and what it read of one is wiped.
 */
#ifndef EVL_TLS_FILES_H
#define EVL_TLS_FILES_H

#include <stdbool.h>
#include <sys/stat.h>

#include <openssl/types.h>

#include "status.h"
#include "tls_pem.h"

struct tls_file {
    char *path;       /* NULL: none is given */
    struct stat seen; /* as it was when it was looked at; all zero: it could not be */
};

/* Zeroed: there are none. */
struct tls_files {
    struct tls_file of[TLS_PEM_KINDS];
};

/* Copies the paths of a client's options; false: no memory. Whatever comes of it is freed by evl_tls_files_free(). */
bool evl_tls_files_take(struct tls_files *files, const evlock_client_options *options);
void evl_tls_files_free(struct tls_files *files);

/* Looks at the files; whether one of them is another than when they were looked at before. */
bool evl_tls_files_changed(struct tls_files *files);

/* Makes a context of what is in them now, strict on whom it trusts. EVLOCK_OK, _ETLS or _ENOMEM. OpenSSL's queue of
 * errors is empty before. */
struct trouble evl_tls_files_load(const struct tls_files *files, SSL_CTX **ret, struct words *words);

/* Whether it is the same file, with the same in it, as far as can be seen from outside. */
bool evl_tls_files_are_same(const struct stat *one, const struct stat *other);

/* Why such a file is not read; NULL: it is. */
const char *evl_tls_files_objection(const struct stat *is);

#endif
