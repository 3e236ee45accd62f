/* TLS; see tls.h. */
#include "tls.h"

bool evl_tls_is_wanted(const evlock_client_options *options) {
    return options->tls_ca || options->tls_cert || options->tls_key || options->tls_name || options->tls_context;
}

#ifdef EVL_TLS

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "check.h"
#include "memory.h"
#include "secret.h"

/* As many errors as OpenSSL's queue holds. */
#define ERRORS 16

/* So many sessions are kept of a server: as many as it may have connections, with one that takes another's place. */
#define SESSIONS 4

/* So many are kept of all servers. */
#define SESSIONS_KEPT ((size_t)EVLOCK_NODES_MAX * SESSIONS)

/* No file is longer: the certificates of a whole system are a quarter of a MiB. */
#define LONGEST ((off_t)16 << 20)

/* Of the longest name that a server can be asked for, with its NUL. */
#define NAME_SIZE (TLSEXT_MAXLEN_host_name + 1)

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

enum tls_file_kind { CA, CERT, KEY, FILES };

/* A file as it was when it was read. */
struct tls_file {
    char *path; /* NULL: none is given */
    struct stat read;
};

/* By which the next conversation with a server is shorter. */
struct tls_session {
    SSL_SESSION *session;
    char *host;
    int port;
};

struct tls {
    struct tls_file files[FILES];
    char *name; /* which servers' certificates must have; NULL: that of their URL */
    SSL_CTX *context;
    bool own;                               /* the context is made of the files */
    bool stale;                             /* its files are other ones by now, and cannot be used */
    unsigned generation;                    /* of the context */
    struct tls_session kept[SESSIONS_KEPT]; /* of this context's conversations; the newest is the last */
    unsigned kept_count;
};

struct tls_peer {
    struct tls *tls;
    char *host; /* of the server */
    int port;
    SSL *ssl;             /* NULL: there is no conversation */
    SSL_SESSION *offered; /* the session that is to be resumed; NULL: none, or it has become of no use */
    unsigned generation;  /* of the context of this conversation */
    bool heard;           /* the first byte of this conversation has come */
    struct words words;   /* of the last trouble */
};

static const struct trouble tls_no_memory = {EVLOCK_ENOMEM, "no memory for TLS"};

/* --- OpenSSL's queue of errors ------------------------------------------------------------------------------------ */

/* An error of somebody else's, whole. */
struct tls_error {
    unsigned long code;
    char *file, *function, *data;
    int line;
};

/* What was in the thread's queue. OpenSSL takes any error there for one of the present call. */
struct tls_queue {
    struct tls_error errors[ERRORS];
    size_t count;
};

static char *tls_copy(const char *text) {
    return text ? evl_dup(text, strlen(text)) : NULL;
}

static void tls_set_aside(struct tls_queue *queue) {
    const char *file, *function, *data;
    int line, flags;

    queue->count = 0;
    if (!ERR_peek_error())
        return;
    while (queue->count < ERRORS) {
        struct tls_error *error = &queue->errors[queue->count];
        error->code = ERR_get_error_all(&file, &line, &function, &data, &flags);
        if (!error->code)
            break;
        error->file = tls_copy(file);
        error->line = line;
        error->function = tls_copy(function);
        error->data = flags & ERR_TXT_STRING ? tls_copy(data) : NULL;
        queue->count++;
    }
}

static void tls_put_back(struct tls_queue *queue) {
    if (ERR_peek_error()) /* to look costs less than to clear */
        ERR_clear_error();
    for (size_t i = 0; i < queue->count; i++) {
        struct tls_error *error = &queue->errors[i];
        ERR_new();
        ERR_set_debug(error->file, error->line, error->function);
        ERR_set_error(ERR_GET_LIB(error->code), ERR_GET_REASON(error->code), error->data ? "%s" : NULL, error->data);
        evl_free(error->file);
        evl_free(error->function);
        evl_free(error->data);
    }
}

