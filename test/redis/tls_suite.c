/* What the tests of TLS share; see tls_suite.h. */
#include "tls_suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

struct tls_peer peer;

/* --- Files -------------------------------------------------------------------------------------------------------- */

static char folder[FOLDER_SIZE];

const char *file(const char *name) {
    static char paths[8][128];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof(paths[0]), "%s%s%s", folder, *name ? "/" : "", name);
    return path;
}

void copy(const char *from, const char *to) {
    char bytes[16384], beside[160];
    FILE *in = fopen(from, "rb");
    assert_non_null(in);
    size_t len = fread(bytes, 1, sizeof(bytes), in);
    fclose(in);
    snprintf(beside, sizeof(beside), "%s.new", to);
    FILE *out = fopen(beside, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, len, out), len);
    fclose(out);
    assert_int_equal(rename(beside, to), 0);
}

static void write_file(const char *name, const char *text) {
    FILE *out = fopen(file(name), "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(text, 1, strlen(text), out), strlen(text));
    fclose(out);
}

/* What is beside "authority", "server" and "client". */
static void make_certificates(void) {
    static const struct {
        const char *label;
        struct cert_wish wish;
    } wishes[] = {
        {"foreign_authority", {.authority = true}},
        {"intermediate", {.authority = true, .signer = "authority"}},
        {"named", {.names = "DNS:redis.test,IP:10.0.0.7,IP:2001:db8::7"}},
        {"wild", {.names = "DNS:*.wild.test"}},
        {"partly_wild", {.names = "DNS:o*.wild.test"}},
        {"addressed", {.names = "IP:127.0.0.1"}},
        {"textual", {.names = "DNS:127.0.0.1"}},
        {"foreign", {.signer = "foreign_authority"}},
        {"chained", {.signer = "intermediate"}},
        {"alone", {.signer = "alone"}},
        {"expired", {.from_s = -7200, .to_s = -3600}},
        {"future", {.from_s = 3600, .to_s = 7200}},
        {"of_client", {.client = true}},
        {"of_leaf", {.signer = "server"}},
        {"second", {.client = true, .names = ""}},
        {"foreign_client", {.client = true, .names = "", .signer = "foreign_authority"}},
        {"chained_client", {.client = true, .names = "", .signer = "intermediate"}},
        {"expired_client", {.client = true, .names = "", .from_s = -7200, .to_s = -3600}},
        {"locked", {.client = true, .names = "", .secret = "secret"}},
    };
    for (size_t i = 0; i < sizeof(wishes) / sizeof(wishes[0]); i++)
        cert_make(wishes[i].label, &wishes[i].wish);
}

/* What nobody answers behind. */
static void make_no_files(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", file("socket"));
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    close(fd);
    assert_int_equal(mkfifo(file("pipe"), 0600), 0);
}

static void make_files(void) {
    assert_true(folder_make(folder));
    write_file("empty", "");
    write_file("garbage", "this is no certificate\n");
    write_file("broken", "-----BEGIN CERTIFICATE-----\nTHIS\n-----END CERTIFICATE-----\n");
    write_file("huge", "");
    assert_int_equal(truncate(file("huge"), (off_t)1 << 40), 0);
    make_no_files();
}

/* --- The suite's server ------------------------------------------------------------------------------------------- */

int tls_port(const struct fixture *f) {
    return f->server->port + TLS_PORT;
}

void serve_by(struct server *server, const char *cert, const char *client_authority, const char *protocols) {
    server_do(server,
              "CONFIG SET tls-cert-file %s tls-key-file %s tls-ca-cert-file %s tls-auth-clients %s tls-protocols %s "
              "tls-port %d",
              cert_chain_file(cert), cert_key_file(cert), cert_file(client_authority ? client_authority : "authority"),
              client_authority ? "yes" : "no", protocols ? protocols : "", server->port + TLS_PORT);
}

void serve(struct fixture *f, const char *cert, const char *client_authority, const char *protocols) {
    serve_by(f->server, cert, client_authority, protocols);
}

const char *url_of(const struct fixture *f, const char *host) {
    static char url[128];
    snprintf(url, sizeof(url), "rediss://%s:%d", host, tls_port(f));
    return url;
}

int tls_setup(void **state) {
    if (fixture_setup_bare(state))
        return -1;
    serve(*state, "server", NULL, NULL);
    return 0;
}

int tls_teardown(void **state) {
    int result = fixture_teardown(state);
    tls_peer_stop(&peer);
    return result;
}

/* --- Clients ------------------------------------------------------------------------------------------------------ */

evlock_client_options trusting(struct fixture *f) {
    evlock_client_options options = client_options(f);
    options.tls_ca = cert_file("authority");
    options.backoff_max_ms = 200;
    return options;
}

evlock_client_options with_pair(struct fixture *f, const char *name) {
    evlock_client_options options = trusting(f);
    options.tls_cert = cert_chain_file(name);
    options.tls_key = cert_key_file(name);
    return options;
}

void works_on(struct fixture *f, evlock_client *client) {
    evlock *lock = lock_new_on(f, client, "a", NULL);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_status(await_extend(f, lock, 60000, EVLOCK_EXTEND_REPLACE), EVLOCK_OK);
    assert_true(key_exists(f->server, "a"));
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_false(key_exists(f->server, "a"));
    lock_free(f, lock);
}

void works(struct fixture *f, const char *url, const evlock_client_options *options) {
    evlock_client *client = client_new(f, url, options);
    works_on(f, client);
    client_free(f, client);
}

void assert_words(const char *said, const char *words) {
    if (!strstr(said, words))
        fail_msg("the words are \"%s\", not \"%s\"", said, words);
}

void fails(struct fixture *f, const char *url, const evlock_client_options *options, int status, const char *words) {
    f->away = (struct record){0};
    evlock_client *client = client_new(f, url, options);
    evlock *lock = lock_new_on(f, client, "a", NULL);
    struct record ended = {0};
    assert_status(evlock_acquire(lock, NULL, record_end, &ended), EVLOCK_OK);
    await(f, tls_peer_pump(&peer) && f->away.count);
    assert_status(f->away.status, status);
    assert_words(f->away.error, words);
    if (status == EVLOCK_ECERT) {
        await(f, tls_peer_pump(&peer) && ended.count);
        assert_ended(&ended, status);
        assert_words(ended.error, words);
    }
    lock_free(f, lock);
    await(f, tls_peer_pump(&peer) && ended.count); /* which is told of that, at the latest */
    client_free(f, client);
    assert_false(key_exists(f->server, "a"));
}

/* --- The tests' own server ---------------------------------------------------------------------------------------- */

void start_peer(struct fixture *f, const struct tls_peer_options *options) {
    struct tls_peer_options own = options ? *options : (struct tls_peer_options){0};
    if (!own.cert) {
        own.cert = cert_file("server");
        own.key = cert_key_file("server");
    }
    tls_peer_start(&peer, f->server, &own);
}

struct record *anew(struct fixture *f) {
    f->ended = (struct record){0};
    return &f->ended;
}

int ends_by_peer(struct fixture *f, int returned) {
    assert_status(returned, EVLOCK_OK);
    await(f, tls_peer_pump(&peer) && f->ended.count);
    assert_int_equal(f->ended.count, 1);
    return f->ended.status;
}

evlock *held_by_peer(struct fixture *f, const char *name, const evlock_options *options) {
    evlock *lock = lock_new(f, name, options);
    assert_status(ends_by_peer(f, evlock_acquire(lock, NULL, record_end, anew(f))), EVLOCK_OK);
    return lock;
}

int extend_by_peer(struct fixture *f, evlock *lock) {
    return ends_by_peer(f, evlock_extend(lock, 60000, EVLOCK_EXTEND_REPLACE, record_end, anew(f)));
}

int release_by_peer(struct fixture *f, evlock *lock) {
    return ends_by_peer(f, evlock_release(lock, record_end, anew(f)));
}

/* --- The suite ---------------------------------------------------------------------------------------------------- */

static int suite_setup(void **state) {
    (void)state;
    make_certificates();
    make_files();
    server_start(&suite_server, true, NULL);
    return 0;
}

static int suite_teardown(void **state) {
    (void)state;
    server_stop(&suite_server);
    folder_remove(folder);
    return 0;
}

int run_tls_suite(const char *name, const struct CMUnitTest *tests, size_t count) {
    return run_suite_with(name, tests, count, suite_setup, suite_teardown);
}
