/* The tests' certificates; see certs.h. OpenSSL makes them, so that no program is needed. */
#include "certs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "../folder.h"

enum {
    CERTS_MAX = 64,
    PATH_LEN = 128,
    DAY_S = 24 * 3600,
    SERIAL_LEN = 8,
};

struct cert {
    char label[32];
    char file[PATH_LEN];
    char key_file[PATH_LEN];
    char chain_file[PATH_LEN];
    X509 *x509;
    EVP_PKEY *key;
    const struct cert *signer; /* itself, of one that signed itself */
};

static struct {
    char folder[FOLDER_SIZE];
    pid_t maker;
    struct cert made[CERTS_MAX];
    size_t count;
} certs;

/* Ends the process where a step was not done. */
static void need(bool done, const char *what, const char *label) {
    if (done)
        return;
    fprintf(stderr, "the certificate \"%s\": %s: ", label, what);
    perror(NULL);
    ERR_print_errors_fp(stderr);
    abort();
}

/* --- The folder --------------------------------------------------------------------------------------------------- */

static void forget(void) {
    if (getpid() != certs.maker)
        return;
    for (size_t i = 0; i < certs.count; i++) {
        X509_free(certs.made[i].x509);
        EVP_PKEY_free(certs.made[i].key);
    }
    certs.count = 0;
    folder_remove(certs.folder);
}

static struct cert *find(const char *label) {
    for (size_t i = 0; i < certs.count; i++)
        if (strcmp(certs.made[i].label, label) == 0)
            return &certs.made[i];
    return NULL;
}

static void begin(void) {
    static const struct cert_wish authority = {.authority = true}, server, client = {.client = true, .names = ""};
    if (certs.maker)
        return;
    need(folder_make(certs.folder), "its folder", "authority");
    certs.maker = getpid();
    cert_make("authority", &authority);
    cert_make("server", &server);
    cert_make("client", &client);
    need(atexit(forget) == 0, "atexit", "authority"); /* before the end of OpenSSL, which has begun by now */
}

/* --- The certificate ---------------------------------------------------------------------------------------------- */

static void set_serial(X509 *x509, const char *label) {
    unsigned char bytes[SERIAL_LEN];
    need(RAND_bytes(bytes, sizeof(bytes)) == 1, "random bytes", label);
    bytes[0] &= 0x7f;
    bytes[0] |= 0x40; /* positive, and always of the same length */
    BIGNUM *number = BN_bin2bn(bytes, sizeof(bytes), NULL);
    need(number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x509)), "its serial number", label);
    BN_free(number);
}

static void extend(const struct cert *cert, int nid, const char *value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, cert->signer->x509, cert->x509, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    need(extension && X509_add_ext(cert->x509, extension, -1) == 1, value, cert->label);
    X509_EXTENSION_free(extension);
}

static void add_extensions(const struct cert *cert, const struct cert_wish *wish) {
    const char *names = wish->names ? wish->names : wish->authority ? "" : "DNS:localhost,IP:127.0.0.1,IP:::1";
    extend(cert, NID_basic_constraints, wish->authority ? "critical,CA:TRUE" : "critical,CA:FALSE");
    extend(cert, NID_key_usage, wish->authority ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature");
    extend(cert, NID_subject_key_identifier, "hash");
    extend(cert, NID_authority_key_identifier, "keyid");
    if (!wish->authority)
        extend(cert, NID_ext_key_usage, wish->client ? "clientAuth" : "serverAuth");
    if (*names)
        extend(cert, NID_subject_alt_name, names);
}

static void make(struct cert *cert, const struct cert_wish *wish) {
    const char *subject = wish->subject ? wish->subject : cert->label;
    X509 *x509 = cert->x509 = X509_new();
    cert->key = EVP_EC_gen("P-256");
    need(x509 && cert->key, "its key", cert->label);
    set_serial(x509, cert->label);
    X509_NAME *name = X509_get_subject_name(x509);
    bool done = X509_set_version(x509, X509_VERSION_3) && X509_set_pubkey(x509, cert->key) &&
                X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)subject, -1, -1, 0) &&
                X509_set_issuer_name(x509, X509_get_subject_name(cert->signer->x509)) &&
                X509_gmtime_adj(X509_getm_notBefore(x509), wish->from_s ? wish->from_s : -DAY_S) &&
                X509_gmtime_adj(X509_getm_notAfter(x509), wish->to_s ? wish->to_s : (int64_t)10 * 365 * DAY_S);
    need(done, "its words", cert->label);
    add_extensions(cert, wish);
    need(X509_sign(x509, cert->signer->key, EVP_sha256()) > 0, "its signature", cert->label);
}