/* The reason of the first error: those after it only say on whose behalf it was. */
static const char *tls_reason(void) {
    unsigned long code = ERR_peek_error();
    const char *reason = ERR_SYSTEM_ERROR(code) ? strerror(ERR_GET_REASON(code)) : ERR_reason_error_string(code);

    return reason ? reason : "OpenSSL does not say why";
}

/* --- Sessions ----------------------------------------------------------------------------------------------------- */

static bool tls_is_of(const struct tls_session *kept, const struct tls_peer *peer) {
    return kept->port == peer->port && strcmp(kept->host, peer->host) == 0;
}

static SSL_SESSION *tls_take_kept(struct tls *tls, unsigned index) {
    SSL_SESSION *session = tls->kept[index].session;

    evl_free(tls->kept[index].host);
    tls->kept_count--;
    memmove(&tls->kept[index], &tls->kept[index + 1], (tls->kept_count - index) * sizeof(tls->kept[0]));
    return session;
}

/* Makes room for one more: the oldest goes, of this server, or else of all. */
static void tls_drop_oldest(struct tls *tls, const struct tls_peer *peer) {
    unsigned count = 0, oldest = 0;

    for (unsigned i = tls->kept_count; i > 0; i--)
        if (tls_is_of(&tls->kept[i - 1], peer)) {
            count++;
            oldest = i - 1;
        }
    if (count == SESSIONS || tls->kept_count == SESSIONS_KEPT)
        SSL_SESSION_free(tls_take_kept(tls, count == SESSIONS ? oldest : 0));
}

/* Of the server that the peer has been talking to. */
static void tls_keep_session(struct tls_peer *peer, SSL_SESSION *session) {
    struct tls *tls = peer->tls;
    char *host = evl_dup(peer->host, strlen(peer->host));

    if (!host) {
        SSL_SESSION_free(session);
        return;
    }
    tls_drop_oldest(tls, peer);
    tls->kept[tls->kept_count++] = (struct tls_session){session, host, peer->port};
}

/* A server may resume a session once only, so nobody else is to have it. NULL: there is none. */
static SSL_SESSION *tls_take_session(const struct tls_peer *peer) {
    for (unsigned i = peer->tls->kept_count; i > 0; i--)
        if (tls_is_of(&peer->tls->kept[i - 1], peer))
            return tls_take_kept(peer->tls, i - 1);
    return NULL;
}

static void tls_forget_sessions(struct tls *tls) {
    while (tls->kept_count > 0)
        SSL_SESSION_free(tls_take_kept(tls, tls->kept_count - 1));
}

/* --- Files -------------------------------------------------------------------------------------------------------- */

static const char *const file_names[FILES] = {"tls_ca", "tls_cert", "tls_key"};

static struct trouble tls_refuse_file(const struct tls *tls, enum tls_file_kind kind, const char *why,
                                      struct words *words) {
    return evl_trouble(words, EVLOCK_ETLS, "%s: %s: %s", file_names[kind], tls->files[kind].path, why);
}

/* With room for a byte more, which a file has that grows. */
static struct trouble tls_read_all(const struct tls *tls, enum tls_file_kind kind, int fd, struct secret *ret,
                                   struct words *words) {
    struct stat is;

    if (fstat(fd, &is) != 0)
        return tls_refuse_file(tls, kind, strerror(errno), words);
    if (!S_ISREG(is.st_mode))
        return tls_refuse_file(tls, kind, "it is no regular file", words);
    if (is.st_size > LONGEST)
        return tls_refuse_file(tls, kind, "it is longer than 16 MiB", words);
    if (!evl_secret_make(ret, (size_t)is.st_size + 1))
        return tls_no_memory;
    if (!evl_secret_read(ret, fd))
        return tls_refuse_file(tls, kind, strerror(errno), words);
    return ret->len < ret->room ? evl_no_trouble : tls_refuse_file(tls, kind, "it grew while it was read", words);
}

