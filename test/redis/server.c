/*
 * The private server of the tests; see server.h. Starts it with everything that could outlive the test turned off, and
 * has the kernel kill it when the test process dies.
 */
#include "server.h"

#include "tls.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    START_MS = 30 * 1000, /* until a started server must answer */
    TRIES = 5,            /* another process may have the port at ::1 */
    PORT_TRIES = 1000,
    CLUSTER_OFFSET = 10000,
    MAX_ARGS = 64,
};

static void nap_ms(int ms) {
    usleep((useconds_t)ms * 1000);
}

static bool has_ipv6(void) {
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    bool ok = bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
    close(fd);
    return ok;
}

/* A socket that keeps the port, or one of the system's choice for 0; -1: it cannot be had. It does not listen, and so
 * lets the server do so; but nobody else is given the port, also not while the server is down. */
static int keep_port(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1;
    address.sin_port = htons((uint16_t)port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        fail_msg("socket: %s", strerror(errno));
    /* shared only from then on, with who asks for it by its number */
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0)
        return fd;
    close(fd);
    return -1;
}

static int port_of(int fd) {
    struct sockaddr_in address;
    socklen_t len = sizeof(address);
    return getsockname(fd, (struct sockaddr *)&address, &len) ? 0 : ntohs(address.sin_port);
}

static void give_up_ports(struct server *server) {
    if (server->port == 0)
        return;
    for (int i = 0; i < 2; i++)
        close(server->kept[i]);
    server->port = 0;
}

/* A server of a cluster takes a second port too, which is its first one and 10,000. */
static void take_ports(struct server *server) {
    for (int i = 0; i < PORT_TRIES; i++) {
        int first = keep_port(0), port = port_of(first);
        int second = port != 0 && port + CLUSTER_OFFSET <= UINT16_MAX ? keep_port(port + CLUSTER_OFFSET) : -1;
        if (second >= 0) {
            server->port = port;
            server->kept[0] = first;
            server->kept[1] = second;
            return;
        }
        close(first);
    }
    fail_msg("no free loopback ports");
}

/* --- The process -------------------------------------------------------------------------------------------------- */

static const char *server_program(void) {
    const char *program = getenv("EVLOCK_TEST_SERVER");
    return program && *program ? program : "redis-server";
}

static size_t append(const char **args, size_t n, const char *const *more) {
    for (; more && *more && n < MAX_ARGS - 1; more++)
        args[n++] = *more;
    return n;
}

static void run_server(const struct server *server) {
    const char *args[MAX_ARGS];
    size_t n = 0;
    char port[16];

    snprintf(port, sizeof(port), "%d", server->port);
    const char *const *extra = server->extra;
    args[n++] = server_program();
    if (extra && extra[0] && extra[0][0] == '/')
        args[n++] = *extra++; /* a file of options */
    const char *plain = server->tls ? "0" : port, *ipv6 = server->ipv6 ? "::1" : NULL;
    const char *own[] = {"--port",    plain, "--unixsocket",     server->socket, "--dir",       server->folder,
                         "--save",    "",    "--appendonly",     "no",           "--daemonize", "no",
                         "--logfile", "log", "--protected-mode", "no",           "--bind",      "127.0.0.1",
                         ipv6,        NULL};
    n = append(args, n, own);
    if (server->tls) {
        args[n++] = "--tls-port";
        args[n++] = port;
        n = append(args, n, tls_server_args());
    }
    n = append(args, n, extra);
    args[n] = NULL;

    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    execvp(args[0], (char *const *)(uintptr_t)args);
    _exit(127);
}

/* The password that the extra arguments set; NULL: none. */
static const char *password_of(const struct server *server) {
    for (const char *const *arg = server->extra; arg && *arg; arg++)
        if (strcmp(*arg, "--requirepass") == 0)
            return arg[1];
    return NULL;
}

static redisReply *exchange(struct server *server);

static void connect_side(struct server *server) {
    struct timeval limit = {.tv_sec = 20};
    const char *password = password_of(server);
    if (server->side)
        redisFree(server->side);
    server->side = redisConnectUnixWithTimeout(server->socket, limit);
    if (!server->side || server->side->err)
        return;
    redisSetTimeout(server->side, limit);
    if (!password)
        return;
    redisAppendCommand(server->side, "AUTH %s", password);
    freeReplyObject(exchange(server));
}