/* --- The files ---------------------------------------------------------------------------------------------------- */

static void name_files(struct cert *cert) {
    snprintf(cert->file, sizeof(cert->file), "%s/%s.crt", certs.folder, cert->label);
    snprintf(cert->key_file, sizeof(cert->key_file), "%s/%s.key", certs.folder, cert->label);
    snprintf(cert->chain_file, sizeof(cert->chain_file), "%s/%s.chain", certs.folder, cert->label);
}

/* Opened beside it, so that nobody reads the half of it. */
static FILE *open_beside(const char *path, char beside[PATH_LEN + 4]) {
    snprintf(beside, PATH_LEN + 4, "%s.new", path);
    FILE *file = fopen(beside, "we");
    need(file, "its file", path);
    return file;
}

static void put_in_place(FILE *file, const char *beside, const char *path) {
    need(fclose(file) == 0 && rename(beside, path) == 0, "its file", path);
}

static void write_certs(const struct cert *cert, const char *path, bool chain) {
    char beside[PATH_LEN + 4];
    FILE *file = open_beside(path, beside);
    need(PEM_write_X509(file, cert->x509) == 1, "its file", cert->label);
    for (cert = cert->signer; chain && cert != cert->signer; cert = cert->signer)
        need(PEM_write_X509(file, cert->x509) == 1, "its file", cert->label);
    put_in_place(file, beside, path);
}

static void write_key(const struct cert *cert, const char *secret) {
    char beside[PATH_LEN + 4];
    FILE *file = open_beside(cert->key_file, beside);
    const EVP_CIPHER *cipher = secret ? EVP_aes_256_cbc() : NULL;
    const unsigned char *bytes = (const unsigned char *)secret;
    int len = secret ? (int)strlen(secret) : 0;
    need(PEM_write_PrivateKey(file, cert->key, cipher, bytes, len, NULL, NULL) == 1, "its key's file", cert->label);
    put_in_place(file, beside, cert->key_file);
}

/* --- The whole ---------------------------------------------------------------------------------------------------- */

void cert_make(const char *label, const struct cert_wish *wish) {
    begin();
    struct cert *cert = find(label);
    need(getpid() == certs.maker && strlen(label) < sizeof(cert->label), "a child makes none", label);
    need(cert || certs.count < CERTS_MAX, "too many", label);
    if (!cert)
        cert = &certs.made[certs.count++];
    X509 *before = cert->x509;
    EVP_PKEY *key_before = cert->key;
    const char *signer = wish->signer ? wish->signer : wish->authority ? label : "authority";
    snprintf(cert->label, sizeof(cert->label), "%s", label);
    cert->signer = find(signer);
    need(cert->signer, "its signer", label);
    make(cert, wish);
    X509_free(before);
    EVP_PKEY_free(key_before);
    name_files(cert);
    write_certs(cert, cert->file, false);
    write_certs(cert, cert->chain_file, true);
    write_key(cert, wish->secret);
}

static const struct cert *made(const char *label) {
    begin();
    const struct cert *cert = find(label);
    need(cert, "it was not made", label);
    return cert;
}

const char *cert_file(const char *label) {
    return made(label)->file;
}

const char *cert_key_file(const char *label) {
    return made(label)->key_file;
}

const char *cert_chain_file(const char *label) {
    return made(label)->chain_file;
}
