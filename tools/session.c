/* A session with the servers: the event loop, the client, and the exit status. */
#include <evlock/libevent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "duration.h"
#include "exits.h"
#include "password.h"
#include "say.h"
#include "session.h"

/* --- The servers -------------------------------------------------------------------------------------------------- */

/* One that may not grant yet is there. */
bool session_is_patient(const struct session *session) {
    return session->served || session->status == EVLOCK_EEXCLUDED || event_pending(session->patience, EV_TIMEOUT, NULL);
}

/* What ends evlock, or a lease, is an error that the command says itself. Of several nodes, each says more. */
static bool session_is_error(const struct session *session, enum evlock_log_level level, const char *line) {
    if (level == EVLOCK_LOG_ERROR && strstr(line, ": lost: "))
        return true;
    bool of_node = strncmp(line, "node 0", strlen("node 0")) == 0 && strstr(line, ": not connected: ");
    return of_node && session->alone && !session_is_patient(session);
}

/* The library's words, as a level of the command. Its errors are about leases and logins, which are said anyway; and so
 * is what somebody else hears. */
static void session_on_log(enum evlock_log_level level, const char *line, void *arg) {
    const struct session *session = arg;
    if (session->on_line)
        session->on_line(level, line, session->on_line_arg);
    bool warns = level == EVLOCK_LOG_WARN && session->served && !session->on_line;
    bool all = level == EVLOCK_LOG_DEBUG || session_is_error(session, level, line);
    say(warns ? SAY_NOTES : all ? SAY_ALL : SAY_STEPS, "%s", line);
}

/* What is wrong with a certificate can be mended by an option. */
static int session_say_why(const struct session *session) {
    const char *details = session->why, *hint = "";
    int status = session->status;
    if (status == EVLOCK_ECERT && strstr(details, "mismatch"))
        hint = "; give the name that it has by --sni";
    else if (status == EVLOCK_ECERT && !session->options->cacert && strstr(details, "server's certificate"))
        hint = "; give its authority by --cacert";
    return say_error(EXIT_TROUBLE, "cannot use the server: %s (%s)%s", evlock_strerror(status), details, hint);
}

static void session_on_connection(evlock_client *client, enum evlock_connection state, int status, void *arg) {
    struct session *session = arg;
    (void)client;
    session->served = session->served || state == EVLOCK_CONNECTED;
    if (state != EVLOCK_AWAY)
        return;
    session->status = status;
    snprintf(session->why, sizeof session->why, "%s", evlock_last_error());
    if (!session_is_patient(session) && !session->ending)
        session_end(session, session_say_why(session));
}

static void session_on_impatient(evutil_socket_t fd, short what, void *arg) {
    struct session *session = arg;
    (void)fd, (void)what;
    if (!session_is_patient(session) && evlock_client_connection(session->client) == EVLOCK_AWAY)
        session_end(session, session_say_why(session));
}

/* One string of all URLs, as the library takes them; NULL without memory. Each has been used then, and is wiped. */
static char *session_url(const struct options *options) {
    size_t size = sizeof "quorum:";
    for (size_t i = 0; i < options->url_count; i++)
        size += strlen(options->urls[i]) + 1;
    char *all = calloc(1, size);
    if (!all)
        return NULL;
    if (options->url_count > 1)
        strcpy(all, "quorum:");
    for (size_t i = 0; i < options->url_count; i++) {
        strcat(strcat(all, i ? " " : ""), options->urls[i]);
        explicit_bzero(options->urls[i], strlen(options->urls[i]));
    }
    return all;
}

/* A server that does not answer for a whole ttl does not let a lock be kept, nor released, and is not waited for. */
static int64_t session_timeout(const struct options *options) {
    int64_t least = 500, most = 5000;
    return options->ttl_ms < least ? least : options->ttl_ms > most ? most : options->ttl_ms;
}

/* The details of a URL begin with the word. */
static int session_say_unmade(int status) {
    bool of_url = status == EVLOCK_EURL || status == EVLOCK_ESCHEME || status == EVLOCK_EPATH;
    return of_url ? say_error(EXIT_TROUBLE, "cannot use %s", evlock_last_error()) : say_status("cannot start", status);
}

static int session_connect(struct session *session) {
    const struct options *options = session->options;
    struct password password;
    int exit = password_find(options, &password);
    char *url = exit ? NULL : session_url(options);
    if (!url)
        return exit ? exit : say_status("cannot start", EVLOCK_ENOMEM);
    bool sentinels = strcasestr(url, "sentinel://");
    session->cluster = strcasestr(url, "cluster://");
    session->alone = !session->cluster && !strcasestr(url, "quorum:");
    evlock_client_options wanted = {
        .size = sizeof wanted,
        .user = options->user,
        .sentinel_user = options->sentinel_user,
        .sentinel_password = sentinels ? getenv("EVLOCK_SENTINEL_PASSWORD") : NULL,
        .failover_wait_ms = options->failover_wait_ms,
        .password = password.text,
        .password_file = password.file,
        .tls_ca = options->cacert,
        .tls_cert = options->cert,
        .tls_key = options->key,
        .tls_name = options->sni,
        .command_timeout_ms = session_timeout(options),
        .max_ttl_ms = options->max_ttl_ms,
        .connection_name = "evlock",
        .log_level = says(SAY_ALL) ? EVLOCK_LOG_DEBUG : EVLOCK_LOG_INFO,
        .on_log = session_on_log,
        .on_connection = session_on_connection,
        .arg = session,
    };
    int status = evlock_client_new_libevent(&session->client, session->base, url, &wanted);
    if (status != EVLOCK_OK)
        exit = session_say_unmade(status);
    password_wipe();
    explicit_bzero(url, strlen(url));
    free(url);
    return exit;
}