/* What stands at the path may be a pipe that nobody writes to, or a device: that is no reason to wait. */
static struct trouble tls_read(const struct tls *tls, enum tls_file_kind kind, struct secret *ret,
                               struct words *words) {
    int fd = open(tls->files[kind].path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct trouble trouble;

    if (fd < 0)
        return tls_refuse_file(tls, kind, strerror(errno), words);
    trouble = tls_read_all(tls, kind, fd, ret, words);
    (void)close(fd);
    return trouble;
}

/* What is read of a file, and whether it wanted a passphrase. */
struct tls_text {
    BIO *bio;
    bool encrypted;
};

/* A program that waits for events asks nobody for a passphrase. */
static int tls_on_encrypted(char *buffer, int size, int writing, void *encrypted) {
    (void)writing;
    if (size > 0)
        buffer[0] = '\0';
    *(bool *)encrypted = true;
    return -1;
}

/* Whether nothing but the text's end kept OpenSSL from finding more in it. */
static bool tls_is_at_end(void) {
    unsigned long code = ERR_peek_last_error();

    if (ERR_GET_LIB(code) != ERR_LIB_PEM || ERR_GET_REASON(code) != PEM_R_NO_START_LINE)
        return false;
    ERR_clear_error();
    return true;
}

static bool tls_take_trust(SSL_CTX *context, struct tls_text *text) {
    X509_STORE *store = SSL_CTX_get_cert_store(context);
    bool taken = false;
    X509 *cert;

    while ((cert = PEM_read_bio_X509_AUX(text->bio, NULL, tls_on_encrypted, &text->encrypted))) {
        taken = X509_STORE_add_cert(store, cert);
        X509_free(cert);
        if (!taken)
            break;
    }
    return taken && tls_is_at_end();
}

static bool tls_take_chain(SSL_CTX *context, struct tls_text *text) {
    X509 *cert = PEM_read_bio_X509_AUX(text->bio, NULL, tls_on_encrypted, &text->encrypted);
    bool taken = cert && SSL_CTX_use_certificate(context, cert);

    X509_free(cert);
    while (taken && (cert = PEM_read_bio_X509(text->bio, NULL, tls_on_encrypted, &text->encrypted))) {
        taken = SSL_CTX_add0_chain_cert(context, cert);
        if (!taken)
            X509_free(cert);
    }
    return taken && tls_is_at_end();
}

static bool tls_take_key(SSL_CTX *context, struct tls_text *text) {
    EVP_PKEY *key = PEM_read_bio_PrivateKey(text->bio, NULL, tls_on_encrypted, &text->encrypted);
    bool taken = key && SSL_CTX_use_PrivateKey(context, key) && SSL_CTX_check_private_key(context);

    EVP_PKEY_free(key);
    return taken;
}

static bool (*const tls_take_file[FILES])(SSL_CTX *, struct tls_text *) = {tls_take_trust, tls_take_chain,
                                                                           tls_take_key};

/* Why it was not taken. */
static const char *tls_text_reason(const struct tls_text *text) {
    if (text->encrypted)
        return "it is encrypted, and no passphrase is asked for";
    return tls_is_at_end() ? "no certificate is in it" : tls_reason();
}

static struct trouble tls_load_file(const struct tls *tls, enum tls_file_kind kind, SSL_CTX *context,
                                    struct words *words) {
    struct secret bytes = {0};
    struct tls_text text = {0};
    struct trouble trouble = tls_read(tls, kind, &bytes, words);

    if (trouble.status == EVLOCK_OK && !(text.bio = BIO_new_mem_buf(bytes.bytes, (int)bytes.len)))
        trouble = tls_no_memory;
    if (trouble.status == EVLOCK_OK && !tls_take_file[kind](context, &text))
        trouble = tls_refuse_file(tls, kind, tls_text_reason(&text), words);
    BIO_free(text.bio);
    evl_secret_wipe(&bytes);
    return trouble;
}

/* OpenSSL takes a certificate apart when it looks at it first. One for which there is no memory then is distrusted for
 * good, so that is done now. */
static bool tls_take_trust_apart(SSL_CTX *context) {
    STACK_OF(X509_OBJECT) *objects = X509_STORE_get0_objects(SSL_CTX_get_cert_store(context));

    for (int i = 0; i < sk_X509_OBJECT_num(objects); i++) {
        X509 *cert = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(objects, i));
        if (cert)
            (void)X509_check_purpose(cert, -1, 0);
    }
    return ERR_GET_REASON(ERR_peek_last_error()) != ERR_R_MALLOC_FAILURE;
}

