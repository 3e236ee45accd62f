/*
 * A program that uses evlock as its input tells it, line by line, and says by lines what comes of it. Meanwhile others
 * look into its memory. So it keeps nothing of what it is told: a line is in one buffer, which is wiped before the loop
 * goes on.
 */
#include <event2/event.h>
#include <evlock/evlock.h>
#include <evlock/libevent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { LINE_MOST = 1 << 21 };

static struct event_base *base;
static evlock_client *client;
static evlock *lock;
static char line[LINE_MOST];
static size_t line_len;

static void say(const char *what, int status) {
    dprintf(STDOUT_FILENO, "%s %d\n", what, status);
}

/* --- What comes --------------------------------------------------------------------------------------------------- */

static void on_connection(evlock_client *c, enum evlock_connection state, int status, void *arg) {
    (void)c, (void)arg;
    say(state == EVLOCK_CONNECTED ? "connected" : state == EVLOCK_AWAY ? "away" : "connecting", status);
}

static void on_login(evlock_client *c, size_t node, void *arg) {
    (void)c, (void)arg;
    say("asked", (int)node);
}

/* Of a login on a connection that lives. */
static void on_log(enum evlock_log_level level, const char *words, void *arg) {
    (void)arg;
    if (strstr(words, "logged in anew") || strstr(words, "keeps the login"))
        say("renewed", level);
}

static void on_answer(evlock *l, int status, const evlock_answer *answer, void *arg) {
    (void)l, (void)answer, (void)arg;
    say("answered", status);
}

static void on_closed(int status, void *arg) {
    (void)arg;
    say("closed", status);
}

/* --- What is told ------------------------------------------------------------------------------------------------- */

/* The next word; "-" stands for none. */
static char *word(char **rest) {
    char *next = strtok_r(NULL, " ", rest);
    return next && strcmp(next, "-") == 0 ? NULL : next;
}

/* URL OPTION=VALUE... */
static int make(char **rest) {
    evlock_client_options options = {.size = sizeof options, .backoff_max_ms = 100, .log_level = EVLOCK_LOG_DEBUG};
    const struct {
        const char *name;
        const char **value;
    } texts[] = {
        {"user=", &options.user},          {"password=", &options.password},
        {"file=", &options.password_file}, {"ca=", &options.tls_ca},
        {"cert=", &options.tls_cert},      {"key=", &options.tls_key},
        {"name=", &options.tls_name},      {"sentinel=", &options.sentinel_password},
    };
    const char *url = word(rest);
    for (char *option; (option = word(rest));) {
        if (strcmp(option, "asks") == 0)
            options.on_login = on_login;
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
            if (strncmp(option, texts[i].name, strlen(texts[i].name)) == 0)
                *texts[i].value = option + strlen(texts[i].name);
    }
    options.on_connection = on_connection;
    options.on_log = on_log;
    return evlock_client_new_libevent(&client, base, url, &options);
}

/* USER PASSWORD */
static int log_in(char **rest) {
    const char *user = word(rest);
    return evlock_client_login(client, EVLOCK_ALL_NODES, user, word(rest));
}

/* NAME: who holds it. */
static int ask(char **rest) {
    if (!lock && evlock_new(&lock, client, word(rest), EVLOCK_CSTRING, NULL) != EVLOCK_OK)
        return EVLOCK_EINVAL;
    return evlock_query(lock, EVLOCK_QUERY_HOLDER, on_answer, NULL);
}

static void free_lock(void) {
    evlock_free(lock);
    lock = NULL;
}

static int close_client(char **rest) {
    (void)rest;
    free_lock();
    evlock_client_close(client, on_closed, NULL);
    client = NULL;
    return EVLOCK_OK;
}

static int free_client(char **rest) {
    (void)rest;
    free_lock();
    evlock_client_free(client);
    client = NULL;
    return EVLOCK_OK;
}

/* A child that has its parent's copies, and stays. It has begun when this returns. */
static int make_child(char **rest) {
    int begun[2];
    char none;
    (void)rest;
    if (pipe(begun) != 0)
        return -1;
    pid_t child = fork();
    close(begun[1]);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    (void)!read(begun[0], &none, 1);
    close(begun[0]);
    return child;
}

static const struct {
    const char *name;
    int (*run)(char **rest);
} orders[] = {{"new", make},           {"login", log_in},     {"ask", ask},
              {"close", close_client}, {"free", free_client}, {"fork", make_child}};

static void obey(void) {
    char *rest = NULL, *name = strtok_r(line, " ", &rest);
    int status = EVLOCK_EINVAL;
    for (size_t i = 0; name && i < sizeof orders / sizeof orders[0]; i++)
        if (strcmp(orders[i].name, name) == 0)
            status = orders[i].run(&rest);
    explicit_bzero(line, sizeof line);
    line_len = 0;
    say("done", status);
}

/* The next line comes when this one is done. */
static void on_input(evutil_socket_t fd, short what, void *arg) {
    ssize_t count = read(fd, line + line_len, sizeof line - line_len);
    (void)what, (void)arg;
    if (count <= 0) {
        event_base_loopbreak(base);
        return;
    }
    line_len += (size_t)count;
    if (line[line_len - 1] != '\n')
        return;
    line[line_len - 1] = '\0';
    obey();
}

int main(void) {
    signal(SIGCHLD, SIG_IGN);
    base = event_base_new();
    struct event *input = event_new(base, STDIN_FILENO, EV_READ | EV_PERSIST, on_input, NULL);
    event_add(input, NULL);
    event_base_dispatch(base);
    free_lock();
    evlock_client_free(client);
    event_free(input);
    event_base_free(base);
    return 0;
}