/* --- The session -------------------------------------------------------------------------------------------------- */

void session_forget(struct event *event) {
    if (event)
        event_free(event);
}

void session_free(struct session *session) {
    evlock_client_free(session->client);
    session_forget(session->patience);
    if (session->base)
        event_base_free(session->base);
    *session = (struct session){.exit = session->exit};
}

/* libevent has said what it cannot do without, and would exit with 1: that says of a lock that another holds it. */
static void session_on_fatal(int error) {
    (void)error;
    exit(EXIT_TROUBLE);
}

int session_open(struct session *session, const struct options *options) {
    *session = (struct session){.options = options};
    event_set_fatal_callback(session_on_fatal);
    session->base = event_base_new();
    session->patience = session->base ? event_new(session->base, -1, 0, session_on_impatient, session) : NULL;
    struct timeval patience = duration_span(options->server_wait_ms);
    if (!session->patience || (options->server_wait_ms && event_add(session->patience, &patience) != 0)) {
        session_free(session);
        return say_error(EXIT_TROUBLE, "the system has no event loop to give");
    }
    int exit = session_connect(session);
    if (exit)
        session_free(session);
    return exit;
}

/* Which option it is about: the library's details are of its own. */
static const char *session_refusal(int status) {
    return status == EVLOCK_EQUEUE ? "cannot wait by --queue"
           : status == EVLOCK_ETTL ? "cannot lock that for this --ttl"
                                   : "cannot lock that";
}

int session_lock(struct session *session, const char *name, const evlock_options *options, evlock **ret_lock) {
    int status = evlock_new(ret_lock, session->client, name, EVLOCK_CSTRING, options);
    return status == EVLOCK_OK ? 0 : say_status(session_refusal(status), status);
}

/* --- A lock that is not had ----------------------------------------------------------------------------------------
 */

/* Jobs that many machines try to run have nothing to say where another runs them; who sits before a terminal asks. */
static enum say_level session_level_of_holder(void) {
    return say_shows_progress() ? SAY_NOTES : SAY_STEPS;
}

static void session_on_holder(evlock *lock, int status, const evlock_answer *answer, void *arg) {
    struct session *session = arg;
    (void)lock;
    if (session->ending)
        return;
    bool named = status == EVLOCK_OK && answer->holder_len > 0;
    int length = named ? (int)answer->holder_len : 0;
    say(session_level_of_holder(), "%s is held by %.*s%s", session->not_had, length, named ? answer->holder : "",
        named ? "" : "another");
    session_end(session, (int)session->options->not_had);
}

void session_end_not_had(struct session *session, evlock *lock, const char *name, int status) {
    if (session->ending)
        return;
    if (status != EVLOCK_EHELD && status != EVLOCK_ETIMEDOUT) {
        session_end(session, say_status(name, status));
        return;
    }
    session->not_had = name;
    if (!says(session_level_of_holder()) ||
        evlock_query(lock, EVLOCK_QUERY_HOLDER, session_on_holder, session) != EVLOCK_OK)
        session_end(session, (int)session->options->not_had);
}

static void session_on_closed(int status, void *arg) {
    struct session *session = arg;
    session->client = NULL;
    if (status != EVLOCK_OK)
        say(SAY_STEPS, "the server did not confirm the release; the lock ends with its ttl");
    event_base_loopbreak(session->base);
}

void session_end(struct session *session, int exit) {
    if (session->ending)
        return;
    session->ending = true;
    session->exit = exit;
    if (exit != EXIT_LOST || evlock_client_connection(session->client) == EVLOCK_CONNECTED) {
        evlock_client_close(session->client, session_on_closed, session);
        return;
    }
    /* The lock is over already, and there is nobody to tell. */
    evlock_client_free(session->client);
    session->client = NULL;
    event_base_loopbreak(session->base);
}

int session_loop(struct session *session) {
    while (session->client && event_base_loop(session->base, EVLOOP_NO_EXIT_ON_EMPTY) == 0) {
    }
    event_base_loop(session->base, EVLOOP_NONBLOCK | EVLOOP_ONCE); /* what was pending is reported */
    return session->client ? say_error(EXIT_TROUBLE, "the event loop failed") : session->exit;
}

int session_run(struct session *session) {
    int exit = session_loop(session);
    session_free(session);
    return exit;
}