static struct trouble tls_load_trust(const struct tls *tls, SSL_CTX *context, struct words *words) {
    struct trouble trouble = evl_no_trouble;

    if (tls->files[CA].path)
        trouble = tls_load_file(tls, CA, context, words);
    else if (!SSL_CTX_set_default_verify_paths(context))
        trouble = evl_trouble(words, EVLOCK_ETLS, "the system's certificates: %s", tls_reason());
    if (trouble.status == EVLOCK_OK && !tls_take_trust_apart(context))
        trouble = tls_no_memory;
    return trouble;
}

/* The key after its certificate, which it is compared with. */
static struct trouble tls_load_identity(const struct tls *tls, SSL_CTX *context, struct words *words) {
    struct trouble trouble = evl_no_trouble;

    if (tls->files[CERT].path)
        trouble = tls_load_file(tls, CERT, context, words);
    if (tls->files[KEY].path && trouble.status == EVLOCK_OK)
        trouble = tls_load_file(tls, KEY, context, words);
    return trouble;
}

static void tls_be_strict(SSL_CTX *context) {
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
}

/* Puts a context made of the files in the place of the present one, or leaves that as it is. */
static struct trouble tls_load(struct tls *tls, struct words *words) {
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    struct trouble trouble;

    if (!context)
        return (struct trouble){EVLOCK_ENOMEM, "OpenSSL makes no context"};
    tls_be_strict(context);
    trouble = tls_load_trust(tls, context, words);
    if (trouble.status == EVLOCK_OK)
        trouble = tls_load_identity(tls, context, words);
    if (trouble.status != EVLOCK_OK) {
        SSL_CTX_free(context);
        return trouble;
    }
    SSL_CTX_free(tls->context);
    tls->context = context;
    tls->generation++;
    tls_forget_sessions(tls);
    return evl_no_trouble;
}

static bool tls_is_same_file(const struct stat *one, const struct stat *other) {
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino && one->st_size == other->st_size &&
           one->st_mtim.tv_sec == other->st_mtim.tv_sec && one->st_mtim.tv_nsec == other->st_mtim.tv_nsec;
}

/* Looks at the files; whether one of them is another than before. One that cannot be looked at cannot be read. */
static bool tls_changed(struct tls *tls) {
    bool changed = false;

    for (int i = 0; i < FILES; i++) {
        struct tls_file *file = &tls->files[i];
        struct stat now;
        if (!file->path)
            continue;
        if (stat(file->path, &now) != 0)
            memset(&now, 0, sizeof(now));
        changed |= !tls_is_same_file(&file->read, &now);
        file->read = now;
    }
    return changed;
}

/* Files that cannot be used may be half of a change: they are read again for the next connection, changed or not. */
static struct trouble tls_refresh(struct tls *tls, struct words *words) {
    struct trouble trouble = evl_no_trouble;

    if (tls->own && (tls_changed(tls) || tls->stale))
        trouble = tls_load(tls, words);
    tls->stale = trouble.status != EVLOCK_OK;
    return trouble;
}

/* --- Names -------------------------------------------------------------------------------------------------------- */

