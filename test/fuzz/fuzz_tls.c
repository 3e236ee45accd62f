/*
 * TLS: a hostile server below it and within it. The input is a program: which certificate and version a live server of
 * OpenSSL's has, how its records are cut, doubled or spoilt on their way, which bytes come that are no record at all,
 * what it says inside, when it updates its keys, asks for another handshake or leaves. Promised whatever comes: each
 * call ends in one callback, later; nothing is held that was not granted by who proved to be the server; nothing of the
 * login goes to anybody else, or in the clear; OpenSSL's errors of the caller stay; nothing is left.
 */
#include <stdbool.h>

#include <evlock/evlock.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "../unit/counted.h"
#include "certs.h"
#include "input.h"
#include "loop.h"
#include "server.h"

enum { CALLS = 64, LEFT_REASON = 77 };

static const char password[] = "s3cr3t-pw";
static const char url[] = "rediss://127.0.0.1:7000";

/* A connection, from the server's side. */
struct line {
    struct socket *socket; /* NULL: none */
    SSL *ssl;
    BIO *in, *out;
};

static struct loop loop;
static struct server server;
static struct input input;
static struct line lines[SERVER_PEERS];
static SSL_CTX *contexts[2][2]; /* by whether it is trusted, and by version */
static evlock_client *client;
static evlock *lock;
static struct {
    unsigned calls, told;
    bool calling;
    bool trusted, newer;
    bool affirmed; /* the trusted server said something that may be a grant */
    bool secret;   /* the input does not have the password */
    uint8_t spoil; /* how what goes next is spoilt, and where */
    uint8_t spoil_at;
} run;

/* --- OpenSSL's errors --------------------------------------------------------------------------------------------- */

/* One of the caller's stays in the queue all the time. (The server's end empties it.) */
static void leave_error(void) {
    ERR_clear_error();
    ERR_raise(ERR_LIB_USER, LEFT_REASON);
}

static void check_error(void) {
    check(ERR_GET_REASON(ERR_get_error()) == LEFT_REASON && ERR_get_error() == 0);
    leave_error();
}

/* --- The server's end --------------------------------------------------------------------------------------------- */

static struct line *line_of(struct socket *socket) {
    struct line *line = lines;

    while (line < lines + SERVER_PEERS && line->socket != socket)
        line++;
    if (line < lines + SERVER_PEERS)
        return line;
    for (line = lines; line->socket; line++)
        ;
    line->socket = socket;
    line->ssl = SSL_new(contexts[run.trusted][run.newer]);
    line->in = BIO_new(BIO_s_mem());
    line->out = BIO_new(BIO_s_mem());
    check(line->ssl && line->in && line->out);
    BIO_set_mem_eof_return(line->in, -1);
    SSL_set_bio(line->ssl, line->in, line->out);
    SSL_set_accept_state(line->ssl);
    leave_error();
    return line;
}

/* What goes to the client, if it is to be spoilt: cut, doubled, or with a bit of it turned. */
static void put_spoilt(struct socket *socket, char *bytes, size_t len) {
    size_t at = len > 0 ? run.spoil_at * len / 256 : 0;

    switch (run.spoil) {
    case 1:
        socket_put(socket, bytes, at);
        break;
    case 2:
        socket_put(socket, bytes, len);
        socket_put(socket, bytes, len);
        break;
    case 3:
        bytes[at] = (char)(bytes[at] ^ 1 << run.spoil_at % 8);
        socket_put(socket, bytes, len);
        break;
    case 4:
        break;
    default:
        socket_put(socket, bytes, len);
    }
    run.spoil = 0;
}

static void line_flush(struct line *line) {
    static char bytes[1 << 16];
    int len;

    while ((len = BIO_read(line->out, bytes, sizeof(bytes))) > 0)
        put_spoilt(line->socket, bytes, (size_t)len);
}

/* Takes from the client's side, and gives what is inside. Whom it does not trust it tells nothing. */
static size_t line_take(struct socket *socket, void *bytes, size_t size) {
    struct line *line = line_of(socket);
    char raw[16384];
    size_t taken;
    int len;

    while ((taken = socket_take(socket, raw, sizeof(raw))) > 0) {
        check(!run.secret || !memmem(raw, taken, password, sizeof(password) - 1));
        BIO_write(line->in, raw, (int)taken);
    }
    len = SSL_read(line->ssl, bytes, (int)size);
    leave_error();
    line_flush(line);
    check(len <= 0 || run.trusted);
    return len > 0 ? (size_t)len : 0;
}

