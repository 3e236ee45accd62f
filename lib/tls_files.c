/* The files of whom a client trusts, and what it shows of itself; see tls_files.h. */
#include "tls_files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "memory.h"
#include "secret.h"
#include "tls_errors.h"

/* No file is longer: the certificates of a whole system are a quarter of a MiB. */
#define LONGEST ((off_t)16 << 20)

/* --- Which they are ----------------------------------------------------------------------------------------------- */

bool evl_tls_files_take(struct tls_files *files, const evlock_client_options *options) {
    const char *paths[] = {
        [TLS_PEM_CA] = options->tls_ca, [TLS_PEM_CERT] = options->tls_cert, [TLS_PEM_KEY] = options->tls_key};
    bool taken = true;

    for (int i = 0; i < TLS_PEM_KINDS; i++) {
        files->of[i].path = paths[i] ? evl_dup(paths[i], strlen(paths[i])) : NULL;
        taken &= !paths[i] == !files->of[i].path;
    }
    return taken;
}

void evl_tls_files_free(struct tls_files *files) {
    for (int i = 0; i < TLS_PEM_KINDS; i++)
        evl_free(files->of[i].path);
}

bool evl_tls_files_are_same(const struct stat *one, const struct stat *other) {
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino && one->st_size == other->st_size &&
           one->st_mtim.tv_sec == other->st_mtim.tv_sec && one->st_mtim.tv_nsec == other->st_mtim.tv_nsec;
}

/* One that cannot be looked at cannot be read. */
bool evl_tls_files_changed(struct tls_files *files) {
    bool changed = false;

    for (int i = 0; i < TLS_PEM_KINDS; i++) {
        struct tls_file *file = &files->of[i];
        struct stat now;
        if (!file->path)
            continue;
        if (stat(file->path, &now) != 0)
            memset(&now, 0, sizeof(now));
        changed |= !evl_tls_files_are_same(&file->seen, &now);
        file->seen = now;
    }
    return changed;
}

/* --- Reading one -------------------------------------------------------------------------------------------------- */

static struct trouble tls_files_refuse(const struct tls_files *files, enum tls_pem kind, const char *why,
                                       struct words *words) {
    static const char *const names[TLS_PEM_KINDS] = {
        [TLS_PEM_CA] = "tls_ca", [TLS_PEM_CERT] = "tls_cert", [TLS_PEM_KEY] = "tls_key"};

    return evl_trouble(words, EVLOCK_ETLS, "%s: %s: %s", names[kind], files->of[kind].path, why);
}

const char *evl_tls_files_objection(const struct stat *is) {
    if (!S_ISREG(is->st_mode))
        return "it is no regular file";
    return is->st_size > LONGEST ? "it is longer than 16 MiB" : NULL;
}

/* With room for a byte more, which a file has that grows. */
static struct trouble tls_files_read_all(const struct tls_files *files, enum tls_pem kind, int fd, struct secret *ret,
                                         struct words *words) {
    const char *objection;
    struct stat is;

    if (fstat(fd, &is) != 0)
        return tls_files_refuse(files, kind, strerror(errno), words);
    objection = evl_tls_files_objection(&is);
    if (objection)
        return tls_files_refuse(files, kind, objection, words);
    if (!evl_secret_make(ret, (size_t)is.st_size + 1))
        return evl_tls_no_memory;
    if (!evl_secret_read(ret, fd))
        return tls_files_refuse(files, kind, strerror(errno), words);
    return ret->len < ret->room ? evl_no_trouble : tls_files_refuse(files, kind, "it grew while it was read", words);
}

/* What stands at the path may be a pipe that nobody writes to, or a device: that is no reason to wait. */
static struct trouble tls_files_read(const struct tls_files *files, enum tls_pem kind, struct secret *ret,
                                     struct words *words) {
    int fd = open(files->of[kind].path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct trouble trouble;

    if (fd < 0)
        return tls_files_refuse(files, kind, strerror(errno), words);
    trouble = tls_files_read_all(files, kind, fd, ret, words);
    (void)close(fd);
    return trouble;
}

/* --- A context made of them --------------------------------------------------------------------------------------- */

static struct trouble tls_files_load_one(const struct tls_files *files, enum tls_pem kind, SSL_CTX *context,
                                         struct words *words) {
    struct secret text = {0};
    struct trouble trouble = tls_files_read(files, kind, &text, words);

    if (trouble.status == EVLOCK_OK) {
        trouble = evl_tls_pem_take(context, kind, &text);
        if (trouble.status == EVLOCK_ETLS)
            trouble = tls_files_refuse(files, kind, trouble.words, words);
    }
    evl_secret_wipe(&text);
    return trouble;
}

/* OpenSSL takes a certificate apart when it looks at it first. One for which there is no memory then is distrusted for
 * good, so that is done now. */
static bool tls_files_take_trust_apart(SSL_CTX *context) {
    STACK_OF(X509_OBJECT) *objects = X509_STORE_get0_objects(SSL_CTX_get_cert_store(context));

    for (int i = 0; i < sk_X509_OBJECT_num(objects); i++) {
        X509 *cert = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(objects, i));
        if (cert)
            (void)X509_check_purpose(cert, -1, 0);
    }
    return ERR_GET_REASON(ERR_peek_last_error()) != ERR_R_MALLOC_FAILURE;
}

static struct trouble tls_files_load_trust(const struct tls_files *files, SSL_CTX *context, struct words *words) {
    struct trouble trouble = evl_no_trouble;

    if (files->of[TLS_PEM_CA].path)
        trouble = tls_files_load_one(files, TLS_PEM_CA, context, words);
    else if (!SSL_CTX_set_default_verify_paths(context))
        trouble =
            evl_trouble(words, EVLOCK_ETLS, "the system's certificates: %s", evl_tls_errors_reason(ERR_peek_error()));
    if (trouble.status == EVLOCK_OK && !tls_files_take_trust_apart(context))
        trouble = evl_tls_no_memory;
    return trouble;
}

/* The key after its certificate, which it is compared with. */
static struct trouble tls_files_load_identity(const struct tls_files *files, SSL_CTX *context, struct words *words) {
    struct trouble trouble = evl_no_trouble;

    if (files->of[TLS_PEM_CERT].path)
        trouble = tls_files_load_one(files, TLS_PEM_CERT, context, words);
    if (files->of[TLS_PEM_KEY].path && trouble.status == EVLOCK_OK)
        trouble = tls_files_load_one(files, TLS_PEM_KEY, context, words);
    return trouble;
}

static void tls_files_be_strict(SSL_CTX *context) {
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
}

struct trouble evl_tls_files_load(const struct tls_files *files, SSL_CTX **ret, struct words *words) {
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    struct trouble trouble;

    if (!context)
        return (struct trouble){EVLOCK_ENOMEM, "OpenSSL makes no context"};
    tls_files_be_strict(context);
    trouble = tls_files_load_trust(files, context, words);
    if (trouble.status == EVLOCK_OK)
        trouble = tls_files_load_identity(files, context, words);
    if (trouble.status == EVLOCK_OK)
        *ret = context;
    else
        SSL_CTX_free(context);
    return trouble;
}