static bool tls_is_address(const char *name) {
    unsigned char address[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
}

/* In the letters that certificates have. No label is empty: to OpenSSL a dot in front stands for all hosts below. Nor
 * is the last one a number: that is the half of an address, which the system may take for a whole one ("127.1"). */
static bool tls_is_host(const char *name) {
    for (;;) {
        size_t len = strspn(name, LETTERS DIGITS "-_");
        if (len == 0)
            return false;
        if (name[len] != '.')
            return name[len] == '\0' && strspn(name, DIGITS) < len;
        name += len + 1;
    }
}

/* Certificates know neither the zone of an address ("fe80::1%eth0") nor the dot that ends an absolute name. */
static void tls_trim(char name[NAME_SIZE], const char *host) {
    size_t len = strlen(host);

    assert(len < NAME_SIZE);
    memcpy(name, host, len + 1);
    if (strchr(name, ':'))
        name[strcspn(name, "%")] = '\0';
    else if (len > 1 && name[len - 1] == '.')
        name[len - 1] = '\0';
}

/* Whether a certificate can be of it. */
static bool tls_is_askable(const char *host) {
    char name[NAME_SIZE];

    if (strlen(host) >= NAME_SIZE)
        return false;
    tls_trim(name, host);
    return tls_is_address(name) || tls_is_host(name);
}

/* --- What a client has -------------------------------------------------------------------------------------------- */

static struct trouble tls_validate(const evlock_client_options *options) {
    if (!options->tls_cert != !options->tls_key)
        return (struct trouble){EVLOCK_EINVAL, "tls_cert and tls_key belong together"};
    if (options->tls_context && (options->tls_ca || options->tls_cert))
        return (struct trouble){EVLOCK_EINVAL, "tls_context excludes tls_ca, tls_cert and tls_key"};
    if (options->tls_name && !tls_is_askable(options->tls_name))
        return (struct trouble){EVLOCK_EINVAL,
                                "tls_name must be a host's name or a whole address, up to 255 bytes long"};
    return evl_no_trouble;
}

static bool tls_keep(struct tls *tls, const evlock_client_options *options) {
    const char *paths[FILES] = {[CA] = options->tls_ca, [CERT] = options->tls_cert, [KEY] = options->tls_key};
    bool kept = true;

    for (int i = 0; i < FILES; i++) {
        tls->files[i].path = tls_copy(paths[i]);
        kept &= !paths[i] == !tls->files[i].path;
    }
    tls->name = tls_copy(options->tls_name);
    return kept && !tls->name == !options->tls_name;
}

static struct trouble tls_make(struct tls *tls, const evlock_client_options *options, struct words *words) {
    struct tls_queue queue;
    struct trouble trouble;

    if (!tls_keep(tls, options))
        return (struct trouble){EVLOCK_ENOMEM, "no memory for a client"};
    tls_set_aside(&queue);
    tls->own = !options->tls_context;
    if (tls->own) {
        (void)tls_changed(tls);
        trouble = tls_load(tls, words);
    } else {
        trouble = evl_no_trouble;
        SSL_CTX_up_ref(options->tls_context);
        tls->context = options->tls_context;
    }
    tls_put_back(&queue);
    return trouble;
}

struct trouble evl_tls_new(struct tls **ret, const evlock_client_options *options, struct words *words) {
    struct trouble trouble = tls_validate(options);
    struct tls *tls;

    if (trouble.status != EVLOCK_OK)
        return trouble;
    tls = evl_alloc(sizeof(*tls));
    if (!tls)
        return (struct trouble){EVLOCK_ENOMEM, "no memory for a client"};
    trouble = tls_make(tls, options, words);
    if (trouble.status == EVLOCK_OK)
        *ret = tls;
    else
        evl_tls_free(tls);
    return trouble;
}

struct trouble evl_tls_expect(const struct tls *tls, const char *host) {
    if (tls->name || tls_is_askable(host))
        return evl_no_trouble;
    return (struct trouble){EVLOCK_EURL,
                            "no certificate can be of this host: it is neither a name nor a whole address"};
}

void evl_tls_free(struct tls *tls) {
    struct tls_queue queue;

    if (!tls)
        return;
    tls_set_aside(&queue);
    tls_forget_sessions(tls);
    SSL_CTX_free(tls->context);
    tls_put_back(&queue);
    for (int i = 0; i < FILES; i++)
        evl_free(tls->files[i].path);
    evl_free(tls->name);
    evl_free(tls);
}

/* --- A conversation ----------------------------------------------------------------------------------------------- */

/* Whom the certificate must be of. Only names can be asked for: a server has no choice of addresses. */
static bool tls_expect(SSL *ssl, char *name) {
    if (tls_is_address(name))
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name);
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, name) && SSL_set_tlsext_host_name(ssl, name);
}