/* Sends what was appended to the side connection and waits for the answer; NULL when there comes none. The server may
 * have gone since the last one, killed, or as one that listens before it finds its second port taken; to write to it
 * then raises SIGPIPE. */
static redisReply *exchange(struct server *server) {
    struct sigaction before, ignore = {.sa_handler = SIG_IGN};
    void *reply = NULL;
    sigaction(SIGPIPE, &ignore, &before);
    redisGetReply(server->side, &reply);
    sigaction(SIGPIPE, &before, NULL);
    return reply;
}

/* Whether the server answers, with whatever: it may want a password, or be loading its data. */
static bool answers(struct server *server) {
    connect_side(server);
    if (!server->side || server->side->err)
        return false;
    redisAppendCommand(server->side, "PING");
    redisReply *reply = exchange(server);
    if (!reply)
        return false;
    freeReplyObject(reply);
    return true;
}

/* One try to start the process; false when it ended by itself. */
static bool launch(struct server *server) {
    pid_t parent = getpid();
    server->paused = false;
    server->pid = fork();
    if (server->pid < 0)
        fail_msg("fork: %s", strerror(errno));
    if (server->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(127);
        run_server(server);
    }
    for (int waited = 0; waited < START_MS; waited += 5) {
        if (answers(server))
            return true;
        if (waitpid(server->pid, NULL, WNOHANG) == server->pid) {
            server->pid = 0;
            return false;
        }
        nap_ms(5);
    }
    server_kill9(server);
    return false;
}

/* Why a server did not start, for a machine whose folders nobody will see. */
static const char *end_of_log(const struct server *server) {
    static char end[1024];
    char path[sizeof(server->folder) + sizeof("/log")];
    snprintf(path, sizeof(path), "%s/log", server->folder);
    FILE *file = fopen(path, "r");
    if (!file)
        return "(none)";
    size_t len = 0;
    if (fseek(file, -(long)(sizeof(end) - 1), SEEK_END) == 0 || fseek(file, 0, SEEK_SET) == 0)
        len = fread(end, 1, sizeof(end) - 1, file);
    end[len] = '\0';
    fclose(file);
    return end;
}

const char *server_scheme(void) {
    return tls_wanted() ? "rediss" : "redis";
}

const char *server_missing(void) {
    return tls_wanted() ? tls_missing(server_program()) : NULL;
}

void server_start(struct server *server, bool tcp, const char *const *extra) {
    *server = (struct server){.extra = extra, .tls = tls_wanted()};
    if (!folder_make(server->folder))
        fail_msg("mkdtemp %s: %s", server->folder, strerror(errno));
    snprintf(server->socket, sizeof(server->socket), "%s/socket", server->folder);
    snprintf(server->socket_url, sizeof(server->socket_url), "unix://%s", server->socket);
    memcpy(server->url, server->socket_url, sizeof(server->url));
    if (server->tls) {
        tls_trust_by_default();
        tcp = true;
    }
    server->ipv6 = tcp && has_ipv6();
    for (int i = 0; i < TRIES; i++) {
        give_up_ports(server);
        if (tcp) {
            take_ports(server);
            snprintf(server->tcp_url, sizeof(server->tcp_url), "%s://127.0.0.1:%d", server_scheme(), server->port);
        }
        if (server->tls)
            memcpy(server->url, server->tcp_url, sizeof(server->tcp_url));
        if (launch(server))
            return;
    }
    fail_msg("the server does not start; is it installed? the end of its log: %s", end_of_log(server));
}

void server_kill9(struct server *server) {
    if (server->pid == 0)
        return;
    kill(server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0);
    server->pid = 0;
    server->paused = false;
}

void server_stop(struct server *server) {
    server_kill9(server);
    if (server->side)
        redisFree(server->side);
    server->side = NULL;
    give_up_ports(server);
    if (server->folder[0])
        folder_remove(server->folder);
    server->folder[0] = '\0';
}

void server_restart(struct server *server) {
    server_kill9(server);
    for (int i = 0; i < TRIES; i++) {
        if (launch(server))
            return;
        nap_ms(100);
    }
    fail_msg("the server does not start again; the end of its log: %s", end_of_log(server));
}

void server_pause(struct server *server) {
    int status;
    kill(server->pid, SIGSTOP);
    if (waitpid(server->pid, &status, WUNTRACED) != server->pid || !WIFSTOPPED(status))
        fail_msg("the server did not stop");
    server->paused = true;
}