static void line_put(struct socket *socket, const void *bytes, size_t len) {
    struct line *line = line_of(socket);

    if (len > 0 && SSL_is_init_finished(line->ssl))
        SSL_write(line->ssl, bytes, (int)len);
    leave_error();
    line_flush(line);
}

static void line_end(struct socket *socket) {
    struct line *line = line_of(socket);

    SSL_set_shutdown(line->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(line->ssl);
    leave_error();
    *line = (struct line){0};
    socket_end(socket);
}

static const struct server_way way = {line_take, line_put, line_end};

/* What TLS itself has to say. */
static void line_does(struct line *line, uint8_t what) {
    switch (what % 6) {
    case 0:
        SSL_key_update(line->ssl, SSL_KEY_UPDATE_REQUESTED);
        break;
    case 1:
        SSL_key_update(line->ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
        break;
    case 2:
        SSL_renegotiate(line->ssl);
        break;
    case 3:
        SSL_shutdown(line->ssl);
        break;
    case 4:
        SSL_new_session_ticket(line->ssl);
        break;
    case 5:
        SSL_set_verify(line->ssl, SSL_VERIFY_PEER, NULL);
        SSL_verify_client_post_handshake(line->ssl);
        break;
    }
    if (what % 6 != 3)
        SSL_do_handshake(line->ssl);
    leave_error();
    line_flush(line);
}

/* --- What is told ------------------------------------------------------------------------------------------------- */

static void check_words(const char *words) {
    check(!run.secret || !strstr(words, password));
    for (; *words; words++)
        check((unsigned char)*words >= ' ' && *words != 0x7f);
}

static void on_end(evlock *ended, int status, void *arg) {
    (void)ended;
    check(!run.calling && !*(bool *)arg);
    *(bool *)arg = true;
    run.told++;
    check(status <= 0 && strcmp(evlock_strerror(status), evlock_strerror(12345)) != 0);
    check_words(evlock_last_error());
    check_error();
}

static void on_answer(evlock *ended, int status, const evlock_answer *answer, void *arg) {
    check((status == EVLOCK_OK) == (answer != NULL));
    check(!answer || run.affirmed);
    on_end(ended, status, arg);
}

static void on_connection(evlock_client *of, enum evlock_connection state, int status, void *arg) {
    (void)of, (void)arg;
    check(state != EVLOCK_CONNECTED || run.trusted);
    check(status <= 0);
    check_words(evlock_last_error());
    check_error();
}

static void on_log(enum evlock_log_level level, const char *line, void *arg) {
    (void)level, (void)arg;
    check_words(line);
    check_error();
}

static void on_said(unsigned node, const char *key) {
    (void)node, (void)key;
    run.affirmed |= run.trusted;
}

/* --- What happens ------------------------------------------------------------------------------------------------- */

static void call_something(void) {
    static bool told[CALLS];
    bool *promise = &told[run.calls];
    int status;

    if (run.calls == CALLS)
        return;
    *promise = false;
    run.calling = true;
    switch (take_below(&input, 4)) {
    case 0:
        status = evlock_acquire(lock, NULL, on_end, promise);
        break;
    case 1:
        status = evlock_release(lock, on_end, promise);
        break;
    case 2:
        status = evlock_extend(lock, 30000, EVLOCK_EXTEND_REPLACE, on_end, promise);
        break;
    default:
        status = evlock_query(lock, 63, on_answer, promise);
    }
    run.calling = false;
    run.calls += status == EVLOCK_OK;
}

static void turn(void) {
    server.time = INT64_C(1700000000000000) + loop.common.now;
    loop_turn(&loop);
    server_turn(&server);
    check_error();
    check(run.affirmed || !evlock_is_held(lock));
}

static void answer_all(void) {
    for (int i = 0; i < 6; i++) {
        for (struct peer *peer = server.peers; peer < server.peers + SERVER_PEERS; peer++)
            while (peer->socket && peer->asked > 0)
                server_answer(&server, peer, ANSWER_YES, 0);
        turn();
    }
}

static void say_something(struct peer *peer, uint8_t how) {
    size_t len = how % 4 == 0 ? 0 : take_byte(&input);
    const uint8_t *bytes = take_bytes(&input, &len);

    switch (how % 4) {
    case 0:
        line_does(line_of(peer->socket), how / 4);
        break;
    case 1:
        socket_put(peer->socket, bytes, len); /* which nobody has encrypted */
        break;
    case 2:
        server_say(&server, peer, bytes, len);
        break;
    case 3:
        BIO_write(line_of(peer->socket)->in, bytes, (int)len); /* as if it came from the client */
        break;
    }
}

static void step(void) {
    static const int64_t times[] = {1, 10, 50, 100, 333, 1000, 5000, 30000};
    uint8_t what = take_byte(&input);
    struct peer *peer = server_peer(&server, what);

    if (what < 32) {
        call_something();
    } else if (what < 96) {
        answer_all();
    } else if (what < 160) {
        if (peer)
            say_something(peer, what);
    } else if (what < 176) {
        if (peer)
            server_answer(&server, peer, what % 4, take_byte(&input));
    } else if (what < 200) {
        run.spoil = 1 + what % 4;
        run.spoil_at = take_byte(&input);
    } else if (what < 208) {
        if (peer)
            server_hang_up(peer);
    } else if (what < 232) {
        turn();
    } else {
        loop_pass(&loop, times[what % 8] * 1000);
        check_error();
    }
}

/* --- A run -------------------------------------------------------------------------------------------------------- */

static SSL_CTX *context_new(const char *label, int version) {
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());

    check(context && SSL_CTX_use_certificate_file(context, cert_file(label), SSL_FILETYPE_PEM) == 1);
    check(SSL_CTX_use_PrivateKey_file(context, cert_key_file(label), SSL_FILETYPE_PEM) == 1);
    check(SSL_CTX_set_min_proto_version(context, version) == 1 && SSL_CTX_set_max_proto_version(context, version) == 1);
    SSL_CTX_clear_options(context, SSL_OP_NO_RENEGOTIATION);
    return context;
}

/* Once for the process. */
static void set_up(void) {
    static const struct cert_wish stranger = {.authority = true}, strange = {.signer = "stranger"};

    if (contexts[0][0])
        return;
    cert_make("stranger", &stranger);
    cert_make("strange", &strange);
    for (int i = 0; i < 4; i++)
        contexts[i / 2][i % 2] = context_new(i / 2 ? "server" : "strange", i % 2 ? TLS1_3_VERSION : TLS1_2_VERSION);
    server_goes(&way);
}

static void begin(void) {
    evlock_client_options options = {.size = sizeof(evlock_client_options)};
    uint8_t how = take_byte(&input);
    evlock_loop adapter = loop_adapter(&loop);

    set_up();
    counted_begin(password);
    memset(&run, 0, sizeof(run));
    run.secret = !memmem(input.at, (size_t)(input.end - input.at), password, strlen(password));
    run.trusted = how % 8 > 0;
    run.newer = how & 8;
    loop_begin(&loop);
    server.said = on_said;
    server.between = turn;
    server_begin(&server);
    options.password = password;
    options.tls_ca = cert_file("authority");
    options.on_log = on_log;
    options.log_level = EVLOCK_LOG_DEBUG;
    options.on_connection = on_connection;
    leave_error();
    check(evlock_client_new(&client, &adapter, url, &options) == EVLOCK_OK);
    check(evlock_new(&lock, client, "a", EVLOCK_CSTRING, NULL) == EVLOCK_OK);
    check_error();
}

static void end(void) {
    evlock_client_free(client);
    check_error();
    evlock_free(lock);
    for (int i = 0; i < 3; i++) {
        loop_turn(&loop);
        server_turn(&server);
    }
    check(run.told == run.calls);
    server_end(&server);
    loop_end(&loop);
    check(counted_live() == 0);
    check(!run.secret || !counted_leaked_secret());
    ERR_clear_error();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input = (struct input){data, data + size};
    begin();
    while (input.at < input.end)
        step();
    end();
    return 0;
}