/* Whatever a context of the caller's says: all is taken that is said, and all is handed on that has come. */
static void tls_be_whole(SSL *ssl) {
    SSL_clear_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE);
    SSL_set_mode(ssl, SSL_MODE_AUTO_RETRY);
}

static bool tls_connect_buffers(SSL *ssl) {
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());

    if (!in || !out) {
        BIO_free(in);
        BIO_free(out);
        return false;
    }
    SSL_set_bio(ssl, in, out);
    return true;
}

/* As the client. What has no memory for that says so in the queue alone, and could not be used. */
static bool tls_take_part(SSL *ssl) {
    SSL_set_connect_state(ssl);
    return !ERR_peek_error();
}

static void tls_resume(struct tls_peer *peer) {
    peer->generation = peer->tls->generation;
    peer->offered = tls_take_session(peer);
    if (peer->offered)
        SSL_set_session(peer->ssl, peer->offered);
}

static struct trouble tls_begin(struct tls_peer *peer, const char *host) {
    char name[NAME_SIZE];
    SSL *ssl;

    tls_trim(name, peer->tls->name ? peer->tls->name : host);
    ssl = SSL_new(peer->tls->context);
    if (ssl)
        tls_be_whole(ssl);
    if (!ssl || !tls_connect_buffers(ssl) || !tls_expect(ssl, name) || !tls_take_part(ssl)) {
        SSL_free(ssl);
        return tls_no_memory;
    }
    peer->ssl = ssl;
    peer->heard = false;
    tls_resume(peer);
    return evl_no_trouble;
}

/* Whom the next conversation is with; false: no memory. */
static bool tls_turn_to(struct tls_peer *peer, const char *host, int port) {
    char *copy = evl_dup(host, strlen(host));

    if (!copy)
        return false;
    evl_free(peer->host);
    peer->host = copy;
    peer->port = port;
    return true;
}

struct trouble evl_tls_begin(struct tls_peer **ret_peer, struct tls *tls, const char *host, int port,
                             struct words *words) {
    struct tls_peer *peer = *ret_peer ? *ret_peer : evl_alloc(sizeof(*peer));
    struct trouble stale, trouble;
    struct tls_queue queue;

    if (!peer)
        return tls_no_memory;
    *ret_peer = peer;
    peer->tls = tls;
    evl_tls_end(peer);
    if (!tls_turn_to(peer, host, port))
        return tls_no_memory;
    tls_set_aside(&queue);
    stale = tls_refresh(tls, words);
    ERR_clear_error();
    trouble = tls_begin(peer, host);
    tls_put_back(&queue);
    return trouble.status == EVLOCK_OK ? stale : trouble;
}

static void tls_drop_offered(struct tls_peer *peer) {
    SSL_SESSION_free(peer->offered);
    peer->offered = NULL;
}

/* That of this conversation; or the one that was offered, where it did not come to that. It is the caller's. NULL:
 * there is none that can be resumed. */
static SSL_SESSION *tls_session_left(struct tls_peer *peer) {
    SSL_SESSION *session = peer->offered;

    peer->offered = NULL;
    if (SSL_is_init_finished(peer->ssl)) {
        SSL_SESSION_free(session);
        session = SSL_get1_session(peer->ssl);
    }
    if (session && SSL_SESSION_is_resumable(session) && peer->generation == peer->tls->generation)
        return session;
    SSL_SESSION_free(session);
    return NULL;
}