void server_resume(struct server *server) {
    if (server->paused)
        kill(server->pid, SIGCONT);
    server->paused = false;
}

/* --- The side connection ------------------------------------------------------------------------------------------ */

/* A restart, or a test that killed every connection, ends this one. */
static bool side_is_open(const struct server *server) {
    char byte;
    return server->side && !server->side->err && recv(server->side->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
           errno == EAGAIN;
}

static redisReply *try_command(struct server *server, const char *format, va_list args) {
    if (!side_is_open(server))
        connect_side(server);
    if (!server->side || redisvAppendCommand(server->side, format, args) != REDIS_OK)
        return NULL;
    return exchange(server);
}

static redisReply *command(struct server *server, const char *format, va_list args) {
    redisReply *reply = try_command(server, format, args);
    if (!reply)
        fail_msg("no answer to %s: %s", format, server->side ? server->side->errstr : "no connection");
    return reply;
}

redisReply *server_command(struct server *server, const char *format, ...) {
    va_list args;
    va_start(args, format);
    redisReply *reply = command(server, format, args);
    va_end(args);
    return reply;
}

redisReply *server_ask(struct server *server, const char *format, ...) {
    redisReply *reply = NULL;
    for (int i = 0; i < TRIES && !reply; i++) {
        va_list args;
        va_start(args, format);
        reply = try_command(server, format, args);
        va_end(args);
    }
    if (!reply)
        fail_msg("no answer to %s: %s", format, server->side ? server->side->errstr : "no connection");
    return reply;
}

void server_do(struct server *server, const char *format, ...) {
    va_list args;
    va_start(args, format);
    redisReply *reply = command(server, format, args);
    va_end(args);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", format, reply->str);
    freeReplyObject(reply);
}

long long server_integer(struct server *server, const char *format, ...) {
    va_list args;
    va_start(args, format);
    redisReply *reply = command(server, format, args);
    va_end(args);
    if (reply->type != REDIS_REPLY_INTEGER)
        fail_msg("%s: no integer, but %s", format, reply->str ? reply->str : "something else");
    long long value = reply->integer;
    freeReplyObject(reply);
    return value;
}

long long server_info(struct server *server, const char *section, const char *words) {
    redisReply *reply = server_command(server, "INFO %s", section);
    const char *found = reply->type == REDIS_REPLY_STRING ? strstr(reply->str, words) : NULL;
    long long count = found ? strtoll(found + strlen(words), NULL, 10) : 0;
    freeReplyObject(reply);
    return count;
}

long long server_calls(struct server *server, const char *name) {
    char wanted[64];
    snprintf(wanted, sizeof(wanted), "cmdstat_%s:calls=", name);
    return server_info(server, "commandstats", wanted);
}

long long server_refusals(struct server *server, const char *name) {
    char wanted[64];
    redisReply *reply = server_command(server, "INFO commandstats");
    snprintf(wanted, sizeof(wanted), "cmdstat_%s:", name);
    const char *line = strstr(reply->str, wanted);
    const char *count = line ? strstr(line, "rejected_calls=") : NULL;
    long long refusals = count ? strtoll(count + strlen("rejected_calls="), NULL, 10) : 0;
    freeReplyObject(reply);
    return refusals;
}

long long server_errors(struct server *server, const char *code) {
    char wanted[64];
    snprintf(wanted, sizeof(wanted), "errorstat_%s:count=", code);
    return server_info(server, "errorstats", wanted);
}

bool key_exists(struct server *server, const char *key) {
    return server_integer(server, "EXISTS %s", key) == 1;
}

ssize_t key_value(struct server *server, const char *key, void *value, size_t size) {
    ssize_t len = -1;
    redisReply *reply = server_command(server, "GET %s", key);
    if (reply->type == REDIS_REPLY_STRING) {
        size_t copied = reply->len < size - 1 ? reply->len : size - 1;
        memcpy(value, reply->str, copied);
        ((char *)value)[copied] = '\0';
        len = (ssize_t)reply->len;
    }
    freeReplyObject(reply);
    return len;
}

bool key_is(struct server *server, const char *key, const void *value, size_t len) {
    char found[1024];
    return key_value(server, key, found, sizeof(found)) == (ssize_t)len && memcmp(found, value, len) == 0;
}

int64_t key_ttl(struct server *server, const char *key) {
    return server_integer(server, "PTTL %s", key);
}