/* One that is not said to have ended well is not to be resumed, says OpenSSL, and nothing is said here. */
void evl_tls_end(struct tls_peer *peer) {
    SSL_SESSION *session;
    struct tls_queue queue;

    if (!peer || !peer->ssl)
        return;
    tls_set_aside(&queue);
    session = tls_session_left(peer);
    if (session)
        tls_keep_session(peer, session);
    SSL_set_shutdown(peer->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(peer->ssl);
    peer->ssl = NULL;
    tls_put_back(&queue);
}

void evl_tls_peer_free(struct tls_peer *peer) {
    if (!peer)
        return;
    evl_tls_end(peer);
    evl_free(peer->host);
    evl_free(peer);
}

/* --- What goes wrong in it ---------------------------------------------------------------------------------------- */

/* The alert by which a server refused, or -1. */
static int tls_alert(unsigned long code) {
    int reason = ERR_GET_REASON(code);

    return ERR_GET_LIB(code) == ERR_LIB_SSL && reason > SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256
               ? reason - SSL_AD_REASON_OFFSET
               : -1;
}

/* Whether the server refuses the certificate that it got, or that it got none. Before TLS 1.3 that is also said by an
 * alert that has many meanings. */
static bool tls_is_refused(const struct tls_peer *peer, int alert) {
    switch (alert) {
    case SSL_AD_HANDSHAKE_FAILURE:
        return SSL_get0_peer_CA_list(peer->ssl) != NULL;
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_ACCESS_DENIED:
    case SSL_AD_CERTIFICATE_REQUIRED:
        return true;
    default:
        return false;
    }
}

/* Why a call of OpenSSL failed; its queue holds nothing else. */
static struct trouble tls_fail(struct tls_peer *peer) {
    unsigned long code = ERR_peek_error();
    long verified = SSL_get_verify_result(peer->ssl);

    tls_drop_offered(peer);
    if (ERR_GET_REASON(code) == ERR_R_MALLOC_FAILURE || verified == X509_V_ERR_OUT_OF_MEM ||
        verified == X509_V_ERR_UNSPECIFIED)
        return tls_no_memory;
    if (ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED)
        return evl_trouble(&peer->words, EVLOCK_ECERT, "the server's certificate: %s",
                           X509_verify_cert_error_string(verified));
    if (tls_is_refused(peer, tls_alert(code)))
        return evl_trouble(&peer->words, EVLOCK_ECERT, "the server refuses this client's certificate: %s",
                           tls_reason());
    return evl_trouble(&peer->words, EVLOCK_EPROTOCOL, "TLS: %s", tls_reason());
}

/* What came of a call that did not succeed: it may only want more to be handed in. */
static struct trouble tls_outcome(struct tls_peer *peer, int result) {
    switch (SSL_get_error(peer->ssl, result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        return evl_no_trouble;
    case SSL_ERROR_ZERO_RETURN:
        return (struct trouble){EVLOCK_EUNREACHABLE, "the server ended TLS"};
    default:
        return tls_fail(peer);
    }
}

/* --- What is said ------------------------------------------------------------------------------------------------- */

/* Each record begins with its kind. */
static bool tls_is_record(const void *bytes) {
    unsigned char kind;

    memcpy(&kind, bytes, 1);
    return kind >= SSL3_RT_CHANGE_CIPHER_SPEC && kind <= SSL3_RT_APPLICATION_DATA;
}

struct trouble evl_tls_feed(struct tls_peer *peer, const void *bytes, size_t len) {
    struct tls_queue queue;
    bool fed;

    if (len > 0 && !peer->heard && !tls_is_record(bytes))
        return (struct trouble){EVLOCK_EPROTOCOL, "the server does not speak TLS"};
    peer->heard |= len > 0;
    tls_set_aside(&queue);
    fed = len <= INT_MAX && BIO_write(SSL_get_rbio(peer->ssl), bytes, (int)len) == (int)len;
    tls_put_back(&queue);
    return fed ? evl_no_trouble : tls_no_memory;
}

struct trouble evl_tls_shake(struct tls_peer *peer, bool *ret_open) {
    struct tls_queue queue;
    struct trouble trouble;
    int result;

    tls_set_aside(&queue);
    result = SSL_do_handshake(peer->ssl);
    trouble = result == 1 ? evl_no_trouble : tls_outcome(peer, result);
    *ret_open = result == 1;
    tls_put_back(&queue);
    return trouble;
}

struct trouble evl_tls_take(struct tls_peer *peer, void *bytes, size_t size, size_t *ret_len) {
    struct tls_queue queue;
    struct trouble trouble;
    int result;

    tls_set_aside(&queue);
    result = SSL_read_ex(peer->ssl, bytes, size, ret_len);
    trouble = result == 1 ? evl_no_trouble : tls_outcome(peer, result);
    if (result != 1)
        *ret_len = 0;
    tls_put_back(&queue);
    return trouble;
}

struct trouble evl_tls_put(struct tls_peer *peer, const void *bytes, size_t len) {
    struct tls_queue queue;
    struct trouble trouble;
    size_t written;
    int result;

    tls_set_aside(&queue);
    result = SSL_write_ex(peer->ssl, bytes, len, &written);
    trouble = result == 1 ? evl_no_trouble : tls_fail(peer);
    tls_put_back(&queue);
    return trouble;
}

size_t evl_tls_sealed(struct tls_peer *peer, const char **ret_bytes) {
    char *bytes;
    long len = BIO_get_mem_data(SSL_get_wbio(peer->ssl), &bytes);

    *ret_bytes = bytes;
    return len > 0 ? (size_t)len : 0;
}

void evl_tls_sent(struct tls_peer *peer, size_t len) {
    BIO *out = SSL_get_wbio(peer->ssl);
    char bytes[4096];

    while (len > 0) {
        int count = BIO_read(out, bytes, len < sizeof(bytes) ? (int)len : (int)sizeof(bytes));
        if (count <= 0)
            break;
        len -= (size_t)count;
    }
}

void evl_tls_describe(const struct tls_peer *peer, struct words *ret) {
    snprintf(ret->text, sizeof(ret->text), "%s, %s%s", SSL_get_version(peer->ssl), SSL_get_cipher_name(peer->ssl),
             SSL_session_reused(peer->ssl) ? ", resumed" : "");
}

#else /* without OpenSSL there is no client that could come to more than the first of these */

struct trouble evl_tls_new(struct tls **ret, const evlock_client_options *options, struct words *words) {
    (void)ret, (void)options, (void)words;
    return (struct trouble){EVLOCK_ESCHEME, "rediss:// needs TLS, which is not built in"};
}

void evl_tls_free(struct tls *tls) {
    (void)tls;
}

static const struct trouble tls_none = {EVLOCK_ESCHEME, "TLS is not built in"};

struct trouble evl_tls_expect(const struct tls *tls, const char *host) {
    (void)tls, (void)host;
    return tls_none;
}

struct trouble evl_tls_begin(struct tls_peer **peer, struct tls *tls, const char *host, int port, struct words *words) {
    (void)peer, (void)tls, (void)host, (void)port, (void)words;
    return tls_none;
}

void evl_tls_end(struct tls_peer *peer) {
    (void)peer;
}

void evl_tls_peer_free(struct tls_peer *peer) {
    (void)peer;
}

struct trouble evl_tls_feed(struct tls_peer *peer, const void *bytes, size_t len) {
    (void)peer, (void)bytes, (void)len;
    return tls_none;
}

struct trouble evl_tls_shake(struct tls_peer *peer, bool *ret_open) {
    (void)peer, (void)ret_open;
    return tls_none;
}

struct trouble evl_tls_take(struct tls_peer *peer, void *bytes, size_t size, size_t *ret_len) {
    (void)peer, (void)bytes, (void)size;
    *ret_len = 0;
    return tls_none;
}

struct trouble evl_tls_put(struct tls_peer *peer, const void *bytes, size_t len) {
    (void)peer, (void)bytes, (void)len;
    return tls_none;
}

size_t evl_tls_sealed(struct tls_peer *peer, const char **ret_bytes) {
    (void)peer, (void)ret_bytes;
    return 0;
}

void evl_tls_sent(struct tls_peer *peer, size_t len) {
    (void)peer, (void)len;
}

void evl_tls_describe(const struct tls_peer *peer, struct words *ret) {
    (void)peer;
    ret->text[0] = '\0';
}

#endif
